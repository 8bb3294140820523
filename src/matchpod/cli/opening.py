"""How does a command get its settings and its ground, and what does it say when it does not get them?

Exit code 2: a setting is wrong, and all that are wrong are listed. 1: the machine failed us, and one sentence says how.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import typer

from matchpod.adapters.log_output import set_up_logging
from matchpod.app import Ground, GroundError, check_key, open_ground
from matchpod.ports import DatabaseError
from matchpod.settings import Settings, SettingsError, load_settings

_T = TypeVar("_T")


def settings_of_process() -> Settings:
    """The settings of this process; wrong ones end it with exit code 2."""
    try:
        return load_settings(os.environ, _read_file)
    except SettingsError as exc:
        fail(*exc.faults, code=2)


def run_on_ground(work: Callable[[Ground], Awaitable[_T]], *, needs_key: bool = False) -> _T:
    """Open the database and the vault, do the work, close; what goes wrong ends the process with a sentence.

    `needs_key`: only with the key that opens what is stored.
    """
    settings = settings_of_process()
    # A command's output is its result; of the log only what somebody should look at belongs beside it.
    set_up_logging(log_format=settings.log_format, log_level="warning", stream=sys.stderr)
    try:
        return asyncio.run(_do(work, settings, needs_key=needs_key))
    except GroundError as exc:
        fail(str(exc))
    except DatabaseError as exc:
        fail(f"The database did not do what it was asked: {exc}.")


def fail(*sentences: str, code: int = 1) -> NoReturn:
    """End the process with these sentences on standard error."""
    for sentence in sentences:
        typer.echo(f"matchpod: {sentence}", err=True)
    raise typer.Exit(code)


async def _do(work: Callable[[Ground], Awaitable[_T]], settings: Settings, *, needs_key: bool) -> _T:
    ground = await open_ground(settings)
    try:
        if needs_key:
            await check_key(ground)
        return await work(ground)
    finally:
        await ground.close()


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise SettingsError([f"The file {path} cannot be read: {exc.strerror or exc}."]) from exc
