"""Store who acknowledged a match that ended without a result, and find those that are not acknowledged.

Both are columns of the match's server, so they are kept as long as the match.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows

_IS_UNACKNOWLEDGED = "org_id = :org_id AND reason IS NOT NULL AND acknowledged_at_ms IS NULL"
"""For each organization there is an index with the other two conditions."""


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """When a match was acknowledged, and by whom."""

    acknowledged_at_ms: int
    acknowledged_by: str | None
    """The id of a key, or of a session without one; None for matches that ended before this was stored."""


async def unacknowledged_ids(db: Database, org_id: str, *, limit: int) -> list[str]:
    """Return the ids of the servers whose matches are not acknowledged, the last that ended first."""
    sql = f"SELECT id FROM servers WHERE {_IS_UNACKNOWLEDGED} ORDER BY ended_at_ms DESC, id LIMIT :limit"
    found = await db.read(sql, {"org_id": org_id, "limit": limit})
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]


async def still_unacknowledged(db: Database, org_id: str, server_ids: Sequence[str]) -> list[str]:
    """Return those of the ids whose matches are the organization's and not acknowledged, in order."""
    listed, params = rows.parameter_list("id", server_ids)
    sql = f"SELECT id FROM servers WHERE {_IS_UNACKNOWLEDGED} AND id IN {listed} ORDER BY id"
    found = await db.read(sql, {"org_id": org_id, **params})
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]


async def of_server(db: Database, server_id: str) -> Acknowledgement | None:
    """Return the acknowledgement of a match; None if there is none."""
    rest = "FROM servers WHERE id = :id AND acknowledged_at_ms IS NOT NULL"
    return await rows.read_first(db, Acknowledgement, rest, {"id": server_id})


def acknowledge(org_id: str, server_ids: Sequence[str], *, before_ms: int | None, given: Acknowledgement) -> Statement:
    """Acknowledge these matches and, with `before_ms`, all that ended before it; NothingChangedError if there are none.

    Returns the ids of those that were not acknowledged before.
    """
    listed, params = rows.parameter_list("id", server_ids)
    chosen = f"id IN {listed}"
    if before_ms is not None:
        # The 0 keeps SQLite from using the index of all ends.
        chosen, params = f"({chosen} OR ended_at_ms + 0 < :before_ms)", {**params, "before_ms": before_ms}
    values: dict[str, Value] = {"org_id": org_id, **rows.to_params(given), **params}
    sql = (
        "UPDATE servers SET acknowledged_at_ms = :acknowledged_at_ms, acknowledged_by = :acknowledged_by"
        f" WHERE {_IS_UNACKNOWLEDGED} AND {chosen} RETURNING id"
    )
    return Statement(sql, values, must_change=True)
