"""WHAT CAN BE DONE FROM A TERMINAL? One function a command: words in, words out, an exit code that tells the truth.

0: done. 1: the machine failed us, a full disk say. 2: the input is bad, and the message says what is wrong with it.
Results go to standard output, the rest to standard error, so that output can be piped.
"""

from __future__ import annotations

import sys

import typer

from matchpod.cli import (
    callbacks,
    keys,
    listening,
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
    """All commands; what the machine does not give is told in a sentence, whichever command it was."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Run the command that the words of this process name, and end with its exit code."""
        try:
            return super().__call__(*args, **kwargs)
        except OSError as exc:  # output that cannot be written: a reader who is gone was seen to already
            typer.echo(f"matchpod: {exc.strerror or exc}.", err=True)
            sys.exit(1)


app = Commands(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def matchpod() -> None:
    """A fresh Counter-Strike 2 server for every match, and its full result in one callback."""


def simulate(context: typer.Context) -> None:
    """Run a CS2 server that is not one: RCON, log posts, made-up players. See simulate --help."""
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
app.command()(listening.listen)
app.command()(replaying.replay)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
    simulate
)
