"""Matches: the history of an organization with the filters of the API, also as CSV."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlencode

import msgspec

from matchpod.console.command_lines import curl_line
from matchpod.console.filters import Filters, is_day, read_filters
from matchpod.console.match_csv import csv_heading, csv_rows
from matchpod.console.match_wording import PHASES, STATUSES, standing, tone
from matchpod.console.rendering import HEADERS, NOT_STORED
from matchpod.console.visit import Visit
from matchpod.core.iso_dates import read_date
from matchpod.core.requests.match_list_query import MatchListQuery, read_match_list_query
from matchpod.web.http.responses import Header, PartedResponse, Response

PATH: Final = "/console/matches"
LABELS: Final = {
    "externalMatchId": "External id",
    "status": "Status",
    "phase": "Phase",
    "region": "Region",
    "label": "Label",
    "dateFrom": "Created from (UTC)",
    "dateTo": "to (UTC)",
}
"""The filters that have a field on the page."""
CSV: Final = b"text/csv; charset=utf-8"
FILE: Final[tuple[Header, ...]] = ((b"content-disposition", b'attachment; filename="matches.csv"'),)


async def show_list(visit: Visit) -> Response:
    filters = read_filters(visit.query(), read_match_list_query, LABELS)
    found = None
    if filters.query is not None:
        found = await visit.deps.services.history.matches(visit.principal, filters.query)
    return _page(visit, filters, found=found, status=200 if filters.query is not None else 400)


async def download_csv(visit: Visit) -> Response | PartedResponse:
    """Return the matches of all pages as CSV; the page with its faults if a filter is wrong."""
    filters = read_filters(visit.query(), read_match_list_query, LABELS)
    if filters.query is None:
        return _page(visit, filters, found=None, status=400)
    parts = _csv_parts(visit, filters.query)
    return PartedResponse(parts=parts, content_type=CSV, headers=(*HEADERS, NOT_STORED, *FILE))


async def _csv_parts(visit: Visit, query: MatchListQuery) -> AsyncIterator[bytes]:
    """Return the newest matches that the query selects, as if there were one page."""
    heading = csv_heading()
    now_ms = visit.deps.now_ms()
    before_ms = now_ms + 1 if query.before_ms is None else min(query.before_ms, now_ms + 1)
    seen: set[str] = set()
    number, left, page_size = 1, visit.deps.max_csv_rows, visit.deps.csv_page_size
    while left:
        part = msgspec.structs.replace(query, page=number, page_size=page_size, before_ms=before_ms)
        items = (await visit.deps.services.history.matches(visit.principal, part)).items
        rows = [item for item in items if item.server_id not in seen][:left]
        yield heading + csv_rows(rows)
        heading, left = b"", left - len(rows)
        if len(items) < page_size:
            return
        # Matches that begin or end meanwhile would move the others to other pages, so read on from the time of the
        # last one; those of the same millisecond are read again.
        last = read_date(items[-1].created_at)
        if last is None or last.before_ms == before_ms:
            number += 1
            seen |= {item.server_id for item in items}
        else:
            number, before_ms = 1, last.before_ms
            seen = {item.server_id for item in items if item.created_at == items[-1].created_at}


def _page(visit: Visit, filters: Filters[MatchListQuery], *, found: object, status: int) -> Response:
    query = urlencode(filters.given)
    address = f"{visit.deps.origins.public_url}/api/v1/servers"
    return visit.page(
        "matches.html",
        status=status,
        filters=filters,
        statuses=STATUSES,
        phases=PHASES,
        regions=[region.code for region in visit.deps.services.regions.all()],
        found=found,
        standing=standing,
        tone=tone,
        max_rows=visit.deps.max_csv_rows,
        is_day=is_day,
        curl_line=curl_line(f"{address}?{query}" if query else address),
    )
