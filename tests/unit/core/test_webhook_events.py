"""Which events a webhook sends, and how long a delivery is tried."""

from __future__ import annotations

import pytest

from matchpod.core.webhook_events import (
    ALL_EVENTS,
    SPREAD,
    TEST_ATTEMPTS,
    TEST_EVENT,
    TRIED_MS,
    WebhookEvent,
    WebhookFormat,
    is_wanted,
    retry_at_ms,
    shows_failing,
)

HOUR_MS = 60 * 60 * 1000
EVENT = WebhookEvent.MAP_ENDED.value


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_delivery_is_tried_ten_times_more_within_a_day(spread: float) -> None:
    times = [0]
    while True:
        at_ms = retry_at_ms(EVENT, attempts=len(times), created_at_ms=0, now_ms=times[-1], spread=spread)
        if at_ms is None:
            break
        times.append(at_ms)
    assert len(times) == 11
    assert times == sorted(times)
    assert times[1] <= 5_000
    assert (1 - SPREAD) * 22 * HOUR_MS <= times[-1] <= TRIED_MS


def test_no_attempt_follows_a_day_after_the_event_or_one_on_request_after_the_last() -> None:
    assert retry_at_ms(EVENT, attempts=1, created_at_ms=0, now_ms=TRIED_MS - 1, spread=0.0) is None
    assert retry_at_ms(EVENT, attempts=12, created_at_ms=0, now_ms=1, spread=0.0) is None


def test_a_test_is_tried_a_few_times() -> None:
    times = [
        retry_at_ms(TEST_EVENT, attempts=number, created_at_ms=0, now_ms=1, spread=0.0)
        for number in range(1, TEST_ATTEMPTS + 1)
    ]
    assert [at_ms is None for at_ms in times] == [False, False, True]


@pytest.mark.parametrize(
    ("event_type", "attempts", "now_ms", "expected"),
    [
        (EVENT, 11, TRIED_MS, True),
        (EVENT, 12, 1, False),
        (EVENT, 10, TRIED_MS + 1, False),
        (TEST_EVENT, 1, 1, False),
    ],
)
def test_tests_and_attempts_on_request_do_not_show_that_a_receiver_fails(
    event_type: str, attempts: int, now_ms: int, expected: bool
) -> None:
    assert shows_failing(event_type, attempts=attempts, created_at_ms=0, now_ms=now_ms) is expected


def test_a_webhook_sends_the_types_that_it_chose() -> None:
    chosen = ("map.ended",)
    assert is_wanted(WebhookEvent.MAP_ENDED, chosen=chosen, format=WebhookFormat.JSON)
    assert not is_wanted(WebhookEvent.MATCH_ENDED, chosen=chosen, format=WebhookFormat.JSON)
    assert is_wanted(WebhookEvent.MATCH_ENDED, chosen=(ALL_EVENTS,), format=WebhookFormat.JSON)


def test_detections_are_never_messages() -> None:
    for chosen in ((ALL_EVENTS,), ("anticheat.detected",)):
        assert not is_wanted(WebhookEvent.ANTICHEAT_DETECTED, chosen=chosen, format=WebhookFormat.DISCORD)
        assert is_wanted(WebhookEvent.ANTICHEAT_DETECTED, chosen=chosen, format=WebhookFormat.JSON)
