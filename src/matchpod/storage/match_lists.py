"""List an organization's matches (rows of `servers`): page by page, newest first, or all that are open.

Matches of the same time are ordered by id. Pages and totals work as in `history_lists`. Totals by status and phase are
stored only for ended matches. The few open matches are counted when they are listed. So are lists filtered by external
match id, search words, label or outcome; their indexes limit how many rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.match_list_query import ListedOutcome, MatchListQuery
from matchpod.core.server_status import ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, Value
from matchpod.storage.history_counts import CountedKind, CountKey
from matchpod.storage.history_lists import DEEP_OFFSET, PageRange, Selection, page_of_ids, total_of
from matchpod.storage.list_positions import ListPositions
from matchpod.storage.match_words import newest_with_words
from matchpod.storage.rows import from_row, parameter_list, plain, read_all, read_number
from matchpod.storage.server_labels import conditions_of, newest_labeled
from matchpod.storage.servers import IS_OPEN_ONLY, ServerRow, ServerSummary

MAX_LISTED: Final = 10_000
"""Maximum number of servers in a list whose total is not stored. Older servers can be found with a narrower time
range."""

_COLUMNS: Final = "SELECT id, org_id, created_at_ms AS sort_ms, region AS map_name, {} AS status FROM servers"
"""The columns of `servers` under the names that `history_lists` uses."""
_ENDED: Final = f"{_COLUMNS} WHERE match_phase = 'ended'"
_OPEN: Final = (
    "SELECT id, org_id, CAST(created_at_ms AS BIGINT) AS sort_ms, CAST(region AS TEXT) AS map_name, {} AS status"
    f" FROM servers WHERE {IS_OPEN_ONLY}"
)
"""`_COLUMNS` for open servers, which are few. The casts keep SQLite from using an index of all servers."""

_OUTCOMES: Final = {
    ListedOutcome.FINISHED: ("match_phase = 'ended'", "reason IS NULL"),
    ListedOutcome.CANCELED: ("match_phase = 'ended'", "reason IS NOT NULL", "status || '' = 'stopped'"),
    ListedOutcome.FAILED: ("match_phase = 'ended'", "reason IS NOT NULL", "status || '' = 'failed'"),
}
_OUTCOMES_BY_ID: Final = {
    ListedOutcome.FINISHED: ("match_phase || '' = 'ended'", "COALESCE(reason, '') = ''"),
    ListedOutcome.CANCELED: ("COALESCE(reason, '') <> ''", "status || '' = 'stopped'"),
    ListedOutcome.FAILED: ("COALESCE(reason, '') <> ''", "status || '' = 'failed'"),
}
"""The conditions of `_OUTCOMES` for servers found by id. They keep PostgreSQL from using the partial index of servers
without a result."""
_COUNTED: Final = frozenset({None, ServerStatus.STOPPED, ServerStatus.FAILED, PublicPhase.ENDED})


class ListedMap(msgspec.Struct, frozen=True, kw_only=True):
    """A map of a listed match. `team1_maps_won` and `team2_maps_won` are those of the series; None without a series."""

    server_id: str
    map_number: int
    map_name: str
    is_needed: bool
    game_mode: str
    status: MapStatus
    team1_score: int
    team2_score: int
    winner: str | None
    team1_maps_won: int | None
    team2_maps_won: int | None


_MAP_COLUMNS: Final = ", ".join(
    f"series.{name}" if name.endswith("_maps_won") else f"maps.{name}" for name in ListedMap.__struct_fields__
)


async def maps_of_listed(db: Database, server_ids: Sequence[str]) -> list[ListedMap]:
    """Return, per match in order, its first map, and its other maps that were played or may still be played."""
    listed, params = parameter_list("server_id", server_ids)
    # The condition on the server ids is repeated for `series`, so that PostgreSQL uses that table's index too.
    found = await db.read(
        f"SELECT {_MAP_COLUMNS} FROM maps LEFT JOIN series"
        f" ON series.server_id = maps.server_id AND series.server_id IN {listed}"
        f" WHERE maps.server_id IN {listed} AND (is_needed = 1 OR map_number = 1) ORDER BY map_number",
        params,
    )
    return [from_row(ListedMap, row) for row in found]


async def list_matches(
    db: Database,
    org_id: str,
    query: MatchListQuery,
    *,
    deep_offset: int = DEEP_OFFSET,
    positions: ListPositions | None = None,
) -> tuple[int, list[ServerSummary]]:
    """Return the total number of matches selected by the query, and the requested page of them."""
    if query.is_empty:
        return 0, []
    if query.external_match_id is not None:
        return await _list_by_external_id(db, org_id, query)
    if query.words is not None:
        return await _list_by_words(db, org_id, query)
    if query.labels:
        return await _list_by_labels(db, org_id, query)
    if query.outcome is not None:
        conditions, params = _conditions(org_id, query, is_ordered=True)
        return await _list_few(db, f"FROM servers WHERE {conditions}", params, query)
    selection = _selection(org_id, query)
    is_counted = selection.key.status in _COUNTED
    total = await total_of(db, selection) if is_counted else await _count_open(db, org_id, query)
    if (query.page - 1) * query.page_size >= total:
        return total, []
    page = PageRange.of(query.page, query.page_size, total)
    # No counts per day are stored for the statuses of open servers, which are few.
    ids, params = await page_of_ids(
        db, selection, page, deep_offset=deep_offset if is_counted else total, positions=positions
    )
    rest = f"FROM servers JOIN ({ids}) AS page ON id = page_id ORDER BY created_at_ms DESC, id"
    return total, await read_all(db, ServerSummary, rest, params)


async def open_of(db: Database, org_id: str) -> list[ServerRow]:
    """Return the servers of an organization's matches without an outcome, newest first."""
    # Sort here: with ORDER BY, SQLite would read all servers of the organization from an index in this order.
    rest = f"FROM servers WHERE org_id = :org_id AND {IS_OPEN_ONLY}"
    found = await read_all(db, ServerRow, rest, {"org_id": org_id})
    return sorted(found, key=lambda row: (-row.created_at_ms, row.id))


