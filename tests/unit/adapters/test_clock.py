"""The clock starts at wall time and then follows only the monotonic clock."""

from __future__ import annotations

import time

import pytest

from matchpod.adapters.clock import SystemClock, since_boot_ns


class FakeClocks:
    """A wall clock and a monotonic clock that tests set."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_123_999_999
        self.monotonic = 5_000_000_000

    def clock(self) -> SystemClock:
        return SystemClock(wall_ns=lambda: self.wall, monotonic_ns=lambda: self.monotonic)


def test_clock_follows_the_monotonic_clock() -> None:
    clocks = FakeClocks()
    clock = clocks.clock()
    clocks.monotonic += 2_500_000_000
    assert clock.now_ms() == 1_700_000_002_623


def test_setting_the_wall_clock_changes_nothing() -> None:
    clocks = FakeClocks()
    clock = clocks.clock()
    clocks.wall += 3_600_000_000_000
    assert clock.now_ms() == 1_700_000_000_123


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot time clock")
def test_time_while_suspended_is_counted() -> None:
    assert abs(since_boot_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) < 60_000_000_000


def test_system_without_boot_time_clock_uses_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(since_boot_ns() - time.monotonic_ns()) < 60_000_000_000
