"""Parse requests about callbacks: the query of the list, the body of a redelivery, and ids in paths.

Invalid requests raise InvalidParamsError with all faults. Pages have the limits of `history_query`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.faults import FieldPath
from matchpod.core.iso_dates import read_date
from matchpod.core.requests import field_rules as rules
from matchpod.core.requests.history_query import DEFAULT_PAGE_SIZE, MAX_PAGE, MAX_PAGE_SIZE, server_id_fault
from matchpod.core.requests.json_fields import Faults, Fields, RequestField
from matchpod.core.requests.query_fields import QueryFields

CALLBACK_ID: Final = r"[0-9A-Za-z_-]{1,64}"
"""Pattern of callback ids: broader than the ids that the service generates, but without NUL and lone surrogates, which
the database does not accept."""

SINCE: Final = RequestField(
    name="since",
    rule=rules.date(),
    meaning="Only callbacks created at this time or later, in ISO 8601.",
    is_required=True,
)
"""The only field in the body of a request to redeliver the callbacks that were given up."""

_NAMES: Final = ("page", "pageSize", "state", "serverId", "since", "until")


class CallbackState(StrEnum):
    """Delivery state of a callback."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class CallbacksQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The filters and the page number of a list. `from_ms` (inclusive) and `before_ms` limit the creation time."""

    page: int = 1
    page_size: int = DEFAULT_PAGE_SIZE
    state: CallbackState | None = None
    server_id: str | None = None
    from_ms: int | None = None
    before_ms: int | None = None


def state_of(*, next_at_ms: int | None, delivered_at_ms: int | None) -> CallbackState:
    if next_at_ms is not None:
        return CallbackState.WAITING
    return CallbackState.GIVEN_UP if delivered_at_ms is None else CallbackState.DELIVERED


def read_callbacks_query(pairs: Sequence[tuple[str, str]]) -> CallbacksQuery:
    """Parse the query of the callbacks list. A `since` after `until` is not a fault: the range is empty."""
    fields = QueryFields(pairs, _NAMES)
    page = fields.integer("page", at_least=1, at_most=MAX_PAGE)
    page_size = fields.integer("pageSize", at_least=1, at_most=MAX_PAGE_SIZE)
    state = fields.choice("state", CallbackState)
    server_id = fields.text("serverId", server_id_fault)
    since, until = fields.date("since"), fields.date("until")
    fields.check()
    return CallbacksQuery(
        page=page or 1,
        page_size=page_size or DEFAULT_PAGE_SIZE,
        state=state,
        server_id=server_id,
        from_ms=None if since is None else since.from_ms,
        before_ms=None if until is None else until.before_ms,
    )


def read_redeliver_request(body: object) -> int:
    """Return the decoded body's `since` in milliseconds. A date without a time means the beginning of its day."""
    faults = Faults()
    fields = Fields.of(body, FieldPath(), (SINCE,), faults)
    since = None if fields is None else fields.read(SINCE)
    span = None if since is None else read_date(since)
    if span is None or faults:
        raise faults.error()
    return span.from_ms


def read_callback_id(text: str) -> str | None:
    """Return the text if it is a valid callback id, else None."""
    return text if re.fullmatch(CALLBACK_ID, text) else None
