"""A key may make so many requests a minute, and as many at once after a quiet one."""

from __future__ import annotations

import pytest

from matchpod.core.errors import RateLimitError
from matchpod.web.rate_limit import MAX_KEYS, RateLimiter


class Time:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def is_let_through(limiter: RateLimiter, key: str = "k") -> bool:
    try:
        limiter.take(key)
    except RateLimitError:
        return False
    return True


def test_bucket_refills_bit_by_bit() -> None:
    time = Time()
    limiter = RateLimiter(60, time)
    assert [is_let_through(limiter) for _ in range(61)] == [True] * 60 + [False]
    time.now_s += 2
    assert [is_let_through(limiter) for _ in range(3)] == [True, True, False]


def test_bucket_holds_no_more_than_a_minute() -> None:
    time = Time()
    limiter = RateLimiter(3, time)
    time.now_s += 3600
    assert sum(is_let_through(limiter) for _ in range(10)) == 3


@pytest.mark.parametrize(("per_minute", "wait_s"), [(1, 60), (7, 9), (6000, 1)])
def test_refusal_says_when_the_next_request_is_welcome(per_minute: int, wait_s: int) -> None:
    time = Time()
    limiter = RateLimiter(per_minute, time)
    for _ in range(per_minute):
        limiter.take("k")
    with pytest.raises(RateLimitError) as refused:
        limiter.take("k")
    assert refused.value.retry_after_s == wait_s
    time.now_s += wait_s
    assert is_let_through(limiter)


def test_memory_is_bounded_and_the_silent_are_forgotten_first() -> None:
    limiter = RateLimiter(1, Time())
    assert is_let_through(limiter, "first")
    for number in range(MAX_KEYS - 1):
        limiter.take(str(number))
    assert not is_let_through(limiter, "first")
    limiter.take("one too many")
    assert not is_let_through(limiter, "first")
    assert is_let_through(limiter, "0")
