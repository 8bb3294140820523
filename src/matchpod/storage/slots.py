"""Reserve fleet slots for matches. The keys of the table enforce one match per slot and one slot per match."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage.rows import write_one


async def reserve(db: Database, region: str, server_id: str, slots: Sequence[str]) -> str | None:
    """Return the slot this match already has, or reserve the first free one of `slots`; None if all are taken."""
    held = await _slot_of(db, server_id)
    if held is not None:
        return held
    in_use = (await taken(db)).get(region, {})
    for slot in slots:
        if slot in in_use:
            continue
        if await _try_reserve(db, region, slot, server_id):
            return slot
        # A concurrent call has taken this slot for another match, or another slot for this match.
        held = await _slot_of(db, server_id)
        if held is not None:
            return held
    return None


def free(server_id: str) -> Statement:
    """Free the slot of a match, if it has one."""
    return Statement("DELETE FROM slots WHERE server_id = :server_id", {"server_id": server_id})


async def free_orphaned(db: Database) -> int:
    """Free the slots of servers that are released or unknown; return how many."""
    delete = (
        "DELETE FROM slots WHERE NOT EXISTS ("
        "SELECT 1 FROM servers WHERE servers.id = slots.server_id AND servers.phase <> 'released') RETURNING slot"
    )
    return len(await write_one(db, delete))


async def taken(db: Database) -> dict[str, dict[str, str]]:
    """Return the server id in each taken slot, by region."""
    rows = await db.read("SELECT region, slot, server_id FROM slots ORDER BY region, slot")
    found: dict[str, dict[str, str]] = {}
    for region, slot, server_id in msgspec.convert(rows, list[tuple[str, str, str]]):
        found.setdefault(region, {})[slot] = server_id
    return found


async def _slot_of(db: Database, server_id: str) -> str | None:
    rows = await db.read("SELECT slot FROM slots WHERE server_id = :server_id", {"server_id": server_id})
    return msgspec.convert(rows[0][0], str) if rows else None


async def _try_reserve(db: Database, region: str, slot: str, server_id: str) -> bool:
    """Reserve a slot; False if it is taken or the match already has one."""
    insert = (
        "INSERT INTO slots (region, slot, server_id) VALUES (:region, :slot, :server_id)"
        " ON CONFLICT DO NOTHING RETURNING slot"
    )
    return bool(await write_one(db, insert, {"region": region, "slot": slot, "server_id": server_id}))
