"""What does a caller ask of the history? Query strings of the lists, the timeline and the leaderboard, as values.

Every reading function takes the decoded pairs of a query string and raises InvalidParamsError with all faults. What
is not given has its default; a `dateFrom` after its `dateTo` is no fault, nothing lies between the two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.played_map import MapStatus
from matchpod.core.query_fields import QueryFields
from matchpod.core.stats import leaderboard
from matchpod.core.stats.leaderboard import LeaderboardSort

MAX_PAGE: Final = 1_000_000_000
"""Past the end of every list, and still far from where `page * pageSize` leaves 64 bits."""

DEFAULT_PAGE_SIZE: Final = 20
MAX_PAGE_SIZE: Final = 100
"""As the interface has it."""

DEFAULT_EVENTS: Final = 100
MAX_EVENTS: Final = 1000
"""A few hundred kilobytes; a caller who asks for more gets this many, and asks again from there."""

MAX_SEQ: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

MAX_MAP_NAME: Final = 128
"""Longer than any map: servers may name theirs as they like."""

SERVER_ID: Final = r"[0-9A-Za-z_-]{1,64}"
"""Wider than the ids we give out; it keeps what no database takes as text away from it."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SERIES_ID: Final = re.compile(r"ser_[0-9A-Za-z_-]{1,60}")

_SERIES_NAMES: Final = ("page", "pageSize", "status", "serverId", "dateFrom", "dateTo")
_MAPS_NAMES: Final = ("page", "pageSize", "limit", "map", "status", "serverId", "dateFrom", "dateTo")


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page of which series or maps; `from_ms` is the first millisecond wanted, `before_ms` the first that is not.

    Both are compared with the start, so with either of them what never started is not asked for.
    """

    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    status: MapStatus | None = None
    server_id: str | None = None
    map_name: str | None = None
    from_ms: int | None = None
    before_ms: int | None = None


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The items of a timeline after one, at most so many."""

    after_seq: int = 0
    limit: int = DEFAULT_EVENTS


class LeaderboardQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The best players by one number, at most so many."""

    sort_by: LeaderboardSort = LeaderboardSort.KILLS
    limit: int = leaderboard.DEFAULT_LIMIT


def read_series_query(given: Sequence[tuple[str, str]]) -> ListQuery:
    """Which series are asked for."""
    return _read_list(QueryFields(given, _SERIES_NAMES))


def read_maps_query(given: Sequence[tuple[str, str]]) -> ListQuery:
    """Which maps are asked for; `limit` is another name of `pageSize` here."""
    return _read_list(QueryFields(given, _MAPS_NAMES))


def read_events_query(given: Sequence[tuple[str, str]]) -> EventsQuery:
    """Which part of a timeline is asked for; more than MAX_EVENTS at once are not given."""
    fields = QueryFields(given, ("afterSeq", "limit"))
    after_seq = fields.whole("afterSeq", at_least=0, at_most=MAX_SEQ) or 0
    limit = fields.whole("limit", at_least=1) or DEFAULT_EVENTS
    fields.check()
    return EventsQuery(after_seq=after_seq, limit=min(limit, MAX_EVENTS))


def read_leaderboard_query(given: Sequence[tuple[str, str]]) -> LeaderboardQuery:
    """Who is asked for, and by which number."""
    fields = QueryFields(given, ("sortBy", "limit"))
    sort_by = fields.choice("sortBy", LeaderboardSort) or LeaderboardSort.KILLS
    limit = fields.whole("limit", at_least=1, at_most=leaderboard.MAX_LIMIT) or leaderboard.DEFAULT_LIMIT
    fields.check()
    return LeaderboardQuery(sort_by=sort_by, limit=limit)


def read_map_id(text: str) -> str | None:
    """The id of a map as it is stored, whatever its case; None for text that is the id of none."""
    folded = text.lower()
    return folded if _UUID.fullmatch(folded) else None


def read_series_id(text: str) -> str | None:
    """The `id` or `seriesId` of a series as it is stored; None for text that is neither."""
    return text if _SERIES_ID.fullmatch(text) else read_map_id(text)


def read_server_id(text: str) -> str | None:
    """The id of a server; None for text that is the id of none."""
    return text if re.fullmatch(SERVER_ID, text) else None


def _read_list(fields: QueryFields) -> ListQuery:
    page = fields.whole("page", at_least=1, at_most=MAX_PAGE)
    page_size = _page_size(fields)
    status = fields.choice("status", MapStatus)
    server_id = fields.text("serverId", _server_id_fault)
    map_name = fields.text("map", _map_name_fault)
    first, last = fields.date("dateFrom"), fields.date("dateTo")
    fields.check()
    return ListQuery(
        page=page or 1,
        page_size=page_size,
        status=status,
        server_id=server_id,
        map_name=map_name,
        from_ms=None if first is None else first.from_ms,
        before_ms=None if last is None else last.before_ms,
    )


def _page_size(fields: QueryFields) -> int:
    page_size = fields.whole("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    limit = fields.whole("limit", at_least=1, at_most=MAX_PAGE_SIZE)
    if page_size is not None and limit is not None and page_size != limit:
        fields.fault("limit", "is another name of pageSize and must not differ from it")
    return page_size or limit or DEFAULT_PAGE_SIZE


def _server_id_fault(text: str) -> str | None:
    return None if read_server_id(text) else "must be 1 to 64 of A-Z a-z 0-9 _ -"


def _map_name_fault(text: str) -> str | None:
    if len(text) > MAX_MAP_NAME:
        return f"must be 1 to {MAX_MAP_NAME} characters"
    for character in text:
        match unicodedata.category(character):
            case "Cc":
                return f"must not contain control characters (found U+{ord(character):04X})"
            case "Cs":  # lone surrogates stand for bytes that could not be decoded
                return "must be UTF-8, percent-encoded; it has bytes that are not"
    return None
