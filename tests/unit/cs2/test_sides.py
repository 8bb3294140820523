"""Teams against sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.model import Side, Team
from matchpod.cs2.sides import MAX_MEMBERS, Sides

from .server_log import competitive, id64


def standing(*sides: str) -> Sides:
    """Players 1, 2 of team1 and 3, 4 of team2 on these sides; `-` is nowhere."""
    found = Sides.of(competitive())
    for account, side in enumerate(sides, start=1):
        found.stand(id64(account), {"C": Side.CT, "T": Side.T, "-": None}[side])
    return found


def test_team1_begins_as_ct() -> None:
    assert standing("C", "C", "T", "T").team_on(Side.CT) is Team.TEAM1


def test_the_vote_follows_the_majority() -> None:
    sides = standing("T", "T", "C", "T")
    assert sides.vote()
    assert sides.team1_side is Side.T
    assert not sides.vote()


def test_a_tied_vote_and_an_empty_field_change_nothing() -> None:
    assert not standing("C", "T", "T", "C").vote()
    assert not standing("-", "-", "-", "-").vote()


def test_a_score_is_told_by_team() -> None:
    sides = standing("T", "T", "C", "C")
    assert sides.by_team(3, 7) == (3, 7)
    sides.vote()
    assert sides.by_team(3, 7) == (7, 3)


def test_a_swapped_score_means_swapped_sides() -> None:
    sides = standing()
    assert sides.match_score((2, 10), (10, 2))
    assert sides.team1_side is Side.T


def test_an_even_or_unrelated_score_means_nothing() -> None:
    sides = standing()
    assert not sides.match_score((6, 6), (6, 6))
    assert not sides.match_score((3, 4), (10, 2))
    assert not sides.match_score((10, 2), (10, 2))


def test_an_unlisted_player_belongs_to_the_team_he_stands_with() -> None:
    sides = standing("C", "C", "T", "T")
    sides.stand(id64(9), Side.T)
    assert sides.team_of(id64(9)) is Team.TEAM2
    assert sides.line_ups()[1] == (id64(3), id64(4), id64(9))
    sides.clear_field()
    assert sides.team_of(id64(9)) is Team.TEAM2
    assert sides.team_of(id64(8)) is None


@given(st.lists(st.sampled_from("CT"), min_size=4, max_size=4))
def test_a_vote_leaves_most_players_on_the_side_of_their_team(sides: list[str]) -> None:
    found = standing(*sides)
    found.vote()
    right = sum(found.team_on(side) is found.listed[player] for player, side in found.standing.items())
    assert right >= 2


def test_more_members_than_any_match_has_are_forgotten() -> None:
    sides = standing("C", "T")
    sides.members = {f"stranger {number}": Team.TEAM1 for number in range(MAX_MEMBERS + 1)}
    sides.line_ups()
    assert not any(name.startswith("stranger") for name in sides.members)
