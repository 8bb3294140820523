"""List the maps and series of an organization page by page, as fast with a million rows as with a thousand.

Lists are newest first; rows that never started come last, and ties are ordered by id. The ids of a page are read from
partial indexes that begin with the filtered columns; then only the rows with these ids are read. Matches in progress
are few, and found through their servers. The total comes from `history_counts`; with a date filter, the rows of the
partial days at both ends are counted. For deep pages, whole days are skipped by their counts, and pages near the end
are read backwards. A service caches positions in lists for a while (`list_positions`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.history_query import ListQuery
from matchpod.ports import Database, Row, Value
from matchpod.storage import history
from matchpod.storage.history import MapRow, SeriesRow
from matchpod.storage.history_counts import (
    DAY_MS,
    CountedKind,
    CountKey,
    DaySpan,
    days_sql,
    key_params,
    skip_days,
    total_of_all_days,
)
from matchpod.storage.list_positions import PASSING, ListPositions
from matchpod.storage.rows import from_row, plain, read_all, read_number
from matchpod.storage.server_labels import newest_labeled
from matchpod.storage.servers import IS_OPEN_ONLY, EndColumns

DEEP_OFFSET: Final = 2_000
"""Largest offset at which index entries are skipped one by one, which takes about a millisecond. For larger offsets,
whole days are skipped by their counts."""

_TABLES: Final = {CountedKind.MAP: "maps", CountedKind.SERIES: "series"}
_IS_OVER: Final = "status <> 'upcoming' AND status <> 'live'"
"""SQL condition for maps or series that have ended; also the condition of the partial indexes."""
_IS_GOING_ON: Final = (
    "status IN ('upcoming', 'live')"
    f" AND server_id IN (SELECT id FROM servers WHERE org_id = :org_id AND {IS_OPEN_ONLY})"
)


class HistoryMap(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a map that are shown in a list of series."""

    id: str
    map_number: int
    map_name: str
    played_map_name: str | None
    status: MapStatus
    is_needed: bool


_SERIES_AND_MAP: Final = ", ".join([history.SERIES_AND_END, *(f"maps.{name}" for name in HistoryMap.__struct_fields__)])


