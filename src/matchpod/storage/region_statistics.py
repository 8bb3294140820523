"""Read when the newest matches of each region were created, started and failed."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.ports import Database, Value
from matchpod.storage import rows
from matchpod.storage.servers import IS_OPEN_ONLY

MAX_ROWS: Final = 1_000
"""Maximum number of matches returned per region: the newest. Older matches are only counted."""


class StartedMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A match, with the numbers of all and of failed matches in its region."""

    region: str
    created: int
    """Number of matches in the region."""
    failed: int
    """Number of failed matches in the region."""
    is_last_failure: bool
    """True for the match of the region that failed last."""
    created_at_ms: int
    running_at_ms: int | None
    ended_at_ms: int | None
    reason: CancelReason | None
    failure: Failure | None


class WaitingMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of matches in a region that wait for a server, with the creation time of the oldest."""

    region: str
    pending: int
    """Number of matches that wait for a free server."""
    pending_since_ms: int | None
    retried: int
    """Number of matches that wait for another server, because an earlier server did not start."""
    retried_since_ms: int | None


_IS_PENDING: Final = "phase = 'pending'"
_IS_RETRIED: Final = "tries > 0 AND running_at_ms IS NULL"


async def waiting_matches(db: Database, org_id: str | None) -> list[WaitingMatches]:
    """Return, per region with open matches, how many matches wait; optionally only those of one organization."""
    columns = ", ".join(
        f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS {name},"
        f" MIN(CASE WHEN {condition} THEN created_at_ms END) AS {name}_since_ms"
        for name, condition in (("pending", _IS_PENDING), ("retried", _IS_RETRIED))
    )
    of_org = "" if org_id is None else " AND org_id = :org_id"
    sql = f"SELECT region, {columns} FROM servers WHERE {IS_OPEN_ONLY}{of_org} GROUP BY region"
    found = await db.read(sql, {} if org_id is None else {"org_id": org_id})
    return [rows.from_row(WaitingMatches, row) for row in found]


_IS_FAILED: Final = "CASE WHEN status = 'failed' THEN 1 ELSE 0 END"
_COUNTED: Final = f"""
    SELECT region, created_at_ms, running_at_ms, ended_at_ms, reason, failure,
        COUNT(*) OVER (PARTITION BY region) AS created,
        SUM({_IS_FAILED}) OVER (PARTITION BY region) AS failed,
        ROW_NUMBER() OVER (PARTITION BY region ORDER BY created_at_ms DESC, id DESC) AS number,
        {_IS_FAILED} * ROW_NUMBER() OVER (PARTITION BY region, status ORDER BY ended_at_ms DESC, id) AS failure_number
    FROM servers WHERE
"""
_COLUMNS: Final = rows.column_list(StartedMatch).replace("is_last_failure", "failure_number")


async def newest_matches(
    db: Database, org_id: str | None, *, since_ms: int, since_id: str, limit: int = MAX_ROWS
) -> list[StartedMatch]:
    """Return, per region, the newest matches and the match that failed last, each with the region's numbers.

    If `org_id` is given, only matches of this organization are returned and counted. All were created since `since_ms`.
    `since_id` is the lowest server id of that time; without `org_id`, the matches are found with it by primary key.
    """
    params: dict[str, Value] = {"since_ms": since_ms, "since_id": since_id, "limit": limit}
    condition = "id >= :since_id AND created_at_ms >= :since_ms"
    if org_id is not None:
        params["org_id"] = org_id
        condition = "org_id = :org_id AND created_at_ms >= :since_ms"
        del params["since_id"]
    sql = f"SELECT {_COLUMNS} FROM ({_COUNTED} {condition}) AS counted WHERE number <= :limit OR failure_number = 1"
    return [rows.from_row(StartedMatch, row) for row in await db.read(sql, params)]
