"""Define the command line, with one function per command.

Exit codes: 0 for success, 1 for a failure (such as a full disk), 2 for invalid input; `regions check` also has 3.
Results go to standard output, everything else to standard error, so that output can be piped.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Final

import typer

COMMANDS: Final = {
    "serve": "serving:serve",
    "health": "health:health",
    "migrate": "migrating:migrate",
    "orgs": "organizations:app",
    "keys": "keys:app",
    "console": "console:console",
    "regions": "regions:app",
    "match": "matches:app",
    "callbacks": "callbacks:app",
    "webhooks": "webhooks:app",
    "audit": "audit:audit",
    "recompute": "recomputing:recompute",
    "prune": "pruning:prune",
    "backup": "backups:backup",
    "restore": "backups:restore",
    "reencrypt": "reencrypting:reencrypt",
    "listen": "listen:listen",
    "replay": "replaying:replay",
    "receive-demos": "receiving:receive_demos",
}
"""The module of each command, and its function or command group."""
_HIDDEN: Final = frozenset({"receive-demos"})
"""Commands that the help does not list, because only the service runs them."""


class Commands(typer.Typer):
    """All commands; an OSError in a command is printed as a sentence."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run the command given by the arguments of this process, and exit with its exit code."""
        try:
            return super().__call__(*args, **kwargs)
        except OSError as exc:  # output cannot be written; typer has already handled a closed pipe
            typer.echo(f"matchpod: {exc.strerror or exc}.", err=True)
            sys.exit(1)


def create_app(name: str | None = None) -> Commands:
    """Return the commands. If `name` is a command, only its module is imported, so that it starts quickly."""
    app = Commands(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.callback()(matchpod)
    for command in [name] if name in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[command].partition(":")
        found = getattr(import_module(f"matchpod.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=command)
        else:
            app.command(command, hidden=command in _HIDDEN)(found)
    anything = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
    app.command(context_settings=anything)(simulate)
    return app


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version as installed_version  # slow to import

        typer.echo(f"matchpod {installed_version('matchpod')}")
        raise typer.Exit


def matchpod(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A fresh Counter-Strike 2 server for every match, and its full result in one callback."""


def simulate(context: typer.Context) -> None:
    """Run a simulated CS2 server: RCON, log posts, made-up players. See simulate --help."""
    from cs2_simulator.wire import command_line  # imported here, so that the other commands start quickly

    raise typer.Exit(command_line.main(context.args))