class ListedSeries(msgspec.Struct, frozen=True):
    """A series in a list, how its match ended, and its maps in order."""

    series: SeriesRow
    end: EndColumns
    maps: list[HistoryMap]


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Defines which rows a list has. With `from_ms` 0, rows that never started are included."""

    key: CountKey
    parts: tuple[str, ...]
    """Queries whose results together are the rows. Each returns `id`, `org_id`, the filtered columns and
    `sorted_by`."""
    from_ms: int
    before_ms: int | None
    newest_first: str = "sort_ms DESC, id"
    oldest_first: str = "sort_ms, id DESC"
    sorted_by: str = "sort_ms"
    """The columns that both orders use, except `id`."""

    def table(self, order: str = "") -> str:
        """Return SQL for the rows as a table. With an order, PostgreSQL merges the parts; SQLite always does."""
        parts = self.parts
        if order and len(parts) > 1:
            parts = tuple(f"SELECT * FROM ({part} ORDER BY {order}) AS part" for part in parts)
        return f"({' UNION ALL '.join(parts)}) AS listed"

    @property
    def has_dates(self) -> bool:
        """True if the list is filtered by time."""
        return self.from_ms > 0 or self.before_ms is not None


class PageRange(msgspec.Struct, frozen=True):
    """The position of a page in its list: the number of rows before it, on it, and after it."""

    before: int
    size: int
    after: int

    @classmethod
    def of(cls, page: int, page_size: int, total: int) -> PageRange:
        """Return the position of a page; it must begin before the end of the list."""
        before = (page - 1) * page_size
        size = min(page_size, total - before)
        return cls(before, size, total - before - size)


async def list_maps(
    db: Database,
    org_id: str,
    query: ListQuery,
    *,
    deep_offset: int = DEEP_OFFSET,
    positions: ListPositions | None = None,
) -> tuple[int, list[MapRow]]:
    """Return the number of maps that match the query, and the requested page."""
    start = (query.page - 1) * query.page_size
    if query.server_id is not None and not query.labels:
        maps = [row for row in await history.maps_of(db, query.server_id) if _is_selected(row, org_id, query)]
        maps.sort(key=lambda row: (-row.sort_ms, row.map_number))
        return len(maps), maps[start : start + query.page_size]
    selection = _selection(
        CountKey(org_id=org_id, kind=CountedKind.MAP, status=query.status, map_name=query.map_name), query
    )
    total, page, params = await _page(db, selection, query, deep_offset=deep_offset, positions=positions)
    if start >= total:
        return total, []
    rest = f"FROM maps JOIN ({page}) AS page ON id = page_id ORDER BY {selection.newest_first}"
    return total, await read_all(db, MapRow, rest, params)


async def list_series(
    db: Database,
    org_id: str,
    query: ListQuery,
    *,
    deep_offset: int = DEEP_OFFSET,
    positions: ListPositions | None = None,
) -> tuple[int, list[ListedSeries]]:
    """Return the number of series that match the query, and the requested page."""
    start = (query.page - 1) * query.page_size
    if query.server_id is not None and not query.labels:
        page = "SELECT id AS page_id FROM series WHERE server_id = :server_id"
        listed = await _read_series(db, page, {"server_id": query.server_id})
        listed = [item for item in listed if _is_selected(item.series, org_id, query)]
        return len(listed), listed[start:]
    selection = _selection(CountKey(org_id=org_id, kind=CountedKind.SERIES, status=query.status), query)
    total, page, params = await _page(db, selection, query, deep_offset=deep_offset, positions=positions)
    return total, [] if start >= total else await _read_series(db, page, params)


async def _page(
    db: Database, selection: Selection, query: ListQuery, *, deep_offset: int, positions: ListPositions | None
) -> tuple[int, str, dict[str, Value]]:
    """Return the total number of rows of a list, and a query for the ids (`page_id`) of the requested page."""
    if query.labels:
        return await _labeled_page(db, selection, query)
    total = await total_of(db, selection)
    if (query.page - 1) * query.page_size >= total:
        return total, "", {}
    in_list = PageRange.of(query.page, query.page_size, total)
    return total, *await page_of_ids(db, selection, in_list, deep_offset=deep_offset, positions=positions)


async def _labeled_page(db: Database, selection: Selection, query: ListQuery) -> tuple[int, str, dict[str, Value]]:
    """Do the same as `_page` for a list filtered by labels, limited to the newest MAX_LABELED matches with them."""
    labeled, params = await newest_labeled(db, selection.key.org_id, query.labels)
    given = {"server_id": query.server_id, "status": query.status, "map_name": query.map_name}
    wanted = {name: value for name, value in given.items() if value is not None}
    table = _TABLES[selection.key.kind]
    conditions = [f"{table}.server_id = labeled_id", *(f"{name} = :{name}" for name in wanted)]
    if selection.from_ms > 0:
        conditions.append("sort_ms >= :from_ms")
    if selection.before_ms is not None:
        conditions.append("sort_ms < :before_ms")
    params |= plain({**wanted, "from_ms": selection.from_ms, "before_ms": selection.before_ms})
    # CROSS JOIN makes SQLite read the matches with the labels first.
    selected = f"FROM ({labeled}) AS labeled CROSS JOIN {table} WHERE {' AND '.join(conditions)}"
    total = await read_number(db, f"SELECT COUNT(*) {selected}", params)
    params |= {"page_size": query.page_size, "offset": (query.page - 1) * query.page_size}
    page = f"SELECT id AS page_id {selected} ORDER BY {selection.newest_first} LIMIT :page_size OFFSET :offset"
    return total, page, params


async def _read_series(db: Database, page: str, params: Mapping[str, Value]) -> list[ListedSeries]:
    """Return the series whose ids (`page_id`) are selected by the query `page`, newest first."""
    rows = await db.read(
        f"SELECT {_SERIES_AND_MAP} FROM series JOIN ({page}) AS page ON series.id = page_id"
        " LEFT JOIN servers ON servers.id = series.server_id"
        " LEFT JOIN maps ON maps.server_id = series.server_id"
        " ORDER BY series.sort_ms DESC, series.server_id DESC, maps.map_number",
        params,
    )
    return _with_maps(rows)


def _with_maps(rows: list[Row]) -> list[ListedSeries]:
    """Group joined rows by series. A series without maps has one row, in which the map columns are NULL."""
    width = history.SERIES_END_WIDTH
    return [
        ListedSeries(
            *history.split_series(own[0]), [from_row(HistoryMap, row[width:]) for row in own if row[width] is not None]
        )
        for own in (list(own) for _, own in itertools.groupby(rows, lambda row: row[0]))
    ]


# --- selection ----------------------------------------------------------------------------------------------------


def _selection(key: CountKey, query: ListQuery) -> Selection:
    # Rows that never started have no date (`sort_ms` is 0), so a date filter excludes them.
    has_dates = query.from_ms is not None or query.before_ms is not None
    from_ms = max(query.from_ms or 0, int(has_dates))
    # Server ids sort by creation time, so rows that never started are ordered by creation. The maps of a match stay in
    # order.
    is_map = key.kind is CountedKind.MAP
    return Selection(
        key=key,
        parts=_parts(key),
        from_ms=from_ms,
        before_ms=query.before_ms,
        newest_first=f"sort_ms DESC, server_id DESC{', map_number' if is_map else ''}",
        oldest_first=f"sort_ms, server_id{', map_number DESC' if is_map else ''}",
        sorted_by=f"sort_ms, server_id{', map_number' if is_map else ''}",
    )


def _parts(key: CountKey) -> tuple[str, ...]:
    """Return the queries for rows that may have the status: rows that have ended, rows of open servers, or both."""
    table, numbers = ("maps", ", map_number, map_name") if key.kind is CountedKind.MAP else ("series", "")
    over = f"SELECT id, org_id, server_id, status, sort_ms{numbers} FROM {table} WHERE {_IS_OVER}"
    # The casts, to the types that the columns already have, keep SQLite from using other indexes. SQLite merges the
    # parts only if their types are equal.
    names = numbers.replace("map_name", "CAST(map_name AS TEXT) AS map_name")
    going_on = (
        "SELECT id, CAST(org_id AS TEXT) AS org_id, server_id, CAST(status AS TEXT) AS status,"
        f" CAST(sort_ms AS BIGINT) AS sort_ms{names} FROM {table} WHERE {_IS_GOING_ON}"
    )
    return (going_on,) if key.status in PASSING else (over,) if key.status is not None else (over, going_on)


def _is_selected(row: MapRow | SeriesRow, org_id: str, query: ListQuery) -> bool:
    selection = _selection(CountKey(org_id=org_id, kind=CountedKind.MAP), query)
    return (
        row.org_id == org_id
        and query.status in (None, row.status)
        and (not isinstance(row, MapRow) or query.map_name in (None, row.map_name))
        and row.sort_ms >= selection.from_ms
        and (selection.before_ms is None or row.sort_ms < selection.before_ms)
    )


def _conditions(selection: Selection) -> tuple[str, dict[str, Value]]:
    """Return the WHERE conditions, except those on dates, and their parameters."""
    params = key_params(selection.key)
    del params["kind"]
    for name in ("map_name", "status"):
        if not params[name]:
            del params[name]
    return " AND ".join(f"{name} = :{name}" for name in params), params


# --- totals -------------------------------------------------------------------------------------------------------


def split_days(from_ms: int, before_ms: int | None) -> tuple[DaySpan, list[tuple[int, int]]]:
    """Split a time range into its whole days, and (from, before) pairs for the partial days at its ends."""
    first = -(-from_ms // DAY_MS)
    if before_ms is None:
        end = None
        edges = [(from_ms, first * DAY_MS)]
    elif (end := before_ms // DAY_MS) < first:
        return DaySpan(first, first), [(from_ms, before_ms)] if from_ms < before_ms else []
    else:
        edges = [(from_ms, first * DAY_MS), (end * DAY_MS, before_ms)]
    return DaySpan(first, end), [(lower, upper) for lower, upper in edges if lower < upper]


async def total_of(db: Database, selection: Selection) -> int:
    """Return the number of rows of a list: the stored counts of whole days, plus the counted rows of partial days."""
    if not selection.has_dates:
        return await total_of_all_days(db, selection.key)
    span, edges = split_days(selection.from_ms, selection.before_ms)
    whole, day_params = days_sql("CAST(COALESCE(SUM(count), 0) AS BIGINT)", span)
    params = {**key_params(selection.key), **day_params}
    terms = [f"({whole})"]
    for number, (lower, upper) in enumerate(edges):
        terms.append(f"({_count_between(selection, f'lower_{number}', f'upper_{number}')})")
        params |= {f"lower_{number}": lower, f"upper_{number}": upper}
    return await read_number(db, f"SELECT {' + '.join(terms)}", params)


def _count_between(selection: Selection, lower: str, upper: str) -> str:
    conditions, _ = _conditions(selection)
    return f"SELECT COUNT(*) FROM {selection.table()} WHERE {conditions} AND sort_ms >= :{lower} AND sort_ms < :{upper}"


# --- pages --------------------------------------------------------------------------------------------------------


async def page_of_ids(
    db: Database, selection: Selection, page: PageRange, *, deep_offset: int, positions: ListPositions | None = None
) -> tuple[str, dict[str, Value]]:
    """Return a query for the ids (`page_id`) of a page, in no particular order; `positions` speed up deep pages."""
    before_ms, offset, order = selection.before_ms, page.before, selection.newest_first
    conditions, params = _conditions(selection)
    if offset > deep_offset >= page.after:
        offset, order = page.after, selection.oldest_first
    elif offset > deep_offset:
        start = None
        if positions is not None and not selection.has_dates:
            start = await positions.find(
                db, selection.key, page.after, table=selection.table(), conditions=conditions, params=params
            )
        if start is not None:
            offset, order = page.after - start.position, selection.oldest_first
            conditions, params = f"{conditions} AND {start.condition}", {**params, **start.params}
        else:
            day, offset = skip_days(await _newest_days(db, selection), offset)
            if day is not None:
                day_ends_ms = (day + 1) * DAY_MS
                before_ms = day_ends_ms if before_ms is None else min(before_ms, day_ends_ms)
    params |= {"page_size": page.size, "offset": offset}
    if selection.from_ms > 0:
        conditions += " AND sort_ms >= :from_ms"
        params["from_ms"] = selection.from_ms
    if before_ms is not None:
        conditions += " AND sort_ms < :before_ms"
        params["before_ms"] = before_ms
    # SQLite merges the sorted parts only if they select the columns of the order; otherwise it sorts them.
    table = selection.table(order)
    ordered = f"SELECT id, {selection.sorted_by} FROM {table} WHERE {conditions} ORDER BY {order}"
    return f"SELECT id AS page_id FROM ({ordered} LIMIT :page_size OFFSET :offset) AS ordered", params


async def _newest_days(db: Database, selection: Selection) -> list[tuple[int, int]]:
    """Return (day, count) pairs, newest first; the oldest day is left out if the range has only a part of it."""
    span, edges = split_days(selection.from_ms, selection.before_ms)
    sql, day_params = days_sql("day, count", span)
    params = {**key_params(selection.key), **day_params}
    if selection.before_ms is not None and edges and edges[-1][1] == selection.before_ms:
        sql += f" UNION ALL SELECT CAST(:edge_day AS BIGINT), ({_count_between(selection, 'lower', 'upper')})"
        lower, upper = edges[-1]
        params |= {"edge_day": lower // DAY_MS, "lower": lower, "upper": upper}
    rows = await db.read(f"{sql} ORDER BY 1 DESC", params)
    return msgspec.convert(rows, list[tuple[int, int]])