async def finished_ids(db: Database, org_id: str, since_ms: int, *, limit: int) -> list[str]:
    """Return the server ids of matches that finished with a result since a time, the latest end first."""
    found = await db.read(
        "SELECT id FROM servers WHERE org_id = :org_id AND ended_at_ms >= :since_ms AND reason IS NULL"
        " ORDER BY ended_at_ms DESC, id LIMIT :limit",
        {"org_id": org_id, "since_ms": since_ms, "limit": limit},
    )
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]


async def summaries_of(db: Database, server_ids: Sequence[str]) -> list[ServerSummary]:
    """Return the servers with these ids, in any order."""
    listed, params = parameter_list("id", server_ids)
    return await read_all(db, ServerSummary, f"FROM servers WHERE id IN {listed}", params)


def _selection(org_id: str, query: MatchListQuery) -> Selection:
    status, column = (query.phase, "match_phase") if query.needs_phase else (query.status, "status")
    return Selection(
        key=CountKey(org_id=org_id, kind=CountedKind.SERVER, status=status, map_name=query.region),
        parts=tuple(part.format(column) for part in _parts(status, query.region)),
        from_ms=max(query.from_ms or 0, 0),  # the count of all days is stored under day -1
        before_ms=query.before_ms,
    )


def _parts(status: str | None, region: str | None) -> tuple[str, ...]:
    """Return queries for the servers that may have the status. Only ended servers have an index with the region."""
    if status not in _COUNTED:
        return (_OPEN,)
    if region is None:
        return (_COLUMNS,)
    return (_ENDED, _OPEN) if status is None else (_ENDED,)


async def _list_by_external_id(db: Database, org_id: str, query: MatchListQuery) -> tuple[int, list[ServerSummary]]:
    conditions, params = _conditions(org_id, query)
    of_labels, label_params = conditions_of(query.labels, server_id="servers.id", created_at_ms="servers.created_at_ms")
    selected = f"FROM servers WHERE {' AND '.join([conditions, *of_labels])}"
    return await _list_few(db, selected, {**params, **label_params}, query)


async def _list_by_labels(db: Database, org_id: str, query: MatchListQuery) -> tuple[int, list[ServerSummary]]:
    found = await newest_labeled(db, org_id, query.labels, from_ms=query.from_ms, before_ms=query.before_ms)
    return await _list_found(db, org_id, found, msgspec.structs.replace(query, labels=()))


