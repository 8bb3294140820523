"""A terminal on a data folder of its own, for tests of the operator's commands."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result


class Office:
    """Where commands are typed."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir

    def run(self, app: typer.Typer, *words: str) -> Result:
        """Run a command, whatever comes of it."""
        return CliRunner().invoke(app, words, env={"MATCHPOD_DATA_DIR": str(self.data_dir)})

    def done(self, app: typer.Typer, *words: str) -> str:
        """What a command that succeeds prints, without the end of its line."""
        result = self.run(app, *words)
        assert result.exit_code == 0, result.stderr
        return result.stdout.removesuffix("\n")

    def listed(self, app: typer.Typer, *words: str) -> list[dict[str, object]]:
        """What a listing prints as JSON."""
        return msgspec.convert(json.loads(self.done(app, *words, "--json")), list[dict[str, object]])

    def refused(self, app: typer.Typer, *words: str) -> str:
        """The one sentence that a command says about bad input."""
        result = self.run(app, *words)
        assert (result.exit_code, result.stdout) == (2, ""), result.stderr
        assert result.stderr.startswith("matchpod: ")
        assert result.stderr.endswith(".\n")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("matchpod: ").removesuffix("\n")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A terminal; the log that commands set up is gone afterwards."""
    loggers = [logging.getLogger(name) for name in (None, "uvicorn", "asyncio")]
    levels = [logger.level for logger in loggers]
    handlers = list(loggers[0].handlers)
    yield Office(tmp_path)
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    logging.captureWarnings(capture=False)
