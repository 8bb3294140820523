"""The rate limit: units per minute and key, all of them at once after an idle minute."""

from __future__ import annotations

import pytest

from matchpod.core.errors import RateLimitError
from matchpod.service.access.rate_limit import MAX_KEYS, RateLimiter, RequestPacer
from tests.clocks import ManualClock


def limiter_of(per_minute: int, time: ManualClock) -> RateLimiter:
    return RateLimiter(per_minute, time, owner="this key", unit="requests")


def is_allowed(limiter: RateLimiter, key: str = "k") -> bool:
    try:
        limiter.acquire(key)
    except RateLimitError:
        return False
    return True


def test_bucket_refills_gradually() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(60, time)
    assert [is_allowed(limiter) for _ in range(61)] == [True] * 60 + [False]
    time.at_ms += 2_000
    assert [is_allowed(limiter) for _ in range(3)] == [True, True, False]


def test_bucket_holds_at_most_a_minute_of_requests() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(3, time)
    time.at_ms += 3_600_000
    assert sum(is_allowed(limiter) for _ in range(10)) == 3


@pytest.mark.parametrize(("per_minute", "wait_s"), [(1, 60), (7, 9), (6000, 1)])
def test_error_says_when_the_next_request_is_allowed(per_minute: int, wait_s: int) -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(per_minute, time)
    for _ in range(per_minute):
        limiter.acquire("k")
    with pytest.raises(RateLimitError) as rejected:
        limiter.acquire("k")
    assert rejected.value.retry_after_s == wait_s
    assert str(rejected.value) == f"The limit of this key is {per_minute} requests per minute. Retry in {wait_s} s."
    time.at_ms += round(wait_s * 1000)
    assert is_allowed(limiter)


def test_least_recently_used_key_is_dropped_first() -> None:
    limiter = limiter_of(1, ManualClock(100_000))
    assert is_allowed(limiter, "first")
    for number in range(MAX_KEYS - 1):
        limiter.acquire(str(number))
    assert not is_allowed(limiter, "first")
    limiter.acquire("one too many")
    assert not is_allowed(limiter, "first")
    assert is_allowed(limiter, "0")


def test_clock_that_was_set_back_takes_no_units_away() -> None:
    time = ManualClock(100_000)
    limiter = limiter_of(60, time)
    assert is_allowed(limiter)
    time.at_ms -= 3_600_000
    assert sum(is_allowed(limiter) for _ in range(70)) == 59


def test_pacer_lets_a_burst_through_and_then_spaces_the_others_evenly() -> None:
    time = ManualClock(100_000)
    pacer = RequestPacer(10, time, burst=3, max_wait_s=0.25, what="The metrics")
    assert [round(pacer.wait_s(), 6) for _ in range(5)] == [0.0, 0.0, 0.0, 0.1, 0.2]
    with pytest.raises(RateLimitError, match=r"The metrics are served 10 times per second\. Retry later\.") as error:
        pacer.wait_s()
    assert error.value.retry_after_s == 1
    time.at_ms += 300
    assert [round(pacer.wait_s(), 6) for _ in range(2)] == [0.0, 0.1]
    time.at_ms += 3_600_000
    assert [round(pacer.wait_s(), 6) for _ in range(4)] == [0.0, 0.0, 0.0, 0.1]
