"""WHAT CAN BE DONE FROM A TERMINAL? One function a command: words in, words out, an exit code that tells the truth.

0: done. 1: the machine failed us, a full disk say. 2: the input is bad, and the message says what is wrong with it.
Results go to standard output, the rest to standard error, so that output can be piped.
"""

from __future__ import annotations

import typer

from matchpod.cli import callbacks, keys, listening, matches, organizations, regions, replaying, serving
from matchpod.simulator.wire import command_line

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


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
app.command()(listening.listen)
app.command()(replaying.replay)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
    simulate
)
