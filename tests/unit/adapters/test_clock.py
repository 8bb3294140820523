"""The clock starts at wall time and then follows only the monotonic clock."""

from __future__ import annotations

import time

import pytest

from matchpod.adapters.clock import SystemClock, since_boot_ns


def test_clock_follows_the_monotonic_clock_also_if_the_wall_clock_is_set() -> None:
    wall_ns, monotonic_ns = iter([1_700_000_000_123_999_999, 1_700_003_600_123_999_999]), iter([5_000_000_000] * 2)
    clock = SystemClock(wall_ns=lambda: next(wall_ns), monotonic_ns=lambda: next(monotonic_ns))
    assert clock.now_ms() == 1_700_000_000_123


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot time clock")
def test_time_while_suspended_is_counted() -> None:
    assert abs(since_boot_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) < 60_000_000_000


def test_system_without_boot_time_clock_uses_the_monotonic_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert abs(since_boot_ns() - time.monotonic_ns()) < 60_000_000_000
