"""How many maps and series does an organization have, for each filter of its lists? Counted when they change.

Whoever changes what is counted takes a server's rows off, changes them and adds them again, all in one transaction and
in SQL, so the counts follow the rows whatever they have become. `lock` comes first: a statement sees the rows as they
were when it began, so one that had to wait for the counts would take off what was there before. On PostgreSQL the
changes of an organization queue at that one row, and no two of them wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.played_map import MapStatus
from matchpod.ports import Database, Statement, Value

DAY_MS: Final = 24 * 60 * 60 * 1000
"""Counts are kept by days, in UTC: few enough to be added up, short enough for the rest to be counted."""
_ALL_DAYS: Final = -1
_ANY: Final = ""

_ADD: Final = (
    " ON CONFLICT (org_id, kind, status, map_name, day) DO UPDATE SET count = history_counts.count + excluded.count"
)
_OF_KEY: Final = (
    "FROM history_counts WHERE org_id = :org_id AND kind = :kind AND status = :status AND map_name = :map_name"
)
# Every row counts once by each choice of: its status or any, its map or any, its day or all. Both databases call the
# columns of VALUES so. The first key is that of all maps on all days, where `lock` waits.
_CHANGE: Final = f"""
    INSERT INTO history_counts (org_id, kind, status, map_name, day, count)
    SELECT org_id, kind,
        CASE WHEN column1 = 1 THEN status ELSE '{_ANY}' END,
        CASE WHEN column2 = 1 THEN map_name ELSE '{_ANY}' END,
        CASE WHEN column3 = 1 THEN sort_ms / {DAY_MS} ELSE {_ALL_DAYS} END,
        %s COUNT(*)
    FROM (
        SELECT org_id, 'map' AS kind, status, map_name, sort_ms FROM maps WHERE server_id = :server_id
        UNION ALL
        SELECT org_id, 'series' AS kind, status, '' AS map_name, sort_ms FROM series WHERE server_id = :server_id
    ) AS counted
    CROSS JOIN (
        VALUES (0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1)
    ) AS choices
    WHERE kind = 'map' OR column2 = 0
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    """
_COUNT: Final = _CHANGE % "+" + _ADD
_UNCOUNT: Final = _CHANGE % "-" + _ADD


class Kind(StrEnum):
    """What is counted."""

    MAP = "map"
    SERIES = "series"


class CountKey(msgspec.Struct, frozen=True, kw_only=True):
    """Which of an organization's maps or series are meant; None is any."""

    org_id: str
    kind: Kind
    status: MapStatus | None = None
    map_name: str | None = None


class DaySpan(msgspec.Struct, frozen=True):
    """Days from the first to the one before `end`; None is open."""

    first: int
    end: int | None = None


# --- changes ------------------------------------------------------------------------------------------------------


def lock(org_id: str) -> Statement:
    """Wait until nobody else changes the counts of an organization; then hold others up until the commit."""
    return Statement(
        "INSERT INTO history_counts (org_id, kind, status, map_name, day, count)"
        f" VALUES (:org_id, 'map', '{_ANY}', '{_ANY}', {_ALL_DAYS}, 0){_ADD}",
        {"org_id": org_id},
    )


def lock_of_server(server_id: str) -> Statement:
    """The same for the organization that a server belongs to."""
    # Of the server, not of its maps: somebody may be about to write those.
    return Statement(
        "INSERT INTO history_counts (org_id, kind, status, map_name, day, count)"
        f" SELECT org_id, 'map', '{_ANY}', '{_ANY}', {_ALL_DAYS}, 0 FROM servers WHERE id = :server_id{_ADD}",
        {"server_id": server_id},
    )


def count(server_id: str) -> Statement:
    """Add the maps and the series of a server as they are now."""
    return Statement(_COUNT, {"server_id": server_id})


def uncount(server_id: str) -> Statement:
    """Take the maps and the series of a server off as they are now."""
    return Statement(_UNCOUNT, {"server_id": server_id})


# Not the count of all maps, which transactions of the organization wait for.
_EMPTY: Final = f"count = 0 AND NOT (kind = 'map' AND status = '{_ANY}' AND map_name = '{_ANY}' AND day = {_ALL_DAYS})"


async def forget_empty(db: Database) -> int:
    """Delete counts that have become 0, one organization at a time; every map and day leaves some behind."""
    organizations = await db.read(f"SELECT DISTINCT org_id FROM history_counts WHERE {_EMPTY} ORDER BY org_id")
    deleted = 0
    for (org_id,) in msgspec.convert(organizations, list[tuple[str]]):
        delete = Statement(
            f"DELETE FROM history_counts WHERE org_id = :org_id AND {_EMPTY} RETURNING day", {"org_id": org_id}
        )
        _, rows = await db.write([lock(org_id), delete])
        deleted += len(rows)
    return deleted


async def count_empty(db: Database) -> int:
    """How many counts `forget_empty` would delete."""
    rows = await db.read(f"SELECT COUNT(*) FROM history_counts WHERE {_EMPTY}")
    return msgspec.convert(rows[0][0], int)


# --- reading ------------------------------------------------------------------------------------------------------


async def total_of_all_days(db: Database, key: CountKey) -> int:
    """How many there are, whenever they started and if they never did."""
    row = await db.look_up(f"SELECT count {_OF_KEY} AND day = {_ALL_DAYS}", key_params(key))
    return 0 if row is None else msgspec.convert(row[0], int)


def days_sql(columns: str, span: DaySpan) -> tuple[str, dict[str, Value]]:
    """A query of the counts of single days, for use with `key_params`, and the parameters that it has besides."""
    sql = f"SELECT {columns} {_OF_KEY} AND day >= :first_day"
    if span.end is None:
        return sql, {"first_day": span.first}
    return f"{sql} AND day < :end_day", {"first_day": span.first, "end_day": span.end}


def key_params(key: CountKey) -> dict[str, Value]:
    """The parameters that say which counts are meant."""
    return {
        "org_id": key.org_id,
        "kind": key.kind.value,
        "status": _ANY if key.status is None else key.status.value,
        "map_name": _ANY if key.map_name is None else key.map_name,
    }


def skip_days(days: Sequence[tuple[int, int]], offset: int) -> tuple[int | None, int]:
    """From which day a list is to be read, and how many of it to skip, when `offset` are to be skipped in all.

    `days` are pairs of day and count, the newest first; what is not among them is older. None: from the beginning.
    """
    for day, here in days:
        if offset < here:
            return day, offset
        offset -= here
    return (days[-1][0] - 1 if days else None), offset
