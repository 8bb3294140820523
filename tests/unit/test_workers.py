"""The number of test workers depends on the free CPU time."""

from __future__ import annotations

import pytest

from scripts import workers


@pytest.mark.parametrize(
    ("cores", "expected"),
    [(2.0, 6), (1.0, 3), (0.33, workers.MIN_WORKERS), (0.0, workers.MIN_WORKERS), (64.0, workers.MAX_WORKERS)],
)
def test_worker_count_grows_with_free_cores_within_its_limits(cores: float, expected: int) -> None:
    assert workers.worker_count(cores) == expected


def test_measured_cpu_share_is_positive_and_at_most_about_one() -> None:
    assert 0 < workers.cpu_share(0.05) <= 1.5
