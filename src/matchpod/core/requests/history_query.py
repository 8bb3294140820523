"""Parse the query strings of lists, timelines and leaderboards, and the ids in paths.

A `read_…_query` function accepts the decoded pairs of a query string and raises InvalidParamsError with all faults.
Absent parameters have defaults. A `dateFrom` after `dateTo` is not a fault: the range is empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from matchpod.core.faults import Fault, FaultCode
from matchpod.core.labels import MAX_LABELS, Label, read_label
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.query_fields import QueryFields
from matchpod.core.requests.text_rules import filter_fault, label_fault
from matchpod.core.views import leaderboard
from matchpod.core.views.leaderboard import LeaderboardSort

MAX_PAGE: Final = 1_000_000_000
"""Highest page number. No list has as many pages, and `page * pageSize` still fits into 64 bits."""

DEFAULT_PAGE_SIZE: Final = 20
MAX_PAGE_SIZE: Final = 100
"""Default and maximum number of items per page, as documented in the API."""

DEFAULT_EVENTS: Final = 100
MAX_EVENTS: Final = 1000
"""Default and maximum number of timeline items per response, a few hundred kilobytes. Higher limits are reduced."""

MAX_SEQ: Final = 2**53 - 1
"""Highest `afterSeq`: the largest integer that every JSON parser represents exactly."""

MAX_MAP_NAME: Final = 128
"""Maximum length of a map name in a filter: longer than any known name, because servers may use any name."""

SERVER_ID: Final = r"[0-9A-Za-z_-]{1,64}"
"""Pattern of server ids: broader than the ids that the service generates, but without NUL and lone surrogates, which
the database does not accept."""

_SERVER_ID: Final = re.compile(SERVER_ID)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SERIES_ID: Final = re.compile(r"ser_[0-9A-Za-z_-]{1,60}")

LABEL: Final = "label"
"""The query parameter that filters by label. It may be repeated."""

_SERIES_NAMES: Final = ("page", "pageSize", "status", "serverId", LABEL, "dateFrom", "dateTo")
_SERVER_SERIES_NAMES: Final = ("page", "pageSize", "status", "dateFrom", "dateTo")
_MAPS_NAMES: Final = ("page", "pageSize", "limit", "map", "status", "serverId", LABEL, "dateFrom", "dateTo")


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filters and page of a list of series or maps; `from_ms` is inclusive, `before_ms` exclusive.

    Both are compared with the start time, so either of them excludes series and maps that never started.
    """

    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    status: MapStatus | None = None
    server_id: str | None = None
    map_name: str | None = None
    labels: tuple[Label, ...] = ()
    """Only series or maps of matches that have all of these labels."""
    from_ms: int | None = None
    before_ms: int | None = None


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for at most `limit` timeline items after `after_seq`."""

    after_seq: int = 0
    limit: int = DEFAULT_EVENTS


class LeaderboardQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the top players by one statistic, at most `limit`."""

    sort_by: LeaderboardSort = LeaderboardSort.KILLS
    limit: int = leaderboard.DEFAULT_LIMIT


def read_series_query(pairs: Sequence[tuple[str, str]]) -> ListQuery:
    return _read_list(QueryFields(pairs, _SERIES_NAMES, repeatable=(LABEL,)))


def read_server_series_query(pairs: Sequence[tuple[str, str]]) -> ListQuery:
    """Parse the query of a server's series list, whose path contains the server id."""
    return _read_list(QueryFields(pairs, _SERVER_SERIES_NAMES))


def read_maps_query(pairs: Sequence[tuple[str, str]]) -> ListQuery:
    """Parse the query of the maps list, where `limit` is an alias of `pageSize`."""
    return _read_list(QueryFields(pairs, _MAPS_NAMES, repeatable=(LABEL,)))


def read_events_query(pairs: Sequence[tuple[str, str]]) -> EventsQuery:
    """Parse the query of a timeline; a limit above MAX_EVENTS is reduced to it."""
    fields = QueryFields(pairs, ("afterSeq", "limit"))
    after_seq = fields.integer("afterSeq", at_least=0, at_most=MAX_SEQ) or 0
    limit = fields.integer("limit", at_least=1) or DEFAULT_EVENTS
    fields.check()
    return EventsQuery(after_seq=after_seq, limit=min(limit, MAX_EVENTS))


def read_leaderboard_query(pairs: Sequence[tuple[str, str]]) -> LeaderboardQuery:
    fields = QueryFields(pairs, ("sortBy", "limit"))
    sort_by = fields.choice("sortBy", LeaderboardSort) or LeaderboardSort.KILLS
    limit = fields.integer("limit", at_least=1, at_most=leaderboard.MAX_LIMIT) or leaderboard.DEFAULT_LIMIT
    fields.check()
    return LeaderboardQuery(sort_by=sort_by, limit=limit)


def read_labels(fields: QueryFields) -> tuple[Label, ...]:
    """Read the labels by which a list is filtered."""
    return tuple(map(read_label, fields.texts(LABEL, label_fault, at_most=MAX_LABELS)))


def read_map_id(text: str) -> str | None:
    """Return a map id in lower case, as stored; None if the text is not a valid id."""
    folded = text.lower()
    return folded if _UUID.fullmatch(folded) else None


def read_series_id(text: str) -> str | None:
    """Return the `id` or `seriesId` of a series as stored; None if the text has neither form."""
    return text if _SERIES_ID.fullmatch(text) else read_map_id(text)


def read_server_id(text: str) -> str | None:
    """Return the text if it is a valid server id, else None."""
    return text if _SERVER_ID.fullmatch(text) else None


def server_id_fault(text: str) -> Fault | None:
    """Return None for a valid server id, else a fault."""
    return None if read_server_id(text) else Fault(FaultCode.NOT_A_SERVER_ID)


def _read_list(fields: QueryFields) -> ListQuery:
    page = fields.integer("page", at_least=1, at_most=MAX_PAGE)
    page_size = _page_size(fields)
    status = fields.choice("status", MapStatus)
    server_id = fields.text("serverId", server_id_fault)
    map_name = fields.text("map", partial(filter_fault, max_length=MAX_MAP_NAME))
    labels = read_labels(fields)
    date_from, date_to = fields.date("dateFrom"), fields.date("dateTo")
    fields.check()
    return ListQuery(
        page=page or 1,
        page_size=page_size,
        status=status,
        server_id=server_id,
        map_name=map_name,
        labels=labels,
        from_ms=None if date_from is None else date_from.from_ms,
        before_ms=None if date_to is None else date_to.before_ms,
    )


def _page_size(fields: QueryFields) -> int:
    page_size = fields.integer("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    limit = fields.integer("limit", at_least=1, at_most=MAX_PAGE_SIZE)
    if page_size is not None and limit is not None and page_size != limit:
        fields.fault("limit", FaultCode.DIFFERS_FROM_PAGE_SIZE)
    return page_size or limit or DEFAULT_PAGE_SIZE
