"""Define the command line, with one function per command.

Exit codes: 0 for success, 1 for a failure (such as a full disk), 2 for invalid input; `regions check` has an additional
code 3. Results go to standard output, and everything else to standard error, so that the results can be piped.
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
"""Per command, the module that implements it, and the name of its function or command group there."""
_HIDDEN: Final = frozenset({"receive-demos"})
"""Commands that the help omits, because only the service itself runs them."""


class Commands(typer.Typer):
    """All commands. If a command raises an OSError, its reason is printed instead of a traceback."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run the command that the arguments of this process name, and exit with its exit code."""
        try:
            return super().__call__(*args, **kwargs)
        except OSError as exc:  # such as a full disk; typer has already handled a closed pipe
            typer.echo(f"matchpod: {exc.strerror or exc}.", err=True)
            sys.exit(1)


def create_app(name: str | None = None) -> Commands:
    """Return the command line. If `name` is a command, only its module is imported, so that it starts quickly."""
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
    """Run a simulated CS2 server with RCON, log posts and made-up players. See simulate --help."""
    from cs2_simulator.wire import command_line  # imported here, so that the other commands start quickly

    raise typer.Exit(command_line.main(context.args))
