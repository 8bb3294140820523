"""`matchpod prune`: count and delete old log entries."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from typer.testing import Result

from matchpod.cli import create_app
from matchpod.ports import Database
from matchpod.settings.values import DATABASE_FILE
from matchpod.storage import raw_log
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database


@pytest.fixture
def runner(runner: CommandRunner) -> CommandRunner:
    """A command runner that keeps logs for a day."""
    (runner.data_dir / "matchpod.toml").write_text("raw_log_days = 1\n")
    return runner


async def add_entry(db: Database, body: bytes = b"") -> None:
    await db.write(raw_log.append("srv_gone", "log", received_ms=1, headers=b"{}", body=body))


def report(heading: str, number: int) -> list[str]:
    return [
        f"{heading}:",
        f"  {number}  log entries older than 1 day",
        "  0  events older than 365 days",
        "  0  events of organizations' streams older than 7 days",
        "  0  deliveries of webhooks older than 7 days",
        "  0  files of demos older than 30 days",
        "  0  entries of the audit log older than 365 days",
        "  0  idempotency keys older than 1 day",
        "  0  counters that have become 0",
        f"{heading.replace('deleted', 'compressed')}: 0 matches that ended more than a day ago",
    ]


def test_old_entries_are_counted_then_deleted(runner: CommandRunner) -> None:
    for _ in range(3):
        on_database(runner, add_entry)
    for _ in range(2):
        assert runner.output(create_app("prune"), "prune", "--dry-run").splitlines() == report("would be deleted", 3)
    assert runner.acts() == []
    assert runner.output(create_app("prune"), "prune").splitlines() == report("deleted", 3)
    act = (None, "command line", "prune_started", "", "kept: logs 1 day, events 365 days, demos 30 days")
    assert runner.acts() == [act]
    assert runner.output(create_app("prune"), "prune").splitlines() == report("deleted", 0)


def test_vacuum_makes_the_file_smaller(runner: CommandRunner) -> None:
    on_database(runner, partial(add_entry, body=bytes(3_000_000)))
    file = runner.data_dir / DATABASE_FILE
    *lines, last = runner.output(create_app("prune"), "prune", "--vacuum").splitlines()
    assert lines == report("deleted", 1)
    assert last.startswith(f"{file}: 3.")
    assert last.endswith(f"{file.stat().st_size / 1e6:.1f} MB now")
    assert file.stat().st_size < 2_000_000


def test_vacuum_waits_for_no_service(runner: CommandRunner) -> None:
    """Nothing is deleted either: the operator repeats the command."""
    results: list[Result] = []

    async def use(db: Database) -> None:
        await add_entry(db)
        results.append(await asyncio.to_thread(runner.invoke, create_app("prune"), "prune", "--vacuum"))

    on_database(runner, use)
    (result,) = results
    assert (result.exit_code, result.stdout) == (1, "")
    file = runner.data_dir / DATABASE_FILE
    sentence = f"matchpod: Another process uses {file}. Stop the service first, and start it again afterwards.\n"
    assert result.stderr == sentence
    assert runner.output(create_app("prune"), "prune", "--dry-run").splitlines() == report("would be deleted", 1)


def test_vacuum_says_when_it_cannot_be_used(runner: CommandRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    dry = runner.error(create_app("prune"), "prune", "--vacuum", "--dry-run")
    assert dry == "--vacuum cannot be used with --dry-run."
    elsewhere = CommandRunner(runner.data_dir / "elsewhere")
    assert elsewhere.error(create_app("prune"), "prune", "--vacuum").startswith("There is no database in ")
    monkeypatch.setenv("MATCHPOD_DATABASE_URL", "postgresql://127.0.0.1:9/none")
    assert runner.error(create_app("prune"), "prune", "--vacuum").startswith("The database is in PostgreSQL, which ")
