"""The command line: one function per command.

Exit codes: 0 for success, 1 for a failure (such as a full disk), 2 for invalid input.
Results go to standard output, everything else to standard error, so that output can be piped.
"""

from __future__ import annotations

import sys

import typer

from matchpod.cli import (
    callbacks,
    keys,
    listen,
    matches,
    organizations,
    pruning,
    recomputing,
    regions,
    replaying,
    serving,
)
from matchpod.simulator.wire import command_line


class Commands(typer.Typer):
    """All commands; an OSError in any of them is printed as one sentence."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run the command given by the arguments of this process, and exit with its exit code."""
        try:
            return super().__call__(*args, **kwargs)
        except OSError as exc:  # output cannot be written; typer has already handled a closed pipe
            typer.echo(f"matchpod: {exc.strerror or exc}.", err=True)
            sys.exit(1)


app = Commands(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def matchpod() -> None:
    """A fresh Counter-Strike 2 server for every match, and its full result in one callback."""


def simulate(context: typer.Context) -> None:
    """Run a simulated CS2 server: RCON, log posts, made-up players. See simulate --help."""
    raise typer.Exit(command_line.main(context.args))


app.command()(serving.serve)
app.command()(serving.migrate)
app.add_typer(organizations.app, name="orgs")
app.add_typer(keys.app, name="keys")
app.add_typer(regions.app, name="regions")
app.add_typer(matches.app, name="match")
app.add_typer(callbacks.app, name="callbacks")
app.command()(recomputing.recompute)
app.command()(pruning.prune)
app.command()(listen.listen)
app.command()(replaying.replay)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
    simulate
)
