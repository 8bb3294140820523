"""Which events a webhook sends, and how long a delivery is tried."""

from __future__ import annotations

import pytest

from matchpod.core.webhook_events import (
    ALL_EVENTS,
    SPREAD,
    TRIED_MS,
    WebhookEvent,
    WebhookFormat,
    is_wanted,
    retry_at_ms,
)

HOUR_MS = 60 * 60 * 1000


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_delivery_is_tried_ten_times_more_within_a_day(spread: float) -> None:
    times = [0]
    while True:
        at_ms = retry_at_ms(attempts=len(times), created_at_ms=0, now_ms=times[-1], spread=spread)
        if at_ms is None:
            break
        times.append(at_ms)
    assert len(times) == 11
    assert times == sorted(times)
    assert times[1] <= 5_000
    assert (1 - SPREAD) * 22 * HOUR_MS <= times[-1] <= TRIED_MS


def test_no_attempt_follows_a_day_after_the_event() -> None:
    assert retry_at_ms(attempts=1, created_at_ms=0, now_ms=TRIED_MS - 1, spread=0.0) is None


def test_an_attempt_that_was_requested_after_the_last_one_has_no_other() -> None:
    assert retry_at_ms(attempts=12, created_at_ms=0, now_ms=1, spread=0.0) is None


def test_a_webhook_sends_the_types_that_it_chose() -> None:
    chosen = ("map.ended",)
    assert is_wanted(WebhookEvent.MAP_ENDED, chosen=chosen, format=WebhookFormat.JSON)
    assert not is_wanted(WebhookEvent.MATCH_ENDED, chosen=chosen, format=WebhookFormat.JSON)
    assert is_wanted(WebhookEvent.MATCH_ENDED, chosen=(ALL_EVENTS,), format=WebhookFormat.JSON)


def test_detections_are_never_messages() -> None:
    for chosen in ((ALL_EVENTS,), ("anticheat.detected",)):
        assert not is_wanted(WebhookEvent.ANTICHEAT_DETECTED, chosen=chosen, format=WebhookFormat.DISCORD)
        assert is_wanted(WebhookEvent.ANTICHEAT_DETECTED, chosen=chosen, format=WebhookFormat.JSON)
