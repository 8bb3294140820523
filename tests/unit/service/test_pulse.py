"""After a stall, a process reports it for a short time."""

from __future__ import annotations

import time

import pytest

from matchpod.service.runner.pulse import BEAT_S, LATE_S, SETTLE_S, Pulse
from tests.clocks import ManualClock


def test_process_that_runs_is_not_late() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    assert not pulse.was_late(), "it has just begun"
    for _ in range(10):
        pulse.beat()
        clock.at_ms += round(1000 * (BEAT_S + LATE_S))
        assert not pulse.was_late()


def test_process_that_stood_still_is_late_before_and_after_it_notes_that() -> None:
    clock = ManualClock()
    pulse = Pulse(clock)
    pulse.beat()
    clock.at_ms += round(1000 * (BEAT_S + LATE_S + 0.1))
    assert pulse.was_late(), "another timer came first"
    pulse.beat()
    assert pulse.was_late()
    for _ in range(4):
        clock.at_ms += round(1000 * (SETTLE_S / 4))
        pulse.beat()
    assert not pulse.was_late()


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no boot time clock")
def test_process_whose_machine_was_suspended_stood_still(monkeypatch: pytest.MonkeyPatch) -> None:
    read_clock = time.clock_gettime
    pulse = Pulse()
    pulse.beat()
    monkeypatch.setattr(time, "clock_gettime", lambda clock: read_clock(clock) + 60 * (clock == time.CLOCK_BOOTTIME))
    assert pulse.was_late(), "timers and the usual monotonic clock do not count that time"
