"""Store how many maps, series and servers of an organization each list filter selects; every change updates the counts.

To change the rows of a server, a transaction locks the counts, subtracts the rows, changes them and adds them again,
all in SQL, so the counts always match the rows. `lock` must be the first statement. A statement sees the rows as of its
start, so a statement that had to wait for the lock would subtract outdated rows. On PostgreSQL, all changes of an
organization wait for the same row, which `lock` locks, so they cannot deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage.rows import read_number

DAY_MS: Final = 24 * 60 * 60 * 1000
"""Length of a day in ms. Counts are kept per UTC day: there are few enough days to sum their counts, and few enough
rows per day to count the rows of a partial day."""
ENDED: Final = "ended"
"""The status under which all servers with an ended match are counted."""
_ALL_DAYS: Final = -1
_ANY: Final = ""

_UPSERT: Final = (
    " ON CONFLICT (org_id, kind, status, map_name, day) DO UPDATE SET count = history_counts.count + excluded.count"
)
_OF_KEY: Final = (
    "FROM history_counts WHERE org_id = :org_id AND kind = :kind AND status = :status AND map_name = :map_name"
)
# A row is counted under each combination of: its status or any status; its map or any map; its day or all days. Both
# databases name the columns of VALUES column1, column2, …. The first key in sort order has any status and any map on
# all days; `lock` locks its row.
_UPDATE: Final = f"""
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
# A server is counted under each combination of: its region or any region; its day or all days. %s is the status.
_COUNT_SERVER: Final = f"""
    INSERT INTO history_counts (org_id, kind, status, map_name, day, count)
    SELECT org_id, 'server', %s,
        CASE WHEN column1 = 1 THEN region ELSE '{_ANY}' END,
        CASE WHEN column2 = 1 THEN created_at_ms / {DAY_MS} ELSE {_ALL_DAYS} END,
        COUNT(*)
    FROM servers CROSS JOIN (VALUES (0, 0), (0, 1), (1, 0), (1, 1)) AS choices
    WHERE id = :server_id
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
    """
_ADD_ROWS: Final = _UPDATE % "+" + _UPSERT
_SUBTRACT_ROWS: Final = _UPDATE % "-" + _UPSERT


class CountedKind(StrEnum):
    """The kinds of rows that are counted."""

    MAP = "map"
    SERIES = "series"
    SERVER = "server"
    """Counted by region instead of map name. A server whose match has ended is counted again by its final status and as
    `ended`."""


