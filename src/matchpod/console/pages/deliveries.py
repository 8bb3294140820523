"""Show callbacks, with their attempts and how to verify their signatures, and send callbacks again."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

import msgspec

from matchpod.console.command_lines import curl_line, verify_line
from matchpod.console.filters import Filters, is_day, read_filters, storable
from matchpod.console.rendering import HEADERS, NOT_STORED, iso
from matchpod.console.visit import Visit, Who
from matchpod.core.errors import CallbackWaitingError, InvalidParamsError, MatchpodError, RateLimitError
from matchpod.core.iso_dates import read_date
from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState, read_callbacks_query
from matchpod.service.access.webhook_signature import ID_HEADER, TIMESTAMP_HEADER
from matchpod.service.callbacks.deliveries import MAX_REDELIVERED
from matchpod.service.reading.callbacks import CallbackDetail
from matchpod.web.http.responses import JSON, Header, Response

PATH: Final = "/console/deliveries"
LABELS: Final = {"serverId": "Server id", "since": "Created from", "until": "to"}
"""Labels of the filters that have a field on the page."""
RESEND: Final = "resendSince"
"""Query parameter with the initial value of the start time in the form for sending given-up callbacks again."""
DAY_MS: Final = 24 * 60 * 60 * 1000
STATES: Final = (
    ("", "All"),
    (CallbackState.WAITING.value, "Waiting"),
    (CallbackState.DELIVERED.value, "Delivered"),
    (CallbackState.GIVEN_UP.value, "Given up"),
)
STALE: Final = "This callback was sent since you opened the page, so it was not sent again. Its attempts are below."
FILE: Final[tuple[Header, ...]] = ((b"content-disposition", b'attachment; filename="callback-body.json"'),)


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What a receiver needs to verify the signature of an attempt."""

    number: int
    message_id: str
    timestamp: str


async def show_list(visit: Visit) -> Response:
    given = visit.query()
    since = given.pop(RESEND, "")
    return await _list(
        visit, read_filters(given, read_callbacks_query, LABELS), since=since if read_date(since) else ""
    )


async def download_body(visit: Visit) -> Response:
    """Return the body of a callback exactly as it was sent."""
    found = await visit.deps.services.callbacks.get(visit.principal, visit.call.params[0])
    return Response(bytes(found.body), 200, JSON.encode(), (*HEADERS, NOT_STORED, *FILE))


async def redeliver(visit: Visit) -> Response:
    """Send a callback again, unless another attempt was made since the page was opened."""
    callbacks, callback_id = visit.deps.services.callbacks, visit.call.params[0]
    seen = (await visit.form()).get("attempts", "")
    found = await callbacks.get(visit.principal, callback_id)
    if seen and seen != str(found.attempt_count):
        return await show(visit, CallbackWaitingError(STALE))
    try:
        await callbacks.redeliver(visit.principal, callback_id)
    except (CallbackWaitingError, RateLimitError) as exc:
        return await show(visit, exc)
    return visit.done(f"{PATH}/{found.id}", "redelivered")


async def redeliver_given_up(visit: Visit) -> Response:
    """Send given-up callbacks again: the oldest that were created since the time in `since`, up to a limit."""
    since = storable((await visit.form()).get("since", "").strip())
    try:
        body = msgspec.json.encode({"since": since})
        done = await visit.deps.services.callbacks.redeliver_given_up(visit.principal, body)
    except (InvalidParamsError, RateLimitError) as exc:
        filters = read_filters({"state": CallbackState.GIVEN_UP.value}, read_callbacks_query, LABELS)
        return await _list(visit, filters, fault=exc, since=since)
    if done.next_since is not None:
        path = f"{PATH}?{urlencode({RESEND: done.next_since})}"
        return visit.done(path, "sent-some", number=done.count)
    return visit.done(PATH, "sent" if done.count else "none-sent", number=done.count)


async def _list(
    visit: Visit,
    filters: Filters[CallbacksQuery],
    *,
    fault: MatchpodError | None = None,
    since: str = "",
) -> Response:
    found = None
    if filters.query is not None:
        found = await visit.deps.services.callbacks.list(visit.principal, filters.query)
    default = iso(visit.deps.now_ms() - DAY_MS)
    shown = since or default
    status = 400 if filters.query is None else 200
    return visit.page(
        "deliveries.html",
        status=status if fault is None else fault.status,
        filters=filters,
        states=STATES,
        found=found,
        is_resend_open=bool(since) or fault is not None,
        fault=None if fault is None else _sentence(fault),
        is_time_wrong=isinstance(fault, InvalidParamsError),
        since=shown.removesuffix("Z"),
        max_redelivered=MAX_REDELIVERED,
        is_day=is_day,
    )


async def show(visit: Visit, fault: MatchpodError | None = None) -> Response:
    """Show a callback with its attempts and its body."""
    found = await visit.deps.services.callbacks.get(visit.principal, visit.call.params[0])
    check = _check(found)
    return visit.page(
        "delivery.html",
        status=200 if fault is None else fault.status,
        one=found,
        fault=None if fault is None else _sentence(fault),
        body=msgspec.json.format(bytes(found.body), indent=2).decode(errors="replace"),
        check=check,
        verify_line="" if check is None else verify_line(check.message_id, check.timestamp),
        curl_line=curl_line(f"{visit.deps.origins.public_url}/api/v1/callbacks/{found.id}"),
        may_redeliver=visit.may(Who.REFEREE) and found.state is not CallbackState.WAITING,
    )


def _sentence(fault: MatchpodError) -> str:
    if isinstance(fault, InvalidParamsError) and fault.faults:
        return f"The time {fault.faults[0].message}."
    return str(fault)


def _check(callback: CallbackDetail) -> Check | None:
    """Return what is needed to verify the newest attempt whose headers are stored; None if no headers are stored."""
    for attempt in reversed(callback.attempts):
        headers = {name.lower(): value for name, value in (attempt.request_headers or {}).items()}
        message_id, timestamp = headers.get(ID_HEADER), headers.get(TIMESTAMP_HEADER, "")
        if message_id == callback.id and timestamp.isascii() and timestamp.isdecimal():
            return Check(number=attempt.number, message_id=message_id, timestamp=timestamp)
    return None
