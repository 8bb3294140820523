"""List the matches of an organization, also as CSV. Cancel the selected matches, or resend their callbacks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from matchpod.console.command_lines import curl_line
from matchpod.console.filters import Filters, is_day, read_filters
from matchpod.console.match_csv import csv_heading, csv_rows
from matchpod.console.match_wording import OUTCOMES, PHASES, standing, tone
from matchpod.console.rendering import HEADERS, NOT_STORED
from matchpod.console.visit import Visit
from matchpod.core.errors import CallbackWaitingError, InvalidParamsError, ServerNotRunningError
from matchpod.core.iso_dates import read_date
from matchpod.core.labels import MAX_LABELED
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.requests.history_query import MAX_PAGE_SIZE, read_server_id
from matchpod.core.requests.match_list_query import MatchListQuery, read_match_list_query
from matchpod.core.server_status import ServerStatus
from matchpod.web.http.responses import Header, PartedResponse, Response

PATH: Final = "/console/matches"
LABELS: Final = {
    "search": "Search",
    "outcome": "Outcome",
    "phase": "Phase",
    "region": "Region",
    "dateFrom": "Created from",
    "dateTo": "to",
}
"""Labels of the filters that have a field on the page."""
OTHERS: Final = ("status", "externalMatchId", "label")
"""Filters that are set only by links, and have no field on the page."""
SELECTED: Final = "selected-"
"""Prefix of the name of a checkbox that selects a match. The id of the match's server follows."""
MAX_FILTERS: Final = 20
CSV: Final = b"text/csv; charset=utf-8"
FILE: Final[tuple[Header, ...]] = ((b"content-disposition", b'attachment; filename="matches.csv"'),)


async def show_list(visit: Visit) -> Response:
    filters = read_filters(visit.query(), read_match_list_query, LABELS)
    found = None
    if filters.query is not None:
        found = await visit.deps.services.history.matches(visit.principal, filters.query)
    return _page(visit, filters, found=found, status=200 if filters.query is not None else 400)


async def download_csv(visit: Visit) -> Response | PartedResponse:
    """Return the matches on all pages of the list as CSV. If a filter is invalid, return the page with its faults."""
    filters = read_filters(visit.query(), read_match_list_query, LABELS)
    if filters.query is None:
        return _page(visit, filters, found=None, status=400)
    parts = _csv_parts(visit, filters.query)
    return PartedResponse(parts=parts, content_type=CSV, headers=(*HEADERS, NOT_STORED, *FILE))


async def cancel_selected(visit: Visit) -> Response:
    """Cancel the selected matches that have not ended."""
    given, canceled = await visit.form(), 0
    selected, matches = _selected(given), visit.deps.services.matches
    for server_id in selected:
        server = await matches.get(visit.principal, server_id)
        if server.status not in (ServerStatus.STOPPED, ServerStatus.FAILED):
            with suppress(ServerNotRunningError):  # the match has just ended
                await matches.cancel(visit.principal, server_id)
                canceled += 1
    word = "selection-canceled" if canceled else "selection-not-canceled"
    return _back(visit, given, word if selected else "nothing-selected", number=canceled)


async def redeliver_selected(visit: Visit) -> Response:
    """Send the newest callback of each selected match again, except callbacks that wait for an attempt."""
    given, sent = await visit.form(), 0
    selected, callbacks = _selected(given), visit.deps.services.callbacks
    for server_id in selected:
        found = await callbacks.list(visit.principal, CallbacksQuery(server_id=server_id, page_size=1))
        if found.items and found.items[0].state is not CallbackState.WAITING:
            with suppress(CallbackWaitingError):  # another user has just sent it again
                await callbacks.redeliver(visit.principal, found.items[0].id)
                sent += 1
    word = "selection-redelivered" if sent else "selection-not-redelivered"
    return _back(visit, given, word if selected else "nothing-selected", number=sent)


def _selected(given: Mapping[str, str]) -> Sequence[str]:
    """Return the ids of the selected servers, which the names of the form's fields contain."""
    ids = [name.removeprefix(SELECTED) for name in given if name.startswith(SELECTED)]
    if len(ids) > MAX_PAGE_SIZE or not all(map(read_server_id, ids)):
        raise InvalidParamsError(f"Select the matches of one page, at most {MAX_PAGE_SIZE}.")
    return ids


def _back(visit: Visit, given: Mapping[str, str], notice: str, *, number: int) -> Response:
    """Redirect to the list, with the same filters as before."""
    query = urlencode(parse_qsl(given.get("back", ""))[:MAX_FILTERS])
    return visit.done(f"{PATH}?{query}" if query else PATH, notice, number=number)


async def _csv_parts(visit: Visit, query: MatchListQuery) -> AsyncIterator[bytes]:
    """Yield the newest matches on all pages of the query, at most `max_csv_rows`, as parts of one CSV file."""
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
        # If matches begin or end between two queries, matches may move to another page. So each query begins at the
        # creation time of the last match; matches with the same time are read again and skipped.
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
        others=[
            (name, value) for name, value in filters.given.items() if name in OTHERS and name not in filters.faults
        ],
        outcomes=OUTCOMES,
        phases=PHASES,
        most_found=MAX_LABELED,
        query_text=query,
        selected=SELECTED,
        regions=[region.code for region in visit.deps.services.regions.all()],
        found=found,
        standing=standing,
        tone=tone,
        max_rows=visit.deps.max_csv_rows,
        is_day=is_day,
        curl_line=curl_line(f"{address}?{query}" if query else address),
    )
