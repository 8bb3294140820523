"""Each match on the wall is in exactly one group."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
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
def test_match_is_where_its_phase_says(phase: PublicPhase, waiting_for: WaitingFor | None, expected: WallGroup) -> None:
    assert group_of_open(phase, waiting_for) is expected


def test_only_what_a_person_canceled_has_not_failed() -> None:
    for reason in CancelReason:
        by_hand = reason in (CancelReason.CANCELED_BY_USER, CancelReason.CANCELED_BY_OPERATOR)
        assert group_of_ended(reason) is (WallGroup.CANCELED if by_hand else WallGroup.FAILED)


def test_match_with_a_result_is_finished() -> None:
    assert group_of_ended(None) is WallGroup.FINISHED


def test_play_comes_first_and_matches_that_ended_are_last() -> None:
    order = sorted(WallGroup, key=place_of)
    assert order[0] is WallGroup.IN_PLAY
    assert order[-3:] == [WallGroup.FAILED, WallGroup.CANCELED, WallGroup.FINISHED]
