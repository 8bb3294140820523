"""Run operator commands in tests, on a temporary data folder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import typer
from typer.testing import CliRunner, Result

from matchpod.cli.audit import audit
from matchpod.cli.migrating import migrate


class CommandRunner:
    """Invokes commands and checks how they ended."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir

    def invoke(self, app: typer.Typer, *args: str) -> Result:
        """Run a command and return its result, success or failure."""
        return CliRunner().invoke(app, args, env={"MATCHPOD_DATA_DIR": str(self.data_dir)})

    def output(self, app: typer.Typer, *args: str) -> str:
        """Run a command that must succeed; return its standard output without the last newline."""
        result = self.invoke(app, *args)
        assert result.exit_code == 0, result.stderr
        return result.stdout.removesuffix("\n")

    def migrate(self) -> str:
        """Create the database, or bring it to this version."""
        app = typer.Typer()
        app.command()(migrate)
        return self.output(app)

    def json_output(self, app: typer.Typer, *args: str) -> list[dict[str, object]]:
        return msgspec.convert(json.loads(self.output(app, *args, "--json")), list[dict[str, object]])

    def acts(self) -> list[tuple[object, ...]]:
        """Return who did what to what, and its detail, oldest first, without the creation of organizations and keys."""
        app = typer.Typer()
        app.command()(audit)
        items = self.json_output(app, "--limit", "100")[::-1]
        return [
            (one["organization"], one["actor"], one["action"], one["target"], one["detail"])
            for one in items
            if not str(one["action"]).endswith("_created")
        ]

    def error(self, app: typer.Typer, *args: str) -> str:
        """Run a command with invalid input; return its error message, which must be one line."""
        result = self.invoke(app, *args)
        assert (result.exit_code, result.stdout) == (2, ""), result.stderr
        assert result.stderr.startswith("matchpod: ")
        assert result.stderr.endswith(".\n")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("matchpod: ").removesuffix("\n")


@contextmanager
def unchanged_logging() -> Iterator[None]:
    """Undo the logging that commands set up."""
    loggers = [logging.getLogger(name) for name in (None, "asyncpg", "asyncio")]
    levels = [logger.level for logger in loggers]
    handlers = list(loggers[0].handlers)
    yield
    loggers[0].handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    logging.captureWarnings(capture=False)
