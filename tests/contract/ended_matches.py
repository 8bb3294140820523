"""Store ended matches as the service does: with log, outcome and history."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import cache

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.service.end_match import end_match
from matchpod.service.history.finalize import finalize
from matchpod.service.history.rows import initial_history
from matchpod.service.match_log.fold import Fold
from matchpod.storage import raw_log, servers
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from tests.contract.match_histories import insert_counted
from tests.contract.parts import Parts
from tests.unit.service.match_log.test_fold import recorded, row_of
from tests.unit.simulator.played_match import START_MS
from tests.vaults import stored_tokens

SPEED = 1.0
SERVER_NAME = "Europe 1"
ENDED_MS = START_MS + 3_600_000


async def store_match(
    db: Database,
    name: str = "srv_1",
    *,
    entries: int | None = None,
    phase: ServerPhase = ServerPhase.RELEASED,
    **fields: object,
) -> ServerRow:
    """Store a best of three: finished, canceled after `entries` log entries, or, if `phase` is RUNNING, not ended."""
    match = recorded()
    row = row_of(match.settings, id=name, game_id=game_id(name), **stored_tokens(f"l {name}", f"r {name}"))
    row = msgspec.structs.replace(row, callback_url="https://caller.example/", **fields)
    statements = insert_counted(initial_history(row, match.settings, SERVER_NAME))
    await servers.create(db, row, idempotency=None, also=statements)
    await store(db, match.entries[:entries], name)
    if phase is row.phase:
        return row
    is_finished = entries is None
    outcome = Outcome(at_ms=ENDED_MS, reason=None if is_finished else CancelReason.CANCELED_BY_USER)
    result = _result() if is_finished else None
    await db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"cb_{name}"))
    row = await server_row(db, name)
    await finalize_match(db, row, ENDED_MS)
    if phase is ServerPhase.RELEASED:
        await db.write([servers.mark_released(name, row.fence)])
    return await server_row(db, name)


def game_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


async def server_row(db: Database, name: str) -> ServerRow:
    row = await servers.get(db, name)
    assert row is not None
    return row


async def finalize_match(db: Database, row: ServerRow, now_ms: int) -> None:
    """Make the history of a match final, as the process does that releases its server."""
    deps = Parts(db).deps
    await finalize(db, row, speed=SPEED, server_name=SERVER_NAME, streams=deps.streams, turns=deps.turns, now_ms=now_ms)


async def store(db: Database, entries: Sequence[RawEntry], server_id: str = "srv_1") -> None:
    statements: list[Statement] = []
    for entry in entries:
        statements += raw_log.append(
            server_id, entry.kind, received_ms=entry.received_ms, headers=entry.headers, body=entry.body
        )
    await db.write(statements)


@cache
def _result() -> bytes:
    fold = Fold.begin(row_of(recorded().settings), SPEED)
    for entry in recorded().entries:
        fold.apply(entry)
    return fold.result()
