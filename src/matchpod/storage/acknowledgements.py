"""Store who acknowledged a match that ended without a result, and find unacknowledged matches.

A match that was canceled on request needs no acknowledgement. It may still have one, from an earlier version or because
of a ruling.

The person and the time are columns of the match's row in `servers`, so they are kept as long as the match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from matchpod.core.effects import BY_HAND
from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows

_HAND = ", ".join(f"'{reason}'" for reason in BY_HAND)
_OF_KIND = {
    True: f"org_id = :org_id AND reason IN ({_HAND}) AND acknowledged_at_ms IS NULL",
    False: f"org_id = :org_id AND reason NOT IN ({_HAND}) AND acknowledged_at_ms IS NULL",
}
"""SQL condition for an organization's unacknowledged matches that were canceled on request (True) or failed (False).
Each condition has a partial index. Neither index has matches with a result, because their `reason` is NULL."""
_IS_LISTED = "org_id = :org_id AND reason IS NOT NULL AND acknowledged_at_ms IS NULL"


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """When a match was acknowledged, and by whom."""

    acknowledged_at_ms: int
    acknowledged_by: str | None
    """Id of the API key; if the session was started without a key, the session's id. None for matches that ended before
    this was stored."""


async def unacknowledged_ids(db: Database, org_id: str, *, limit: int) -> list[str]:
    """Return the server ids of an organization's failed matches that are not acknowledged, the latest end first."""
    sql = f"SELECT id FROM servers WHERE {_OF_KIND[False]} ORDER BY ended_at_ms DESC, id LIMIT :limit"
    return await _ids(db, sql, {"org_id": org_id, "limit": limit})


async def canceled_ids(db: Database, org_id: str, since_ms: int, *, limit: int) -> list[str]:
    """Return the server ids of unacknowledged matches canceled on request since a time, the latest end first."""
    sql = (
        f"SELECT id FROM servers WHERE {_OF_KIND[True]} AND ended_at_ms >= :since_ms"
        " ORDER BY ended_at_ms DESC, id LIMIT :limit"
    )
    return await _ids(db, sql, {"org_id": org_id, "since_ms": since_ms, "limit": limit})


async def still_unacknowledged(db: Database, org_id: str, server_ids: Sequence[str]) -> list[str]:
    """Return, in order, those ids of the organization's matches that ended without a result and are unacknowledged."""
    listed, params = rows.parameter_list("id", server_ids)
    sql = f"SELECT id FROM servers WHERE {_IS_LISTED} AND id IN {listed} ORDER BY id"
    return await _ids(db, sql, {"org_id": org_id, **params})


async def of_server(db: Database, server_id: str) -> Acknowledgement | None:
    rest = "FROM servers WHERE id = :id AND acknowledged_at_ms IS NOT NULL"
    return await rows.read_first(db, Acknowledgement, rest, {"id": server_id})


def acknowledge(org_id: str, server_ids: Sequence[str], given: Acknowledgement) -> Statement:
    """Acknowledge these matches, and return the newly acknowledged ids; NothingChangedError if there are none."""
    listed, params = rows.parameter_list("id", server_ids)
    return _acknowledge(f"{_IS_LISTED} AND id IN {listed}", {"org_id": org_id, **params}, given)


def acknowledge_older(org_id: str, before_ms: int, given: Acknowledgement) -> Statement:
    """Acknowledge all matches that failed and ended before a time; NothingChangedError if there are none."""
    # `+ 0` prevents SQLite from choosing the index of all ended matches.
    condition = f"{_OF_KIND[False]} AND ended_at_ms + 0 < :before_ms"
    return _acknowledge(condition, {"org_id": org_id, "before_ms": before_ms}, given)


def withdraw(org_id: str, given: Acknowledgement) -> Statement:
    """Undo the acknowledgements equal to `given` of matches without a ruling; NothingChangedError if there are none."""
    sql = (
        "UPDATE servers SET acknowledged_at_ms = NULL, acknowledged_by = NULL WHERE org_id = :org_id"
        " AND acknowledged_at_ms = :acknowledged_at_ms AND acknowledged_by = :acknowledged_by AND ruling IS NULL"
        " RETURNING id"
    )
    return Statement(sql, {"org_id": org_id, **rows.to_params(given)}, must_change=True)


def _acknowledge(condition: str, params: Mapping[str, Value], given: Acknowledgement) -> Statement:
    sql = (
        "UPDATE servers SET acknowledged_at_ms = :acknowledged_at_ms, acknowledged_by = :acknowledged_by"
        f" WHERE {condition} RETURNING id"
    )
    return Statement(sql, {**params, **rows.to_params(given)}, must_change=True)


async def _ids(db: Database, sql: str, params: Mapping[str, Value]) -> list[str]:
    found = await db.read(sql, params)
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]