class CountKey(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the maps, series or servers of an organization; None means any value."""

    org_id: str
    kind: CountedKind
    status: str | None = None
    map_name: str | None = None


class DaySpan(msgspec.Struct, frozen=True):
    """Days from `first` up to but excluding `end`; None means no upper bound."""

    first: int
    end: int | None = None


# --- changes ------------------------------------------------------------------------------------------------------


def lock(org_id: str) -> Statement:
    """Lock the counts of an organization until the transaction ends."""
    return Statement(
        "INSERT INTO history_counts (org_id, kind, status, map_name, day, count)"
        f" VALUES (:org_id, 'map', '{_ANY}', '{_ANY}', {_ALL_DAYS}, 0){_UPSERT}",
        {"org_id": org_id},
    )


def lock_by_server(server_id: str) -> Statement:
    """Lock the counts of the organization that owns a server."""
    # Read from `servers`, not from `maps`: another transaction may be about to insert those rows.
    return Statement(
        "INSERT INTO history_counts (org_id, kind, status, map_name, day, count)"
        f" SELECT org_id, 'map', '{_ANY}', '{_ANY}', {_ALL_DAYS}, 0 FROM servers WHERE id = :server_id{_UPSERT}",
        {"server_id": server_id},
    )


def add(server_id: str) -> Statement:
    """Add the current maps and series of a server to the counts."""
    return Statement(_ADD_ROWS, {"server_id": server_id})


def subtract(server_id: str) -> Statement:
    """Subtract the current maps and series of a server from the counts."""
    return Statement(_SUBTRACT_ROWS, {"server_id": server_id})


def add_new(
    org_id: str, *, region: str, created_at_ms: int, map_names: Sequence[str] = (), has_series: bool = False
) -> Statement:
    """Lock the counts of an organization, as `lock` does, and add a new server with its upcoming maps and series.

    The statement does not read the new rows, so it may run before they are inserted.
    """
    names = Counter(map_names)
    params: dict[str, Value] = {
        "org_id": org_id,
        "maps": len(map_names),
        "region": region,
        "today": created_at_ms // DAY_MS,
    }
    for at, (name, count) in enumerate(names.items()):
        params |= {f"name_{at}": name, f"count_{at}": count}
    return Statement(_new_sql(len(names), has_series=has_series), params)


@cache
def _new_sql(names: int, *, has_series: bool) -> str:
    """Return the SQL for a match with this number of distinct map names. Rows that have not started count for day 0."""
    counted = [("map", f"'{_ANY}'", ":maps")] + [("map", f":name_{at}", f":count_{at}") for at in range(names)]
    if has_series:
        counted.append(("series", f"'{_ANY}'", "1"))
    keys = [
        f"(:org_id, '{kind}', '{status}', {name}, {day}, {count})"
        for kind, name, count in counted
        for status in (_ANY, "upcoming")
        for day in (_ALL_DAYS, 0)
        if names or (status, day) == (_ANY, _ALL_DAYS)  # without maps too, because `lock` needs this row
    ]
    keys += [
        f"(:org_id, 'server', '{_ANY}', {region}, {day}, 1)"
        for region in (f"'{_ANY}'", ":region")
        for day in (_ALL_DAYS, ":today")
    ]
    return f"INSERT INTO history_counts (org_id, kind, status, map_name, day, count) VALUES {', '.join(keys)}{_UPSERT}"


def end_server(server_id: str) -> list[Statement]:
    """Add a server whose match has just ended to the counts for its final status and `ended`. First run `lock`."""
    return [
        Statement(_COUNT_SERVER % status + _UPSERT, {"server_id": server_id}) for status in (f"'{ENDED}'", "status")
    ]


# Keep the count of all maps even if it is 0, because `lock` locks this row.
_EMPTY: Final = f"count = 0 AND NOT (kind = 'map' AND status = '{_ANY}' AND map_name = '{_ANY}' AND day = {_ALL_DAYS})"


async def delete_empty(db: Database) -> int:
    """Delete the counts that are 0, per organization; return how many. Past days and unused maps leave such counts."""
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
    """Return the number of counts that `delete_empty` would delete."""
    return await read_number(db, f"SELECT COUNT(*) FROM history_counts WHERE {_EMPTY}")


# --- reading ------------------------------------------------------------------------------------------------------


async def total_of_all_days(db: Database, key: CountKey) -> int:
    """Return the number of rows that the key selects, including maps and series that never started."""
    row = await db.read_one(f"SELECT count {_OF_KEY} AND day = {_ALL_DAYS}", key_params(key))
    return 0 if row is None else msgspec.convert(row[0], int)


def days_sql(columns: str, span: DaySpan) -> tuple[str, dict[str, Value]]:
    """Return a query for the counts per day, and those of its parameters that are not in `key_params`."""
    sql = f"SELECT {columns} {_OF_KEY} AND day >= :first_day"
    if span.end is None:
        return sql, {"first_day": span.first}
    return f"{sql} AND day < :end_day", {"first_day": span.first, "end_day": span.end}


def key_params(key: CountKey) -> dict[str, Value]:
    return {
        "org_id": key.org_id,
        "kind": key.kind.value,
        "status": _ANY if key.status is None else str(key.status),
        "map_name": _ANY if key.map_name is None else key.map_name,
    }


def skip_days(days: Sequence[tuple[int, int]], offset: int) -> tuple[int | None, int]:
    """To skip `offset` rows of a list, return the day to begin with, and the number of rows to skip from that day on.

    `days` are pairs of day and count, newest first; rows not in `days` are older. The day is None if `days` is empty.
    """
    for day, count in days:
        if offset < count:
            return day, offset
        offset -= count
    return (days[-1][0] - 1 if days else None), offset
