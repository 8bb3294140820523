"""Matches that were played and have ended: their logs, outcomes and histories are stored, as a service leaves them."""

from __future__ import annotations

import uuid

import msgspec

from matchpod.core.result import build_result
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Statement
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.folding import Fold
from matchpod.service.history.rows import upcoming
from matchpod.service.history.settling import settle
from matchpod.service.history.streams import Streams
from matchpod.service.live import LiveMatches
from matchpod.storage import history, raw_log, servers
from matchpod.storage.servers import ServerRow
from tests.unit.service.test_folding import recorded, row_of
from tests.unit.simulator.played_match import START_MS

SPEED = 1.0
SERVER_NAME = "Europe 1"
ENDED_MS = START_MS + 3_600_000


async def play(
    db: Database,
    name: str = "srv_1",
    *,
    entries: int | None = None,
    has_history: bool = True,
    phase: ServerPhase = ServerPhase.RELEASED,
    **fields: object,
) -> ServerRow:
    """A series of up to three maps: over, or canceled by its caller after so many entries of its log."""
    match = recorded()
    row = row_of(match.settings, id=name, game_id=game_id(name), log_token=f"l {name}", report_token=f"r {name}")
    row = msgspec.structs.replace(row, callback_url="https://caller.example/", **fields)
    made = history.begin(upcoming(row, match.settings, SERVER_NAME)) if has_history else []
    await servers.create(db, row, idempotency=None, also=made)
    await store_log(db, row, entries)
    if phase is row.phase:
        return row
    await db.write(conclude(row, _ending(row, entries), fence=None, now_ms=ENDED_MS, callback_id=f"cb_{name}"))
    row = await stored(db, name)
    if has_history:
        streams = Streams(db=db, live=LiveMatches())
        await settle(db, row, speed=SPEED, server_name=SERVER_NAME, streams=streams, now_ms=ENDED_MS)
    if phase is ServerPhase.RELEASED:
        await db.write([servers.release(name, row.fence)])
    return await stored(db, name)


def game_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


async def stored(db: Database, name: str) -> ServerRow:
    row = await servers.get(db, name)
    assert row is not None
    return row


async def store_log(db: Database, row: ServerRow, entries: int | None = None) -> None:
    statements: list[Statement] = []
    for entry in recorded().entries[:entries]:
        statements += raw_log.append(
            row.id, entry.kind, received_ms=entry.received_ms, headers=entry.headers, body=entry.body
        )
    await db.write(statements)


def _ending(row: ServerRow, entries: int | None) -> Ending:
    if entries is not None:
        return Ending(reason="canceled_by_user")
    fold = Fold.begin(row, SPEED)
    for entry in recorded().entries:
        fold.take(entry)
    return Ending(result=msgspec.json.encode(build_result(fold.reader.match)))
