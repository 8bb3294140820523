"""How many tests run at once follows the processor time that is free."""

from __future__ import annotations

import pytest

from scripts import workers


@pytest.mark.parametrize(
    ("cores", "expected"), [(2.0, 8), (1.0, 4), (0.33, workers.FEWEST), (0.0, workers.FEWEST), (64.0, workers.MOST)]
)
def test_a_free_core_carries_several_tests_within_bounds(cores: float, expected: int) -> None:
    assert workers.workers(cores) == expected


def test_a_busy_process_gets_a_share_of_a_core() -> None:
    assert 0 < workers.processor_share(0.05) <= 1.5
