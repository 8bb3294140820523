"""A watch that fails is opened again after a growing pause."""

from __future__ import annotations

import pytest

from matchpod.adapters.kubernetes.server_watch import MAX_PAUSE_S, pause_s


def test_watch_that_ended_as_planned_is_opened_again_at_once() -> None:
    assert pause_s(0, 0.5) == 0.0


def test_pause_doubles_up_to_a_limit() -> None:
    pauses = [pause_s(failures, 1.0) for failures in range(1, 9)]
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, MAX_PAUSE_S, MAX_PAUSE_S])
    assert pause_s(10_000, 1.0) == MAX_PAUSE_S


def test_jitter_takes_up_to_half_of_the_pause() -> None:
    assert pause_s(3, 0.0) == pytest.approx(0.4)
