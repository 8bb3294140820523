"""How is the service started from a terminal, and its database prepared?"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

import typer

from matchpod.adapters.log_output import set_up_logging
from matchpod.app import Ground, GroundError
from matchpod.cli.opening import fail, run_on_ground, settings_of_process
from matchpod.storage.migrate import current_version


def serve() -> None:
    """Run the service until it is told to stop (SIGTERM or Ctrl-C); docs/configuration.md has all settings.

    Stopping takes up to 25 s, as callbacks under way are let end; a second signal ends it at once. Matches go on in
    their servers and are picked up at the next start.
    """
    from matchpod.app.serving import run_service  # here: the other commands start without its weight

    settings = settings_of_process()
    set_up_logging(log_format=settings.log_format, log_level=settings.log_level, stream=sys.stderr)
    try:
        code = run_service(settings, announce=typer.echo, command=_own_command())
    except GroundError as exc:
        fail(str(exc))
    raise typer.Exit(code)


def migrate() -> None:
    """Bring the database to the tables of this version, as every other command does too."""

    async def look(ground: Ground) -> int:
        return await current_version(ground.db)

    typer.echo(f"The database has version {run_on_ground(look)}.")


def _own_command() -> str:
    """How this program is called here, to be pasted into another terminal."""
    if shutil.which("matchpod"):
        return "matchpod"
    # Run from a checkout, or as `python -m matchpod`.
    called = Path(sys.argv[0])
    return shlex.join([str(called)] if called.name == "matchpod" else [sys.executable, "-m", "matchpod"])
