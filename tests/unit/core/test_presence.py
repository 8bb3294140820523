"""Who is here, who was, who may not be."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.effects import UNKNOWN_USER_ID, Kick
from matchpod.core.model import Side, Team
from matchpod.core.presence import MAX_SEEN_PLAYERS, NOT_LISTED, Connection, Presence
from tests.unit.core.match_builder import ANN, BEN, CAT, EVE


def connected(player: str, user_id: int = 1) -> ev.PlayerConnected:
    return ev.PlayerConnected(0, player, player[-1], user_id)


def entered(player: str, user_id: int = 1) -> ev.PlayerEntered:
    return ev.PlayerEntered(0, player, player[-1], user_id)


def on_side(player: str, side: Side | None = Side.CT, team: Team | None = None) -> ev.PlayerJoinedSide:
    return ev.PlayerJoinedSide(0, player, player[-1], side, team)


def gone(player: str, *, is_map_change: bool = False) -> ev.PlayerDisconnected:
    return ev.PlayerDisconnected(0, player, player[-1], "EXITING", is_map_change)


def presence(*events: ev.GameEvent, roster: tuple[str, ...] = (ANN, BEN)) -> Presence:
    """After those events, one a second."""
    people = Presence(roster=roster)
    for second, event in enumerate(events, start=1):
        people.apply(event, second * 1000)
    return people


@pytest.mark.parametrize("event", [connected(EVE, 7), entered(EVE, 7)])
def test_unlisted_player_is_kicked_and_kept_in_no_list(event: ev.GameEvent) -> None:
    people = presence()
    assert people.apply(event, 1) == [Kick(EVE, 7, NOT_LISTED)]
    assert (people.connected, people.ever_connected, people.teams) == ({}, [], {})


def test_unlisted_player_who_takes_a_side_is_kicked_by_the_user_id_he_came_with() -> None:
    people = presence(connected(EVE, 7))
    assert people.apply(on_side(EVE, team=Team.TEAM1), 2) == [Kick(EVE, 7, NOT_LISTED)]
    assert people.teams == {}


@pytest.mark.parametrize(
    "before", [(), (connected(EVE, 7), gone(EVE)), (connected(EVE, 7), ev.MapLoading(0, "de_nuke"))]
)
def test_unlisted_player_whose_connection_is_unknown_is_kicked_by_player_id(before: tuple[ev.GameEvent, ...]) -> None:
    assert presence(*before).apply(on_side(EVE), 9_000) == [Kick(EVE, UNKNOWN_USER_ID, NOT_LISTED)]


def test_nobody_is_kicked_without_a_roster() -> None:
    people = presence(roster=())
    assert people.apply(connected(EVE), 1) == people.apply(entered(EVE), 1) == people.apply(on_side(EVE), 1) == []
    assert list(people.connected) == [EVE]


def test_bots_are_ignored() -> None:
    bot = "BOT:Han"
    line_up = ev.RoundStarted(0, 1, (bot,), (), Side.CT)
    people = presence(connected(bot), entered(bot), on_side(bot), line_up, gone(bot))
    assert (people.connected, people.ever_connected, people.empty_since_ms) == ({}, [], None)


def test_connection_knows_name_entry_and_side() -> None:
    people = presence(connected(ANN, 5), entered(ANN, 5), on_side(ANN, Side.T), ev.PlayerRenamed(0, ANN, "annie"))
    assert people.connected == {ANN: Connection(5, "annie", 2_000, Side.T)}


def test_name_that_comes_with_a_side_is_kept() -> None:
    people = presence(ev.RoundStarted(0, 4, (ANN,), (), Side.CT), on_side(ANN))
    assert people.connected[ANN].name == "1"


def test_name_of_someone_who_is_not_here_changes_nothing() -> None:
    assert presence(ev.PlayerRenamed(0, ANN, "annie")).connected == {}


def test_missing_and_joined_come_in_roster_order() -> None:
    people = presence(connected(CAT), connected(ANN), gone(ANN), roster=(ANN, BEN, CAT))
    assert people.ever_connected == [CAT, ANN]
    assert people.joined() == (ANN, CAT)
    assert people.missing() == (BEN,)


def test_roster_is_complete_when_the_last_one_has_entered() -> None:
    people = presence(connected(ANN), connected(BEN), entered(BEN))
    assert people.complete_since_ms() is None
    people.apply(entered(ANN), 9_000)
    assert people.complete_since_ms() == 9_000


def test_without_a_roster_nothing_is_complete() -> None:
    assert presence(entered(ANN), roster=()).complete_since_ms() is None


def test_new_connection_has_to_enter_again() -> None:
    assert presence(entered(ANN), entered(BEN), connected(ANN)).complete_since_ms() is None


def test_taking_a_side_proves_that_one_has_entered() -> None:
    people = presence(connected(ANN), on_side(ANN), on_side(BEN))
    assert people.complete_since_ms() == 3_000
    assert people.is_everyone_on_a_side()


def test_leaving_a_side_proves_nothing() -> None:
    people = presence(connected(ANN), on_side(ANN, None), on_side(BEN, None))
    assert people.connected == {ANN: Connection(1, "1")}
    assert not people.is_everyone_on_a_side()


def test_spectator_is_on_no_side() -> None:
    people = presence(entered(ANN), on_side(ANN), entered(BEN), on_side(BEN), on_side(BEN, None))
    assert not people.is_everyone_on_a_side()


def test_side_survives_a_late_entry_line() -> None:
    assert presence(on_side(ANN, Side.T), entered(ANN)).connected[ANN].side is Side.T


def test_team_that_the_game_told_is_kept() -> None:
    people = presence(on_side(EVE, team=Team.TEAM2), on_side(EVE, None), roster=())
    assert people.teams == {EVE: Team.TEAM2}


def test_server_is_empty_since_the_last_one_left() -> None:
    people = presence(connected(ANN), connected(BEN), gone(ANN))
    assert people.empty_since_ms is None
    people.apply(gone(BEN), 9_000)
    assert people.empty_since_ms == 9_000
    people.apply(connected(ANN), 10_000)
    assert people.empty_since_ms is None


def test_stranger_who_leaves_does_not_empty_the_server() -> None:
    assert presence(connected(EVE), gone(EVE)).empty_since_ms is None


def test_map_change_is_remembered_by_its_disconnects_and_its_loading() -> None:
    people = presence(connected(ANN), gone(ANN, is_map_change=True))
    assert (people.empty_since_ms, people.map_change_at_ms) == (2_000, 2_000)
    people.apply(ev.MapLoading(0, "de_nuke"), 5_000)
    assert (people.empty_since_ms, people.map_change_at_ms) == (2_000, 5_000)


@pytest.mark.parametrize("event", [ev.MapLoading(0, "de_nuke"), ev.ServerRestarted(0)])
def test_loading_map_and_new_server_drop_everybody(event: ev.GameEvent) -> None:
    people = presence(entered(ANN), entered(BEN), event)
    assert people.connected == {}
    assert (people.empty_since_ms, people.map_change_at_ms) == (3_000, 3_000)
    assert people.ever_connected == [ANN, BEN]


def test_map_that_loads_before_anyone_came_leaves_nobody_gone() -> None:
    assert presence(ev.MapLoading(0, "de_nuke")).empty_since_ms is None


def test_after_a_map_everybody_has_to_enter_the_next_one() -> None:
    people = presence(entered(ANN), on_side(ANN), entered(BEN), on_side(BEN))
    people.map_ended(5_000)
    assert not people.is_everyone_on_a_side()
    people.apply(on_side(ANN, Side.T), 6_000)
    people.apply(on_side(BEN, Side.CT), 6_000)
    assert people.complete_since_ms() is None
    assert list(people.connected) == [ANN, BEN]
    for player in (ANN, BEN):
        people.apply(entered(player), 60_000)
    assert people.complete_since_ms() == 60_000


def test_line_up_of_a_round_proves_who_is_here() -> None:
    people = presence(connected(ANN), gone(ANN))
    people.apply(ev.RoundStarted(0, 4, (ANN,), (BEN, EVE), Side.CT), 9_000)
    assert list(people.connected) == [ANN, BEN]
    assert people.empty_since_ms is None


def test_line_up_changes_nothing_about_those_we_know() -> None:
    people = presence(connected(ANN, 5), entered(ANN, 5), ev.RoundStarted(0, 4, (ANN,), (), Side.CT))
    assert people.connected == {ANN: Connection(5, "1", 2_000)}


def test_lists_do_not_grow_without_end() -> None:
    open_door, closed_door = presence(roster=()), presence()
    for number in range(MAX_SEEN_PLAYERS + 5):
        for people in (open_door, closed_door):
            people.apply(connected(str(number)), 1)
            people.apply(on_side(str(number), team=Team.TEAM1), 1)
    assert len(open_door.connected) == len(open_door.ever_connected) == len(open_door.teams) == MAX_SEEN_PLAYERS
    assert len(closed_door.turned_away) == MAX_SEEN_PLAYERS


# --- after lost lines: what the console says ----------------------------------------------------------------------

LOAD_MS = 60_000
GAP = ev.LogGap(0, 100)


def seen(*players: str) -> ev.PlayersSeen:
    return ev.PlayersSeen(0, {player: player[-1] for player in players}, LOAD_MS)


def test_lost_lines_raise_a_doubt_that_nothing_else_does() -> None:
    assert not presence(connected(ANN), entered(ANN), gone(ANN)).is_doubtful
    assert presence(connected(ANN), GAP).is_doubtful


def test_console_is_not_believed_where_nothing_was_lost() -> None:
    people = presence(connected(ANN))
    people.apply(seen(BEN), 99_000)
    people.apply(seen(BEN), 199_000)
    assert list(people.connected) == [ANN]
    assert people.ever_connected == [ANN]


def test_player_whose_entry_was_lost_is_in_the_game_after_the_time_to_load() -> None:
    people = presence(entered(ANN), connected(BEN), GAP)
    people.apply(seen(ANN, BEN), 10_000)
    people.apply(seen(ANN, BEN), 10_000 + LOAD_MS - 1)
    assert people.complete_since_ms() is None
    people.apply(seen(ANN, BEN), 10_000 + LOAD_MS)
    assert people.complete_since_ms() == 10_000 + LOAD_MS
    assert not people.is_doubtful


def test_player_whose_connection_was_lost_has_come() -> None:
    people = presence(entered(ANN), GAP)
    people.apply(seen(ANN, BEN), 10_000)
    assert people.missing() == ()
    assert people.connected[BEN] == Connection(UNKNOWN_USER_ID, BEN[-1])


def test_player_whose_leaving_was_lost_is_gone_after_the_time_to_load() -> None:
    people = presence(entered(ANN), entered(BEN), GAP)
    people.apply(seen(ANN), 10_000)
    assert list(people.connected) == [ANN, BEN]
    people.apply(seen(ANN), 10_000 + LOAD_MS)
    assert list(people.connected) == [ANN]
    people.doubt(100_000)
    people.apply(seen(), 100_000)
    people.apply(seen(), 100_000 + LOAD_MS)
    assert people.empty_since_ms == 100_000 + LOAD_MS


def test_player_who_is_seen_again_in_between_has_not_left() -> None:
    people = presence(entered(ANN), entered(BEN), GAP)
    people.apply(seen(ANN), 10_000)
    people.apply(seen(ANN, BEN), 40_000)
    people.apply(seen(ANN), 10_000 + LOAD_MS)
    assert list(people.connected) == [ANN, BEN]


def test_stranger_whom_only_the_console_shows_is_kicked_by_player_id() -> None:
    people = presence(entered(ANN), GAP)
    assert people.apply(seen(ANN, EVE), 10_000) == [Kick(EVE, UNKNOWN_USER_ID, NOT_LISTED)]
    assert EVE not in people.connected


def test_who_stands_on_a_map_that_is_over_has_not_entered_the_next() -> None:
    people = presence(entered(ANN), entered(BEN), GAP)
    people.map_ended(10_000)
    people.apply(seen(ANN, BEN), 11_000)
    people.apply(seen(ANN, BEN), 11_000 + LOAD_MS)
    assert people.complete_since_ms() is None


def test_new_gap_prolongs_the_doubt_but_not_about_whom_the_console_goes_on_seeing() -> None:
    people = presence(entered(ANN), connected(BEN), GAP)
    people.apply(seen(ANN, BEN), 10_000)
    people.apply(GAP, 30_000)
    people.apply(seen(ANN, BEN), 10_000 + LOAD_MS)
    assert people.complete_since_ms() == 10_000 + LOAD_MS
    assert people.is_doubtful
    people.apply(seen(ANN, BEN), 30_000 + LOAD_MS)
    assert not people.is_doubtful


def test_a_player_whose_coming_was_lost_is_believed_although_lines_go_on_being_lost() -> None:
    people = presence(connected(ANN), GAP)
    for turn in range(4):
        people.apply(seen(ANN), 10_000 + turn * LOAD_MS // 2)
        people.apply(GAP, 10_001 + turn * LOAD_MS // 2)
    assert people.connected[ANN].entered_ms == 10_000 + LOAD_MS
