"""Build the API views of callbacks and their delivery attempts from rows. Secrets are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from matchpod.core.requests.callback_query import CallbacksQuery, CallbackState
from matchpod.core.secrets import mask_url
from matchpod.core.stored.stored_json import StoredReader
from matchpod.core.views.result_shapes import IsoTime
from matchpod.ports import Database
from matchpod.service.reading.match_head import AsGiven, ServerId
from matchpod.service.row_views import time_text, view_of
from matchpod.storage import callback_lists
from matchpod.storage.callback_lists import MAX_LISTED, CallbackSummary
from matchpod.storage.outbox import AttemptRow

MAX_SHOWN_ATTEMPTS: Final = 100
"""Maximum number of attempts in the details of a callback. Usually there are one or two, but each redelivery adds an
attempt."""

_HEADERS = StoredReader[dict[str, str]](dict[str, str])


class CallbackItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A callback and the state of its delivery."""

    id: Annotated[str, Meta(description="The id of the callback; its `webhook-id`.")]
    server_id: ServerId
    external_match_id: AsGiven
    event_type: Annotated[str, Meta(description="`match_over` or `match_canceled`.")]
    url: Annotated[
        str,
        Meta(description="The `callbackUrl`, with user info and all values of the query hidden as `***`."),
    ]
    state: Annotated[
        CallbackState,
        Meta(
            description="`waiting`: an attempt is under way or scheduled. `delivered`: the last attempt succeeded. "
            "`given_up`: it failed, and no other attempt is scheduled."
        ),
    ]
    attempt_count: Annotated[int, Meta(description="The number of attempts that were made.")]
    created_at: IsoTime
    delivered_at: Annotated[str | None, Meta(description="When the attempt that succeeded began; null otherwise.")]
    next_attempt_at: Annotated[
        str | None,
        Meta(
            description="When the next attempt is due, in the past if it is under way; null if no further attempt is "
            "scheduled."
        ),
    ]
    last_status: Annotated[
        int | None,
        Meta(description="The HTTP status of the response to the last attempt; null if there was no response."),
    ]
    last_error: Annotated[
        str | None, Meta(description="Why there was no response to the last attempt; null if there was one.")
    ]


class CallbackAttempt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt to deliver a callback."""

    number: Annotated[int, Meta(description="The number of the attempt, from 1; its `X-Matchpod-Attempt`.")]
    at: Annotated[str, Meta(description="When it began: ISO 8601 in UTC, with milliseconds.")]
    duration_ms: Annotated[int, Meta(description="How long it took, in milliseconds.")]
    status: Annotated[int | None, Meta(description="The HTTP status of the response; null if there was no response.")]
    error: Annotated[str | None, Meta(description="Why there was no response; null if there was one.")]
    request_headers: Annotated[
        dict[str, str] | None,
        Meta(
            description="The headers of the request, without those of the connection; signature and authorization are "
            "hidden as `***`. Null if it could not be signed, or was made before headers were recorded."
        ),
    ]


class CallbackDetail(CallbackItem, frozen=True, kw_only=True, rename="camel"):
    """A callback with its attempts and its body."""

    attempts: Annotated[
        tuple[CallbackAttempt, ...], Meta(description="The attempts in order; only the last 100 if there are more.")
    ]
    body: Annotated[msgspec.Raw, Meta(description="The body exactly as sent, the same in every attempt.")]


class CallbacksPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching callbacks, and their total number."""

    page: Annotated[int, Meta(description="The number of this page, from 1.")]
    page_size: Annotated[int, Meta(description="The maximum number of items per page.")]
    total: Annotated[
        int,
        Meta(
            description=f"The number of items on all pages, at most the newest {MAX_LISTED}. To list older items, "
            "set `until`."
        ),
    ]
    items: Annotated[tuple[CallbackItem, ...], Meta(description="The items of this page, newest first.")]


class Redelivery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many callbacks are sent again."""

    count: Annotated[int, Meta(description="The number of callbacks that are sent again.")]
    next_since: Annotated[
        str | None, Meta(description="The `since` of the next request if there are more to send, else null.")
    ]


def callback_item(row: CallbackSummary) -> CallbackItem:
    return view_of(CallbackItem, row, **_shown(row))


def callbacks_page(query: CallbacksQuery, total: int, rows: Sequence[CallbackSummary]) -> CallbacksPage:
    items = tuple(callback_item(row) for row in rows)
    return CallbacksPage(page=query.page, page_size=query.page_size, total=total, items=items)


def callback_detail(row: CallbackSummary, attempts: Sequence[AttemptRow], body: bytes) -> CallbackDetail:
    """Build the view of a callback with its attempts. The stored body is included unchanged."""
    # Leave out attempts that were recorded after the row was read, so that the list agrees with the count and the
    # state.
    shown = tuple(attempt_view(attempt) for attempt in attempts if attempt.number <= row.attempts)
    return view_of(CallbackDetail, row, **_shown(row), attempts=shown, body=msgspec.Raw(body))


async def detail_of(db: Database, row: CallbackSummary, *, max_attempts: int = MAX_SHOWN_ATTEMPTS) -> CallbackDetail:
    attempts = await callback_lists.newest_attempts(db, row.id, max_attempts)
    return callback_detail(row, attempts, await callback_lists.body_of(db, row.id))


def _shown(row: CallbackSummary) -> dict[str, object]:
    return {
        "url": mask_url(row.url),
        "attempt_count": row.attempts,
        "next_attempt_at": time_text(row.next_at_ms),
    }


def attempt_view(row: AttemptRow) -> CallbackAttempt:
    headers = None if row.headers is None else _HEADERS.read(row.headers)
    return view_of(CallbackAttempt, row, request_headers=headers)
