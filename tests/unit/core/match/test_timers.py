"""Timeouts and their scaling."""

from __future__ import annotations

import msgspec

from matchpod.core.match.timers import Timers


def test_accelerated_time_divides_every_timeout() -> None:
    usual, fast = msgspec.structs.asdict(Timers()), msgspec.structs.asdict(Timers().at_speed(30))
    assert fast == {name: seconds / 30 for name, seconds in usual.items()}


def test_join_timeout_is_five_minutes() -> None:
    assert Timers().join_s == 5 * 60
