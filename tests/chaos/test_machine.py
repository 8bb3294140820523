"""The CPU time that the host takes."""

from __future__ import annotations

import pytest

from tests.chaos.machine import read_times, stolen_share


def test_share_is_that_of_the_time_between_two_readings() -> None:
    before = (100, 0, 50, 800, 50, 0, 0, 0)
    assert stolen_share(before, (110, 0, 60, 800, 50, 0, 0, 60)) == 0.75
    assert stolen_share(before, (110, 0, 60, 800, 50, 0, 0, 0)) == 0.0
    assert stolen_share(before, before) == 0.0
    assert stolen_share((), ()) == 0.0


def test_times_of_this_machine_are_read() -> None:
    times = read_times()
    if not times:
        pytest.skip("this system has no /proc/stat")
    assert sum(times) > 0
    assert 0.0 <= stolen_share(tuple(0 for _ in times), times) <= 1.0
