"""Tests of the token bucket."""

from __future__ import annotations

from cs2_protocol.token_bucket import TokenBucket


def test_burst_may_be_spent_at_once() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(7, 5.0)
    assert bucket.spend(3, 5.0)
    assert not bucket.spend(0.1, 5.0)


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 0.0)
    assert not bucket.spend(3, 1.0)
    assert bucket.spend(3, 1.5)
    assert not bucket.spend(11, 1000.0)
    assert bucket.spend(10, 1000.0)


def test_granted_tokens_may_exceed_the_burst_up_to_a_limit() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 0.0)
    bucket.grant(4, 15)
    assert bucket.spend(4, 0.0)
    bucket.grant(100, 15)
    assert not bucket.spend(16, 1000.0)
    assert bucket.spend(15, 1000.0)


def test_time_neither_adds_to_granted_tokens_nor_takes_them() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(0, 0.0)
    bucket.grant(5, 15)
    bucket.grant(5, 12)
    assert not bucket.spend(16, 1000.0)
    assert bucket.spend(15, 1000.0)


def test_rejected_amount_is_not_taken() -> None:
    bucket = TokenBucket(10, 2)
    assert not bucket.spend(11, 0.0)
    assert bucket.spend(10, 0.0)


def test_clock_that_goes_back_gives_no_tokens() -> None:
    bucket = TokenBucket(10, 2)
    assert bucket.spend(10, 100.0)
    assert not bucket.spend(1, 0.0)
    assert bucket.spend(1, 0.5)
