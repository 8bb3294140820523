"""A watch that fails is opened again after a growing pause."""

from __future__ import annotations

import pytest

from matchpod.adapters.kubernetes.server_watch import MAX_PAUSE_S, REJECTED_PAUSE_S, pause_s, went_back


def test_pause_doubles_up_to_a_limit_and_jitter_takes_up_to_half_of_it() -> None:
    assert pause_s(0, 0.5) == 0.0, "the watch ended as planned"
    pauses = [pause_s(failures, 1.0) for failures in range(1, 6)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, MAX_PAUSE_S, MAX_PAUSE_S])
    assert pause_s(10_000, 1.0) == MAX_PAUSE_S
    assert pause_s(10_000, 1.0, REJECTED_PAUSE_S) == REJECTED_PAUSE_S
    assert pause_s(3, 0.0) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("before", "after", "is_back"),
    [
        ("100", "99", True),
        ("100", "100", False),
        ("99", "100", False),
        ("", "1", False),
        ("5", "", False),
        ("5", "x", False),
    ],
)
def test_versions_go_back_if_the_later_one_is_a_smaller_number(before: str, after: str, is_back: bool) -> None:
    assert went_back(before, after) is is_back
