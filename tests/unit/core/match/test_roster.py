"""The people of a match: who plays, who watches, and what an action changes."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Team
from matchpod.core.match.roster import Roster, RosterRole
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from tests.unit.core.match_driver import ANN, BEN, CAT, EVE

DAN = "76561198000000009"


def roster_settings(*players: str) -> GameSettings:
    return GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_dust2",), players=players)


def roster() -> Roster:
    """Ann, coached by Cat, plays against Ben; Eve watches."""
    return Roster.of(
        GameSettings(
            match_type=MatchType.COMPETITIVE,
            maps=("de_dust2",),
            team1=TeamRoster("One", (ANN,), coaches=(CAT,)),
            team2=TeamRoster("Two", (BEN,)),
            spectators=(EVE,),
        )
    )


def test_only_players_are_awaited_and_counted() -> None:
    assert roster().players == roster().created == (ANN, BEN)
    assert [who for who in (ANN, BEN, CAT, EVE, DAN) if roster().is_counted(who)] == [ANN, BEN]
    assert roster().guests() == (CAT, EVE)


def test_listed_people_are_let_in_and_nobody_else() -> None:
    assert [who for who in (ANN, BEN, CAT, EVE, DAN) if roster().is_let_in(who)] == [ANN, BEN, CAT, EVE]


def test_players_of_a_deathmatch_have_no_team() -> None:
    listed = Roster.of(roster_settings(ANN))
    assert (listed.role_of(ANN), listed.team_of(ANN), listed.players) == (RosterRole.PLAYER, None, (ANN,))


def test_without_listed_players_anyone_plays_but_spectators() -> None:
    is_open = Roster.of(GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_dust2",), spectators=(EVE,)))
    assert is_open.is_open
    assert [is_open.is_let_in(who) for who in (ANN, EVE)] == [True, True]
    assert [is_open.is_counted(who) for who in (ANN, EVE)] == [True, False]


def test_substitute_takes_the_role_of_the_player_who_goes() -> None:
    changed = roster().replace(ANN, DAN)
    assert (changed.role_of(DAN), changed.role_of(ANN), changed.is_let_in(ANN)) == (RosterRole.TEAM1, None, False)
    assert (changed.players, changed.created) == ((BEN, DAN), (ANN, BEN))


def test_numbers_of_a_player_who_was_taken_out_stay_with_their_team() -> None:
    changed = roster().remove(ANN)
    assert (changed.is_counted(ANN), changed.team_of(ANN)) == (True, Team.TEAM1)
    watching = changed.add(ANN, RosterRole.SPECTATOR)
    assert (watching.is_counted(ANN), watching.is_guest(ANN), watching.team_of(ANN)) == (True, True, Team.TEAM1)


def test_player_who_comes_back_is_a_player_of_today() -> None:
    changed = roster().remove(ANN).add(ANN, RosterRole.TEAM2)
    assert (changed.players, changed.former, changed.team_of(ANN)) == ((BEN, ANN), {}, Team.TEAM2)


def test_stranger_cannot_be_replaced() -> None:
    with pytest.raises(ValueError, match=DAN):
        roster().replace(DAN, CAT)


def test_changes_leave_the_roster_before_as_it_was() -> None:
    before = roster()
    before.replace(ANN, DAN)
    assert before == roster()
