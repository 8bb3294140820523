"""Store withheld servers: they have no match, but the sweep does not release them until an operator confirms it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from matchpod.ports import Database, Statement


class WithheldServer(msgspec.Struct, frozen=True):
    """A withheld server, and whether an operator has confirmed its release."""

    region: str
    server_id: str
    since_ms: int
    is_confirmed: bool


async def withheld_servers(db: Database) -> dict[str, list[WithheldServer]]:
    """Return all withheld servers by region, in the order of their ids."""
    sql = "SELECT region, server_id, since_ms, is_confirmed FROM withheld_servers ORDER BY region, server_id"
    found: dict[str, list[WithheldServer]] = {}
    for region, server_id, since_ms, flag in msgspec.convert(await db.read(sql), list[tuple[str, str, int, int]]):
        found.setdefault(region, []).append(WithheldServer(region, server_id, since_ms, flag == 1))
    return found


async def add(db: Database, region: str, server_ids: Collection[str], now_ms: int) -> None:
    """Withhold servers. Servers that are already withheld do not change."""
    insert = (
        "INSERT INTO withheld_servers (region, server_id, since_ms, is_confirmed)"
        " VALUES (:region, :server_id, :since_ms, 0) ON CONFLICT (region, server_id) DO NOTHING"
    )
    await db.write(
        [Statement(insert, {"region": region, "server_id": server_id, "since_ms": now_ms}) for server_id in server_ids]
    )


async def remove(db: Database, region: str, server_ids: Collection[str]) -> None:
    """Stop withholding servers that no longer exist, or that have a match after all."""
    delete = "DELETE FROM withheld_servers WHERE region = :region AND server_id = :server_id"
    await db.write([Statement(delete, {"region": region, "server_id": server_id}) for server_id in server_ids])


def confirm(region: str, server_id: str) -> Statement:
    """Confirm the release of a server. The next sweep releases it."""
    update = "UPDATE withheld_servers SET is_confirmed = 1 WHERE region = :region AND server_id = :server_id"
    return Statement(update, {"region": region, "server_id": server_id})
