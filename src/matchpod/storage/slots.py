"""Reserve fleet slots for matches. The table's keys allow only one match per slot, and one slot per match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, DuplicateError, NothingChangedError, Statement, Value
from matchpod.storage.rows import parameter_list, write_one
from matchpod.storage.servers import ServerRow
from matchpod.storage.waiting_matches import ORDER, QUEUE

# One statement reads the slots and the queue of waiting matches, so that all processes decide by the same queue. Giving
# a slot to a match does not change the order of the other matches, or which of them get a slot.
_RESERVE: Final = f"""
    WITH free AS (
        SELECT wanted.slot AS slot, wanted.place AS place FROM %s
        WHERE NOT EXISTS (SELECT 1 FROM slots WHERE slots.region = :region AND slots.slot = wanted.slot)
            AND NOT EXISTS (
                SELECT 1 FROM resting_slots
                WHERE resting_slots.region = :region AND resting_slots.slot = wanted.slot
                    AND resting_slots.server_id <> :server_id
            )
    )
    INSERT INTO slots (region, slot, server_id)
    SELECT :region, slot, :server_id FROM free
    WHERE :server_id IN (SELECT id FROM {QUEUE} ORDER BY {ORDER} LIMIT (SELECT COUNT(*) FROM free))
    ORDER BY place LIMIT 1
    RETURNING slot
    """
_RESERVE_SQLITE: Final = _RESERVE % "(SELECT value AS slot, key AS place FROM json_each(:wanted)) AS wanted"
_RESERVE_POSTGRES: Final = _RESERVE % "unnest(CAST(:wanted AS TEXT[])) WITH ORDINALITY AS wanted (slot, place)"
_NOTE: Final = (
    "UPDATE servers SET slot = (SELECT slots.slot FROM slots WHERE slots.server_id = :server_id)"
    " WHERE id = :server_id AND fence = :fence"
)


async def reserve(db: Database, row: ServerRow, wanted: Sequence[str]) -> str | None:
    """Reserve the first free slot in `wanted` for a match that has no slot, and store it in the match's row.

    None if the match gets no slot (free slots may be resting, or left to matches ahead of it in the queue), or if
    the lease was lost.
    """
    match: dict[str, Value] = {"server_id": row.id, "fence": row.fence}
    listed: str | Sequence[str] = wanted if db.is_postgres else msgspec.json.encode(wanted).decode()
    statements = [
        free(row.id),  # a process of an earlier version may have died after reserving a slot
        Statement(
            _RESERVE_POSTGRES if db.is_postgres else _RESERVE_SQLITE,
            {**match, "region": row.region, "wanted": listed},
            must_change=True,
        ),
        Statement(_NOTE, match, must_change=True),
    ]
    while True:
        try:
            _, reserved, _ = await db.write(statements)
        except DuplicateError:
            continue  # another process has just reserved this slot
        except NothingChangedError:
            return None
        return msgspec.convert(reserved[0][0], str)


async def claim_address(db: Database, row: ServerRow, ip: str, port: int) -> bool:
    """Store the address of a match's server; False if another match has the same address, or if the lease was lost.

    If a fleet lists a server twice, two matches could get the same server through different slots.
    """
    claim = Statement(
        "UPDATE servers SET ip = :ip, port = :port WHERE id = :id AND fence = :fence AND NOT EXISTS ("
        " SELECT 1 FROM slots JOIN servers AS others ON others.id = slots.server_id"
        " WHERE others.id <> :id AND others.ip = :ip AND others.port = :port) RETURNING id",
        {"ip": ip, "port": port, "id": row.id, "fence": row.fence},
    )
    if not db.is_postgres:
        return bool((await db.write([claim]))[0])
    # The lock serializes concurrent claims of an address: concurrent statements would not see each other's row.
    lock = Statement("SELECT pg_advisory_xact_lock(hashtext(:address))", {"address": f"{ip} {port}"})
    return bool((await db.write([lock, claim]))[1])


def free(server_id: str) -> Statement:
    return Statement("DELETE FROM slots WHERE server_id = :server_id", {"server_id": server_id})


async def free_orphaned(db: Database, checks: Sequence[str] = ()) -> int:
    """Free the slots of released or unknown servers, except those used by these `checks`; return how many."""
    names, params = parameter_list("check", tuple(checks))
    delete = (
        f"DELETE FROM slots WHERE server_id NOT IN {names} AND NOT EXISTS ("
        "SELECT 1 FROM servers WHERE servers.id = slots.server_id AND servers.phase <> 'released') RETURNING slot"
    )
    return len(await write_one(db, delete, params))


async def taken(db: Database) -> dict[str, dict[str, str]]:
    """Return the server id of each reserved slot, by region and slot name."""
    rows = await db.read("SELECT region, slot, server_id FROM slots ORDER BY region, slot")
    found: dict[str, dict[str, str]] = {}
    for region, slot, server_id in msgspec.convert(rows, list[tuple[str, str, str]]):
        found.setdefault(region, {})[slot] = server_id
    return found
