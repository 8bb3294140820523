"""`matchpod prune`: count and delete old log entries."""

from __future__ import annotations

from matchpod.cli import create_app
from matchpod.ports import Database
from matchpod.storage import raw_log
from tests.unit.cli.command_runner import CommandRunner
from tests.unit.cli.test_matches import on_database


def report(heading: str, number: int) -> list[str]:
    return [
        f"{heading}:",
        f"  {number}  log entries older than 1 day",
        "  0  events older than 365 days",
        "  0  events of organizations' streams older than 7 days",
        "  0  entries of the audit log older than 365 days",
        "  0  idempotency keys older than 1 day",
        "  0  counters that have become 0",
    ]


def test_old_entries_are_counted_then_deleted(runner: CommandRunner) -> None:
    (runner.data_dir / "matchpod.toml").write_text("raw_log_days = 1\n")

    async def fill(db: Database) -> None:
        for _ in range(3):
            await db.write(raw_log.append("srv_gone", "log", received_ms=1, headers=b"{}", body=b""))

    on_database(runner, fill)
    for _ in range(2):
        assert runner.output(create_app("prune"), "prune", "--dry-run").splitlines() == report("would be deleted", 3)
    assert runner.output(create_app("prune"), "prune").splitlines() == report("deleted", 3)
    assert runner.output(create_app("prune"), "prune").splitlines() == report("deleted", 0)
