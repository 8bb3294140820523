"""The clock begins at wall time and follows the monotonic clock only."""

from __future__ import annotations

import time

import pytest

from matchpod.adapters.clock import SystemClock, since_boot_ns


class Hands:
    """Two clocks that are set by hand."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_123_999_999
        self.monotonic = 5_000_000_000

    def clock(self) -> SystemClock:
        return SystemClock(wall_ns=lambda: self.wall, monotonic_ns=lambda: self.monotonic)


def test_it_begins_at_wall_time() -> None:
    assert Hands().clock().now_ms() == 1_700_000_000_123


def test_it_follows_the_monotonic_clock() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.monotonic += 2_500_000_000
    assert clock.now_ms() == 1_700_000_002_623


def test_setting_the_wall_clock_changes_nothing() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall += 3_600_000_000_000
    assert clock.now_ms() == 1_700_000_000_123


def test_the_real_one_is_near_the_time_of_the_machine() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000) < 60_000


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no such clock")
def test_time_that_the_machine_slept_is_counted() -> None:
    assert abs(since_boot_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) < 60_000_000_000


def test_a_system_without_that_clock_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(since_boot_ns() - time.monotonic_ns()) < 60_000_000_000
