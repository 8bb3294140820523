"""Run the process that receives demo uploads of game servers. `matchpod serve` starts it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from matchpod.adapters.log_output import set_up_logging
from matchpod.app import ResourcesError
from matchpod.cli.resources import check_extras, fail, load_process_settings


def receive_demos(
    socket: Annotated[int, typer.Option(help="The descriptor of a bound socket.")],
    owner: Annotated[str, typer.Option(help="The name of this process in the table of demos.")],
) -> None:
    """Receive demos on a socket until standard input ends. Only `serve` runs this command."""
    from matchpod.app.upload_service import run_upload_service

    settings = load_process_settings()
    check_extras(settings)
    set_up_logging(log_format=settings.log_format, log_level=settings.log_level, stream=sys.stderr)
    try:
        raise typer.Exit(run_upload_service(settings, socket, owner))
    except ResourcesError as exc:
        fail(str(exc))