async def _list_by_words(db: Database, org_id: str, query: MatchListQuery) -> tuple[int, list[ServerSummary]]:
    words = query.words or ()
    found = await newest_with_words(db, org_id, words, from_ms=query.from_ms, before_ms=query.before_ms)
    return (0, []) if found is None else await _list_found(db, org_id, found, query)


async def _list_found(
    db: Database, org_id: str, by_index: tuple[str, dict[str, Value]], query: MatchListQuery
) -> tuple[int, list[ServerSummary]]:
    """Count the servers that `by_index` finds and that match all other filters, and return the requested page."""
    found, found_params = by_index
    conditions, params = _conditions(org_id, msgspec.structs.replace(query, from_ms=None, before_ms=None))
    of_labels, label_params = conditions_of(query.labels, server_id="servers.id", created_at_ms="servers.created_at_ms")
    found_params = {**params, **found_params, **label_params}
    if conditions != "org_id = :org_id" or of_labels:
        # Check each server in a subquery. With a join, PostgreSQL could begin with `servers`, and run the search once
        # per server.
        joined = " AND ".join(["servers.id = labeled_id", conditions, *of_labels])
        found = f"SELECT * FROM ({found}) AS labeled WHERE (SELECT 1 FROM servers WHERE {joined} LIMIT 1) = 1"
    total = await read_number(db, f"SELECT COUNT(*) FROM ({found}) AS page", found_params)
    page = f"SELECT labeled_id FROM ({found}) AS labeled ORDER BY labeled_ms DESC, labeled_id"
    found_params |= {"page_size": query.page_size, "offset": (query.page - 1) * query.page_size}
    of_page = f"FROM servers WHERE id IN ({page} LIMIT :page_size OFFSET :offset) ORDER BY created_at_ms DESC, id"
    return total, await read_all(db, ServerSummary, of_page, found_params)


async def _list_few(
    db: Database, selected: str, params: dict[str, Value], query: MatchListQuery
) -> tuple[int, list[ServerSummary]]:
    """Count the servers of a query, and return the requested page. They are few enough to be read all at once."""
    counted = f"SELECT 1 {selected} LIMIT :max_listed"
    total = await read_number(db, f"SELECT COUNT(*) FROM ({counted}) AS page", params | {"max_listed": MAX_LISTED})
    start = (query.page - 1) * query.page_size
    params |= {"page_size": max(0, min(query.page_size, MAX_LISTED - start)), "offset": min(start, MAX_LISTED)}
    rest = f"{selected} ORDER BY created_at_ms DESC, id LIMIT :page_size OFFSET :offset"
    return total, await read_all(db, ServerSummary, rest, params)


async def _count_open(db: Database, org_id: str, query: MatchListQuery) -> int:
    conditions, params = _conditions(org_id, query)
    return await read_number(db, f"SELECT COUNT(*) FROM servers WHERE {conditions} AND {IS_OPEN_ONLY}", params)


def _conditions(org_id: str, query: MatchListQuery, *, is_ordered: bool = False) -> tuple[str, dict[str, Value]]:
    """Return the WHERE conditions of a query, and their parameters.

    Unless `is_ordered`, the conditions prevent the database from using an index on `created_at_ms`.
    """
    given: dict[str, Value] = {
        "org_id": org_id,
        "external_match_id": query.external_match_id,
        "region": query.region,
        "match_phase": query.phase if query.needs_phase else None,
        "status": None if query.needs_phase else query.status,
    }
    params = plain({name: value for name, value in given.items() if value is not None})
    # Few servers have the requested external match id or are open, so those are read: `|| ''` keeps SQLite from using
    # an index by region.
    conditions = [f"{name} || '' = :{name}" if name == "region" else f"{name} = :{name}" for name in params]
    if query.outcome is not None:
        conditions += (_OUTCOMES if is_ordered else _OUTCOMES_BY_ID)[query.outcome]
    created = "created_at_ms" if is_ordered else "created_at_ms + 0"
    if query.from_ms is not None:
        conditions.append(f"{created} >= :from_ms")
        params["from_ms"] = query.from_ms
    if query.before_ms is not None:
        conditions.append(f"{created} < :before_ms")
        params["before_ms"] = query.before_ms
    return " AND ".join(conditions), params
