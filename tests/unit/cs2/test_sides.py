"""Tests of teams and sides."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side, Team
from matchpod.core.model import StartSides, TeamRoster
from matchpod.cs2.sides import MAX_MEMBERS, MAX_PLAYERS, SideTracker
from tests.unit.cs2.server_log import competitive, id64


def players_on(*sides: str) -> SideTracker:
    """Put players 1 and 2 of team1 and 3 and 4 of team2 on these sides; `-` means no side."""
    found = SideTracker.of(competitive())
    for account, side in enumerate(sides, start=1):
        found.set_side(id64(account), {"C": Side.CT, "T": Side.T, "-": None}[side])
    return found


def test_team1_starts_as_ct() -> None:
    assert players_on("C", "C", "T", "T").team_on(Side.CT) is Team.TEAM1


def test_vote_follows_the_majority() -> None:
    sides = players_on("T", "T", "C", "T")
    assert sides.vote()
    assert sides.team1_side is Side.T
    assert not sides.vote()


def test_tied_or_empty_vote_changes_nothing() -> None:
    assert not players_on("C", "T", "T", "C").vote()
    assert not players_on("-", "-", "-", "-").vote()


def test_score_is_converted_to_teams() -> None:
    sides = players_on("T", "T", "C", "C")
    assert sides.by_team(3, 7) == (3, 7)
    sides.vote()
    assert sides.by_team(3, 7) == (7, 3)


def test_swapped_score_swaps_the_sides() -> None:
    sides = players_on()
    assert sides.follow_score((2, 10), (10, 2))
    assert sides.team1_side is Side.T


def test_even_or_unrelated_score_changes_nothing() -> None:
    sides = players_on()
    assert not sides.follow_score((6, 6), (6, 6))
    assert not sides.follow_score((3, 4), (10, 2))
    assert not sides.follow_score((10, 2), (10, 2))


def test_unlisted_player_belongs_to_the_team_of_their_side() -> None:
    sides = players_on("C", "C", "T", "T")
    sides.set_side(id64(9), Side.T)
    assert sides.team_of(id64(9)) is Team.TEAM2
    assert sides.lineups()[1] == (id64(3), id64(4), id64(9))
    sides.clear_sides()
    assert sides.team_of(id64(9)) is Team.TEAM2
    assert sides.team_of(id64(8)) is None


@given(st.lists(st.sampled_from("CT"), min_size=4, max_size=4))
def test_vote_leaves_at_least_half_of_the_players_on_the_side_of_their_team(sides: list[str]) -> None:
    found = players_on(*sides)
    found.vote()
    matching = sum(found.team_on(side) is found.listed[player] for player, side in found.player_sides.items())
    assert matching >= 2


def test_number_of_members_is_bounded() -> None:
    sides = players_on("C", "T")
    sides.members = {f"stranger {number}": Team.TEAM1 for number in range(MAX_MEMBERS + 1)}
    sides.lineups()
    assert not any(name.startswith("stranger") for name in sides.members)


def test_after_lost_lines_the_players_seen_since_then_decide_if_they_agree() -> None:
    sides = players_on("C", "C", "T", "T")
    sides.vote()
    sides.mark_doubtful()
    assert not sides.vote(is_seen_only=True), "no player was seen"
    sides.set_side(id64(1), Side.T)
    assert sides.vote(is_seen_only=True)
    assert sides.team1_side is Side.T
    sides.set_side(id64(1), Side.CT)
    assert not sides.vote(is_seen_only=True), "one of four players does not overrule a vote"
    sides.mark_doubtful()
    sides.set_side(id64(1), Side.CT)
    sides.set_side(id64(2), Side.T)
    assert not sides.vote(is_seen_only=True), "they do not agree"


# --- after lost lines --------------------------------------------------------------------------------------------


def doubtful(*sides: str) -> SideTracker:
    found = players_on(*sides)
    found.mark_doubtful()
    return found


def test_after_lost_lines_only_players_seen_since_vote() -> None:
    sides = doubtful("C", "C", "T", "T")
    assert not sides.vote()
    assert sides.is_doubtful
    sides.set_side(id64(1), Side.T)
    assert sides.vote()
    assert (sides.team1_side, sides.is_doubtful) == (Side.T, False)
    assert list(sides.player_sides.values()) == [Side.T, Side.T, Side.CT, Side.CT], "the others moved too"


def test_after_lost_lines_the_voters_must_agree() -> None:
    sides = doubtful("C", "C", "T", "T")
    sides.set_side(id64(1), Side.T)
    sides.set_side(id64(2), Side.T)
    sides.set_side(id64(3), Side.T)
    assert not sides.vote(is_seen_only=True)
    assert sides.is_doubtful


def test_score_that_fits_only_one_side_ends_the_doubt() -> None:
    sides = doubtful("C", "C", "T", "T")
    assert not sides.follow_score((5, 5), (3, 2))
    assert sides.is_doubtful
    assert not sides.follow_score((4, 2), (3, 2))
    assert not sides.is_doubtful


def test_player_of_whom_there_is_no_line_since_lost_lines_is_in_no_line_up_and_does_not_vote() -> None:
    sides = players_on("C", "-", "T")
    sides.set_side(id64(9), Side.T)
    sides.mark_doubtful()
    assert sides.lineups() == ((), ())
    sides.set_side(id64(1), Side.T)
    assert sides.lineups() == ((id64(1),), ())
    assert sides.vote()
    assert sides.lineups() == ((id64(1),), ())
    sides.set_side(id64(3), Side.CT)
    sides.set_side(id64(9), Side.CT)
    assert sides.lineups() == ((id64(1),), (id64(3), id64(9)))


def test_without_teams_lost_lines_leave_nothing_in_doubt() -> None:
    sides = SideTracker()
    sides.set_side(id64(1), Side.T)
    sides.mark_doubtful()
    assert sides.is_certain
    assert sides.lineups() == ((), ())


def test_map_load_ends_the_doubt() -> None:
    sides = doubtful("C", "C", "T", "T")
    sides.clear_sides()
    assert not sides.is_doubtful


def without_roster(*sides: str) -> SideTracker:
    found = SideTracker()
    for account, side in enumerate(sides, start=1):
        found.set_side(id64(account), {"C": Side.CT, "T": Side.T}[side])
    found.lineups()
    return found


def test_teams_of_unlisted_players_stay_while_the_sides_are_in_doubt() -> None:
    sides = without_roster("C", "C", "T", "T")
    sides.mark_doubtful()
    for account, side in ((1, Side.T), (2, Side.CT), (3, Side.CT)):
        sides.set_side(id64(account), side)
    assert not sides.vote(is_seen_only=True)
    assert sides.lineups() == ((id64(1), id64(2)), (id64(3),))
    assert list(sides.members.values()) == [Team.TEAM1, Team.TEAM1, Team.TEAM2, Team.TEAM2]
    sides.set_side(id64(4), Side.CT)
    sides.set_side(id64(2), Side.T)
    assert sides.vote(is_seen_only=True)
    assert sides.team_on(Side.T) is Team.TEAM1


def test_one_unlisted_player_does_not_end_the_doubt() -> None:
    sides = without_roster("C", "C", "T", "T")
    sides.mark_doubtful()
    sides.set_side(id64(1), Side.T)
    assert not sides.vote()
    assert sides.is_doubtful


def test_sides_are_certain_if_all_players_were_seen_since_lost_lines() -> None:
    sides = doubtful("C", "C", "T", "T")
    assert not sides.is_certain
    for account, side in enumerate((Side.CT, Side.CT, Side.T, Side.T), start=1):
        sides.set_side(id64(account), side)
    assert sides.is_certain


@pytest.mark.parametrize("team", [TeamRoster("Reds"), None])
def test_names_on_the_server_say_on_which_side_an_unlisted_team_begins(team: TeamRoster | None) -> None:
    other = None if team is None else TeamRoster("Blues")
    settings = msgspec.structs.replace(competitive(), team1=team, team2=other, sides=(StartSides.TEAM1_T,))
    first, second = ("Team 2", "Team 1") if team is None else ("Blues", "Reds")
    sides = SideTracker.of(settings)
    sides.set_side(id64(1), Side.CT)
    sides.decide_start_side({Side.CT: first, Side.T: second})
    assert (sides.team1_side, sides.team_of(id64(1))) == (Side.T, Team.TEAM2)
    sides.decide_start_side({Side.CT: second, Side.T: first})
    assert (sides.team1_side, sides.team_of(id64(1))) == (Side.CT, Team.TEAM1)


def test_forged_players_beyond_the_limit_are_ignored_and_known_ones_still_change_sides() -> None:
    sides = players_on("C", "C", "T", "T")
    for account in range(5, 2 * MAX_PLAYERS):
        sides.set_side(id64(account), Side.CT)
    sides.set_side(id64(1), Side.T)
    assert len(sides.player_sides) == len(sides.seen) == MAX_PLAYERS
    assert sides.player_sides[id64(1)] is Side.T
