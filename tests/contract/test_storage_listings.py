"""Storage queries for operators: servers newest first, and the callback of a server."""

from __future__ import annotations

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.end_match import end_match
from matchpod.storage import outbox, servers
from tests.contract import databases
from tests.contract.test_storage_servers import create, server

harness = databases.harness


async def test_servers_are_listed_newest_first(db: Database) -> None:
    await create(
        db,
        server("srv_1"),
        server("srv_3", phase=ServerPhase.RUNNING, status=ServerStatus.RUNNING),
        server("srv_2"),
    )

    async def ids(status: ServerStatus | None, limit: int) -> list[str]:
        return [row.id for row in await servers.newest(db, status=status, limit=limit)]

    assert await ids(None, 10) == ["srv_3", "srv_2", "srv_1"]
    assert await ids(None, 2) == ["srv_3", "srv_2"]
    assert await ids(ServerStatus.ALLOCATING, 10) == ["srv_2", "srv_1"]
    assert await ids(ServerStatus.FAILED, 10) == []


async def test_callback_is_found_by_its_server(db: Database) -> None:
    row = server("srv_1", callback_url="https://example.net/")
    await create(db, row)
    assert await outbox.callback_of(db, "srv_1") is None
    outcome = Outcome(at_ms=5, reason=CancelReason.SERVER_LOST)
    await db.write(end_match(row, outcome, fence=None, callback_id="msg_1"))
    found = await outbox.callback_of(db, "srv_1")
    assert found is not None
    assert (found.id, found.url) == ("msg_1", "https://example.net/")
