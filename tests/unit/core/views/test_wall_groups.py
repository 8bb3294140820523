"""Each match on the wall is in exactly one group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.effects import CancelReason
from matchpod.core.views.attention import Urgency
from matchpod.core.views.progress import PublicPhase, WaitingFor
from matchpod.core.views.wall_groups import WallGroup, group_of_ended, group_of_open, place_of


@pytest.mark.parametrize(
    ("phase", "waiting_for", "expected"),
    [
        (PublicPhase.ALLOCATING, None, WallGroup.STARTING),
        (PublicPhase.ALLOCATING, WaitingFor.FREE_SERVER, WallGroup.QUEUED),
        (PublicPhase.WAITING_FOR_PLAYERS, WaitingFor.PLAYERS_TO_JOIN, WallGroup.WAITING),
        (PublicPhase.STARTING, None, WallGroup.IN_PLAY),
        (PublicPhase.LIVE, None, WallGroup.IN_PLAY),
        (PublicPhase.PAUSED, None, WallGroup.IN_PLAY),
        (PublicPhase.BETWEEN_MAPS, WaitingFor.PLAYERS_TO_JOIN, WallGroup.IN_PLAY),
        (PublicPhase.ENDED, None, WallGroup.IN_PLAY),
    ],
)
def test_calm_match_is_where_its_phase_says(
    phase: PublicPhase, waiting_for: WaitingFor | None, expected: WallGroup
) -> None:
    for urgency in (0, Urgency.NOTE):
        assert group_of_open(phase, waiting_for, urgency) is expected


@given(st.sampled_from(PublicPhase), st.none() | st.sampled_from(WaitingFor), st.sampled_from([2, 3]))
def test_urgent_match_needs_attention_in_any_phase(
    phase: PublicPhase, waiting_for: WaitingFor | None, urgency: int
) -> None:
    assert group_of_open(phase, waiting_for, urgency) is WallGroup.ATTENTION


def test_only_what_a_person_canceled_has_not_failed() -> None:
    for reason in CancelReason:
        by_hand = reason in (CancelReason.CANCELED_BY_USER, CancelReason.CANCELED_BY_OPERATOR)
        assert group_of_ended(reason) is (WallGroup.CANCELED if by_hand else WallGroup.FAILED)


def test_match_with_a_result_is_finished() -> None:
    assert group_of_ended(None) is WallGroup.FINISHED


def test_what_needs_attention_comes_before_what_failed_and_finished_matches_are_last() -> None:
    order = sorted(WallGroup, key=place_of)
    assert order[:2] == [WallGroup.ATTENTION, WallGroup.FAILED]
    assert order[-2:] == [WallGroup.CANCELED, WallGroup.FINISHED]
