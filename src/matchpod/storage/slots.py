"""Which match has which place of a region? The table's keys decide: one match a slot, one slot a match."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Statement


async def reserve(db: Database, region: str, server_id: str, slots: Sequence[str]) -> str | None:
    """The slot this match already has, else the first free one of `slots`; None when all are taken."""
    held = await _slot_of(db, server_id)
    if held is not None:
        return held
    in_use = (await taken(db)).get(region, {})
    for slot in slots:
        if slot in in_use:
            continue
        if await _take(db, region, slot, server_id):
            return slot
        # Somebody was faster: with this slot, or (a repeated call) with another slot for this match.
        held = await _slot_of(db, server_id)
        if held is not None:
            return held
    return None


def free(server_id: str) -> Statement:
    """Give back the slot of a match; one that has none is fine."""
    return Statement("DELETE FROM slots WHERE server_id = :server_id", {"server_id": server_id})


async def free_forgotten(db: Database) -> int:
    """Give back the slots of servers that were released or are not known; answers how many."""
    delete = Statement(
        "DELETE FROM slots WHERE NOT EXISTS ("
        "SELECT 1 FROM servers WHERE servers.id = slots.server_id AND servers.phase <> 'released') RETURNING slot"
    )
    (rows,) = await db.write([delete])
    return len(rows)


async def taken(db: Database) -> dict[str, dict[str, str]]:
    """The server in each slot that is taken, by region."""
    rows = await db.read("SELECT region, slot, server_id FROM slots ORDER BY region, slot")
    found: dict[str, dict[str, str]] = {}
    for region, slot, server_id in msgspec.convert(rows, list[tuple[str, str, str]]):
        found.setdefault(region, {})[slot] = server_id
    return found


async def _slot_of(db: Database, server_id: str) -> str | None:
    rows = await db.read("SELECT slot FROM slots WHERE server_id = :server_id", {"server_id": server_id})
    return msgspec.convert(rows[0][0], str) if rows else None


async def _take(db: Database, region: str, slot: str, server_id: str) -> bool:
    """Take a slot; False when the slot or the match is already spoken for."""
    insert = Statement(
        "INSERT INTO slots (region, slot, server_id) VALUES (:region, :slot, :server_id)"
        " ON CONFLICT DO NOTHING RETURNING slot",
        {"region": region, "slot": slot, "server_id": server_id},
    )
    (rows,) = await db.write([insert])
    return bool(rows)
