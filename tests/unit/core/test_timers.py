"""Waits and their scale."""

from __future__ import annotations

import msgspec

from matchpod.core.timers import Timers


def test_faster_world_divides_every_wait() -> None:
    usual, fast = msgspec.structs.asdict(Timers()), msgspec.structs.asdict(Timers().at_speed(30))
    assert fast == {name: seconds / 30 for name, seconds in usual.items()}


def test_join_time_is_five_minutes() -> None:
    assert Timers().join_s == 5 * 60
