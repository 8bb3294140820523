"""Matches: the history of an organization with the filters of the API, also as CSV."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

import msgspec

from matchpod.console.command_lines import curl_line
from matchpod.console.filters import Filters, is_day, read_filters
from matchpod.console.match_csv import match_csv
from matchpod.console.match_wording import PHASES, STATUSES, standing, tone
from matchpod.console.rendering import HEADERS, NOT_STORED
from matchpod.console.visit import Visit
from matchpod.core.history_query import MAX_PAGE_SIZE
from matchpod.core.server_query import ServersQuery, read_servers_query
from matchpod.service.history.match_lists import MatchItem
from matchpod.web.endpoint import Header, Response

PATH: Final = "/console/matches"
FIELDS: Final = ("status", "phase", "region", "externalMatchId", "dateFrom", "dateTo")
MAX_ROWS: Final = 10_000
"""Matches in a CSV file."""
CSV: Final = b"text/csv; charset=utf-8"
FILE: Final[tuple[Header, ...]] = ((b"content-disposition", b'attachment; filename="matches.csv"'),)


async def show_list(visit: Visit) -> Response:
    """List matches, newest first."""
    filters = read_filters(visit.query(), read_servers_query)
    found = None
    if filters.query is not None:
        found = await visit.deps.services.history.matches(visit.principal, filters.query)
    return _page(visit, filters, found=found, status=200 if filters.query is not None else 400)


async def download_csv(visit: Visit) -> Response:
    """Return the matches of all pages as CSV; the page with its faults if a filter is wrong."""
    filters = read_filters(visit.query(), read_servers_query)
    if filters.query is None:
        return _page(visit, filters, found=None, status=400)
    # In a thread: ten thousand rows take a tenth of a second, and other requests must not wait for them.
    body = await asyncio.to_thread(match_csv, await _all(visit, filters.query))
    return Response(body, 200, CSV, (*HEADERS, NOT_STORED, *FILE))


async def _all(visit: Visit, query: ServersQuery) -> list[MatchItem]:
    """Return the newest matches that the query selects, as if there were one page."""
    # New matches would move the others to later pages while these are read.
    now_ms = visit.deps.now_ms()
    before_ms = now_ms + 1 if query.before_ms is None else min(query.before_ms, now_ms + 1)
    found: dict[str, MatchItem] = {}
    for number in range(1, MAX_ROWS // MAX_PAGE_SIZE + 1):
        part = msgspec.structs.replace(query, page=number, page_size=MAX_PAGE_SIZE, before_ms=before_ms)
        page = await visit.deps.services.history.matches(visit.principal, part)
        found |= {one.server_id: one for one in page.items}
        if number * MAX_PAGE_SIZE >= page.total:
            break
    return list(found.values())


def _page(visit: Visit, filters: Filters[ServersQuery], *, found: object, status: int) -> Response:
    query = urlencode(filters.given)
    address = f"{visit.deps.doors.public_url}/api/v1/servers"
    return visit.page(
        "matches.html",
        status=status,
        filters=filters,
        fields=FIELDS,
        statuses=STATUSES,
        phases=PHASES,
        regions=[region.code for region in visit.deps.services.regions.all()],
        found=found,
        standing=standing,
        tone=tone,
        max_rows=MAX_ROWS,
        is_day=is_day,
        curl_line=curl_line(f"{address}?{query}" if query else address),
    )
