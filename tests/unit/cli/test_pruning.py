"""`matchpod prune`, as an operator uses it."""

from __future__ import annotations

from matchpod.cli import app
from matchpod.ports import Database
from matchpod.storage import raw_log
from tests.unit.cli import office as offices
from tests.unit.cli.office import Office
from tests.unit.cli.test_matches import on_database

office = offices.office


def counted(word: str, number: int) -> list[str]:
    return [
        f"{word}:",
        f"  {number}  log entries older than 1 day",
        "  0  events older than 365 days",
        "  0  idempotency keys older than 1 day",
        "  0  counts that have become 0",
    ]


def test_what_is_old_is_counted_then_deleted(office: Office) -> None:
    (office.data_dir / "matchpod.toml").write_text("raw_log_days = 1\n")

    async def fill(db: Database) -> None:
        for _ in range(3):
            await db.write(raw_log.append("srv_gone", "log", received_ms=1, headers=b"{}", body=b""))

    on_database(office, fill)
    for _ in range(2):
        assert office.done(app, "prune", "--dry-run").splitlines() == counted("would be deleted", 3)
    assert office.done(app, "prune").splitlines() == counted("deleted", 3)
    assert office.done(app, "prune").splitlines() == counted("deleted", 0)
