"""The health that a hit removes."""

from __future__ import annotations

import pytest

from matchpod.core.stats.health import health_lost


@pytest.mark.parametrize(
    ("damage", "before", "after", "lost"),
    [
        (108, 100, 0, 100),  # capped at the remaining health
        (27, 100, 73, 27),
        (27, 100, 72, 28),  # the log truncates the damage
        (20, 100, 40, 21),  # about 40 were lost to fall damage, which is not logged
        (30, 40, 70, 30),  # more health than recorded
        (0, 100, 100, 0),
        (12, 0, 0, 0),  # a pellet that hits a dead player
    ],
)
def test_damage_is_limited_to_the_health_before_the_hit(damage: int, before: int, after: int, lost: int) -> None:
    assert health_lost(damage, before, after) == lost
