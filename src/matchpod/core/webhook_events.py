"""Define the events that webhooks send, and the retry schedule of deliveries."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

ALL_EVENTS: Final = "*"
"""Wildcard for all event types, including types that later versions add."""

_S: Final = 1_000
_MINUTE: Final = 60 * _S
_HOUR: Final = 60 * _MINUTE

RETRY_AFTER_MS: Final = (
    *(5 * _S, 30 * _S, 2 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE),
    *(1 * _HOUR, 2 * _HOUR, 4 * _HOUR, 6 * _HOUR, 9 * _HOUR),
)
"""Delay in ms before each retry of a delivery. The last retry is 23 hours after the first attempt."""

TRIED_MS: Final = 24 * _HOUR
"""Maximum time in ms after an event for which attempts to deliver it are scheduled."""

FAILING_MS: Final = 3 * 24 * _HOUR
"""Time in ms since the first failed attempt after which a webhook is disabled, if no attempt has succeeded since."""

FAILING_ATTEMPTS: Final = len(RETRY_AFTER_MS)
"""Minimum number of failed attempts, spread over half a day, before a delivery can disable its webhook. A few
failures within minutes, days after the previous event, do not show that the receiver is gone."""

TEST_ATTEMPTS: Final = 3
"""Maximum number of attempts of a test. It is small, because a person waits for the result."""

SPREAD: Final = 0.2
"""Jitter: a delay is shortened by a random share up to this, so that simultaneous failures are not retried together."""


class WebhookEvent(StrEnum):
    """The types of webhook events."""

    SERVER_RUNNING = "server.running"
    MATCH_LIVE = "match.live"
    MAP_ENDED = "map.ended"
    MATCH_PAUSED = "match.paused"
    MATCH_RESUMED = "match.resumed"
    MATCH_ENDED = "match.ended"
    MATCH_CANCELED = "match.canceled"
    MATCH_RULED = "match.ruled"
    ACTION_DONE = "action.done"
    ACTION_FAILED = "action.failed"
    DEMO_AVAILABLE = "demo.available"
    ANTICHEAT_DETECTED = "anticheat.detected"
    ATTENTION_RAISED = "attention.raised"


TEST_EVENT: Final = "webhook.test"
"""The type of a test event, which is sent on request."""


class WebhookFormat(StrEnum):
    """The format of a webhook's deliveries."""

    JSON = "json"
    DISCORD = "discord"


NEVER_IN: Final = {WebhookFormat.DISCORD: frozenset({WebhookEvent.ANTICHEAT_DETECTED})}
"""Events that a format never sends. Many people read a Discord channel, and a detection is not proof."""


def is_wanted(event: WebhookEvent, *, chosen: Collection[str], format: WebhookFormat) -> bool:
    """True if a webhook that chose these types sends the event."""
    return (ALL_EVENTS in chosen or event.value in chosen) and event not in NEVER_IN.get(format, ())


def shows_failing(event_type: str, *, attempts: int, created_at_ms: int, now_ms: int) -> bool:
    """True if a failed attempt counts against its webhook: it was scheduled, not requested, and is not of a test."""
    is_scheduled = attempts <= len(RETRY_AFTER_MS) + 1 and now_ms <= created_at_ms + TRIED_MS
    return is_scheduled and event_type != TEST_EVENT


def retry_at_ms(event_type: str, *, attempts: int, created_at_ms: int, now_ms: int, spread: float) -> int | None:
    """Return the time to retry a delivery after this many failed attempts; None if the delivery is given up.

    `spread` is a random number from 0 to 1 that determines the jitter.
    """
    most = TEST_ATTEMPTS - 1 if event_type == TEST_EVENT else len(RETRY_AFTER_MS)
    if not 0 < attempts <= most:
        return None
    pause_ms = RETRY_AFTER_MS[attempts - 1]
    at_ms = now_ms + int(pause_ms * (1 - SPREAD * spread))
    return at_ms if at_ms <= created_at_ms + TRIED_MS else None
