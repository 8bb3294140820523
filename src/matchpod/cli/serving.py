"""Run the service: `matchpod serve`."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from matchpod.adapters.log_output import set_up_logging
from matchpod.app import ResourcesError
from matchpod.cli.resources import check_extras, fail, load_process_settings, read_process_settings


def serve(
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="Drive the matches of a database that was restored or copied. Use it only if the original is gone;"
            " otherwise two services would drive the same matches. See docs/backup.md.",
        ),
    ] = False,
) -> None:
    """Run the service until SIGTERM or Ctrl-C; docs/configuration.md lists all settings.

    Stopping takes up to 25 s, so that callbacks in progress can finish; a second signal stops it at once. Matches
    continue on their servers and are resumed at the next start. At SIGHUP, the server lists of static fleets are
    reloaded.
    """
    from matchpod.app.serving import run_service  # imported here, so that other commands start quickly
    from matchpod.service.telemetry.log_context import log_fields

    settings = load_process_settings()
    check_extras(settings)
    if restored and not settings.drive:
        fail("--restored drives matches, but MATCHPOD_DRIVE is off. Use only one of them.", code=2)
    set_up_logging(log_format=settings.log_format, log_level=settings.log_level, stream=sys.stderr, context=log_fields)
    try:
        announce = typer.echo if sys.stdout.isatty() else None
        code = run_service(
            settings, announce=announce, command=_own_command(), is_restored=restored, load=read_process_settings
        )
    except ResourcesError as exc:
        fail(str(exc))
    raise typer.Exit(code)


def _own_command() -> str:
    """Return the command with which a user can run this program in another terminal."""
    if shutil.which("matchpod"):
        return "matchpod"
    # The program is run from a checkout, or as `python -m matchpod`.
    called = Path(sys.argv[0])
    return shlex.join([str(called)] if called.name == "matchpod" else [sys.executable, "-m", "matchpod"])
