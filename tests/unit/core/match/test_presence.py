"""Connected, former and unlisted players."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side, Team
from matchpod.core import events as ev
from matchpod.core.effects import UNKNOWN_USER_ID, Kick
from matchpod.core.match.presence import MAX_SEEN_PLAYERS, NOT_LISTED, PlayerConnection, Presence
from matchpod.core.match.roster import Roster, RosterRole
from tests.unit.core.match.test_roster import roster_settings
from tests.unit.core.match_driver import ANN, BEN, CAT, EVE


def connected(player: str, user_id: int = 1) -> ev.PlayerConnected:
    return ev.PlayerConnected(0, player, player[-1], user_id)


def entered(player: str, user_id: int = 1) -> ev.PlayerEntered:
    return ev.PlayerEntered(0, player, player[-1], user_id)


def on_side(player: str, side: Side | None = Side.CT, team: Team | None = None) -> ev.PlayerJoinedSide:
    return ev.PlayerJoinedSide(0, player, player[-1], side, team)


def gone(player: str, *, is_map_change: bool = False) -> ev.PlayerDisconnected:
    return ev.PlayerDisconnected(0, player, player[-1], "EXITING", is_map_change)


def presence(*events: ev.GameEvent, roster: tuple[str, ...] = (ANN, BEN)) -> Presence:
    """The presence after these events, one per second."""
    tracked = Presence(roster=Roster.of(roster_settings(*roster)))
    for second, event in enumerate(events, start=1):
        tracked.apply(event, second * 1000)
    return tracked


@pytest.mark.parametrize("event", [connected(EVE, 7), entered(EVE, 7)])
def test_unlisted_player_is_kicked_and_not_tracked(event: ev.GameEvent) -> None:
    tracked = presence()
    assert tracked.apply(event, 1) == [Kick(EVE, 7, NOT_LISTED)]
    assert (tracked.connected, tracked.ever_connected, tracked.teams) == ({}, [], {})


def test_unlisted_player_who_joins_a_side_is_kicked_by_the_known_user_id() -> None:
    tracked = presence(connected(EVE, 7))
    assert tracked.apply(on_side(EVE, team=Team.TEAM1), 2) == [Kick(EVE, 7, NOT_LISTED)]
    assert tracked.teams == {}


@pytest.mark.parametrize(
    "before", [(), (connected(EVE, 7), gone(EVE)), (connected(EVE, 7), ev.MapLoading(0, "de_nuke"))]
)
def test_unlisted_player_whose_connection_is_unknown_is_kicked_by_player_id(before: tuple[ev.GameEvent, ...]) -> None:
    assert presence(*before).apply(on_side(EVE), 9_000) == [Kick(EVE, UNKNOWN_USER_ID, NOT_LISTED)]


def test_bots_are_ignored() -> None:
    bot = "BOT:Han"
    line_up = ev.RoundStarted(0, 1, (bot,), (), Side.CT)
    tracked = presence(connected(bot), entered(bot), on_side(bot), line_up, gone(bot))
    assert (tracked.connected, tracked.ever_connected, tracked.empty_since_ms) == ({}, [], None)


def test_connection_has_name_entry_time_and_side() -> None:
    tracked = presence(connected(ANN, 5), entered(ANN, 5), on_side(ANN, Side.T), ev.PlayerRenamed(0, ANN, "annie"))
    assert tracked.connected == {ANN: PlayerConnection(5, "annie", 2_000, Side.T)}


def test_name_is_updated_when_a_player_joins_a_side() -> None:
    tracked = presence(ev.RoundStarted(0, 4, (ANN,), (), Side.CT), on_side(ANN))
    assert tracked.connected[ANN].name == "1"


def test_missing_and_joined_players_are_in_roster_order() -> None:
    tracked = presence(connected(CAT), connected(ANN), gone(ANN), roster=(ANN, BEN, CAT))
    assert tracked.ever_connected == [CAT, ANN]
    assert tracked.joined_of_created() == (ANN, CAT)
    assert tracked.missing() == (BEN,)


def test_joining_a_side_counts_as_entering() -> None:
    tracked = presence(connected(ANN), on_side(ANN), on_side(BEN))
    assert tracked.complete_since_ms() == 3_000
    assert tracked.is_everyone_on_a_side()


def test_leaving_a_side_does_not_count_as_entering() -> None:
    tracked = presence(connected(ANN), on_side(ANN, None), on_side(BEN, None))
    assert tracked.connected == {ANN: PlayerConnection(1, "1", loading_ms=1_000)}
    assert not tracked.is_everyone_on_a_side()


def test_late_entry_line_keeps_the_side() -> None:
    assert presence(on_side(ANN, Side.T), entered(ANN)).connected[ANN].side is Side.T


def test_team_from_the_game_is_stored() -> None:
    tracked = presence(on_side(EVE, team=Team.TEAM2), on_side(EVE, None), roster=())
    assert tracked.teams == {EVE: Team.TEAM2}


def test_time_of_a_map_change_is_set_by_disconnects_and_by_loading() -> None:
    tracked = presence(connected(ANN), gone(ANN, is_map_change=True))
    assert (tracked.empty_since_ms, tracked.map_change_at_ms) == (2_000, 2_000)
    tracked.apply(ev.MapLoading(0, "de_nuke"), 5_000)
    assert (tracked.empty_since_ms, tracked.map_change_at_ms) == (2_000, 5_000)


@pytest.mark.parametrize("event", [ev.MapLoading(0, "de_nuke"), ev.ServerRestarted(0)])
def test_map_load_and_server_restart_disconnect_all_players(event: ev.GameEvent) -> None:
    tracked = presence(entered(ANN), entered(BEN), event)
    assert tracked.connected == {}
    assert (tracked.empty_since_ms, tracked.map_change_at_ms) == (3_000, 3_000)
    assert tracked.ever_connected == [ANN, BEN]


def test_all_players_have_to_enter_the_next_map() -> None:
    tracked = presence(entered(ANN), on_side(ANN), entered(BEN), on_side(BEN))
    tracked.map_ended(5_000)
    assert not tracked.is_everyone_on_a_side()
    tracked.apply(on_side(ANN, Side.T), 6_000)
    tracked.apply(on_side(BEN, Side.CT), 6_000)
    assert tracked.complete_since_ms() is None
    assert list(tracked.connected) == [ANN, BEN]
    for player in (ANN, BEN):
        tracked.apply(entered(player), 60_000)
    assert tracked.complete_since_ms() == 60_000


def test_listed_players_in_a_line_up_count_as_connected() -> None:
    tracked = presence(connected(ANN), gone(ANN))
    tracked.apply(ev.RoundStarted(0, 4, (ANN,), (BEN, EVE), Side.CT), 9_000)
    assert list(tracked.connected) == [ANN, BEN]
    assert tracked.empty_since_ms is None


def test_line_up_does_not_change_known_connections() -> None:
    tracked = presence(connected(ANN, 5), entered(ANN, 5), ev.RoundStarted(0, 4, (ANN,), (), Side.CT))
    assert tracked.connected == {ANN: PlayerConnection(5, "1", 2_000)}


def test_number_of_tracked_players_is_limited() -> None:
    without_roster, with_roster = presence(roster=()), presence()
    for number in range(MAX_SEEN_PLAYERS + 5):
        for tracked in (without_roster, with_roster):
            tracked.apply(connected(str(number)), 1)
            tracked.apply(on_side(str(number), team=Team.TEAM1), 1)
    assert (
        len(without_roster.connected)
        == len(without_roster.ever_connected)
        == len(without_roster.teams)
        == MAX_SEEN_PLAYERS
    )
    assert len(with_roster.turned_away) == MAX_SEEN_PLAYERS


# --- after lost lines: the console's player list ------------------------------------------------------------------

LOAD_MS = 60_000
GAP = ev.LogGap(0, 100)


def listed(*players: str) -> ev.PlayersSeen:
    return ev.PlayersSeen(0, {player: player[-1] for player in players}, LOAD_MS)


def test_console_list_is_ignored_if_no_lines_were_lost() -> None:
    tracked = presence(connected(ANN))
    tracked.apply(listed(BEN), 99_000)
    tracked.apply(listed(BEN), 199_000)
    assert list(tracked.connected) == [ANN]
    assert tracked.ever_connected == [ANN]


def test_player_whose_entry_line_was_lost_counts_as_entered_after_the_load_time() -> None:
    tracked = presence(entered(ANN), connected(BEN), GAP)
    tracked.apply(listed(ANN, BEN), 10_000)
    tracked.apply(listed(ANN, BEN), 10_000 + LOAD_MS - 1)
    assert tracked.complete_since_ms() is None
    tracked.apply(listed(ANN, BEN), 10_000 + LOAD_MS)
    assert tracked.complete_since_ms() == 10_000 + LOAD_MS
    assert not tracked.is_doubtful


def test_player_whose_connect_line_was_lost_is_connected_by_the_console_list() -> None:
    tracked = presence(entered(ANN), GAP)
    tracked.apply(listed(ANN, BEN), 10_000)
    assert tracked.missing() == ()
    assert tracked.connected[BEN] == PlayerConnection(UNKNOWN_USER_ID, BEN[-1], loading_ms=10_000)


def test_player_whose_disconnect_line_was_lost_is_removed_after_the_load_time() -> None:
    tracked = presence(entered(ANN), entered(BEN), GAP)
    tracked.apply(listed(ANN), 10_000)
    assert list(tracked.connected) == [ANN, BEN]
    tracked.apply(listed(ANN), 10_000 + LOAD_MS)
    assert list(tracked.connected) == [ANN]
    tracked.mark_doubtful(100_000)
    tracked.apply(listed(), 100_000)
    tracked.apply(listed(), 100_000 + LOAD_MS)
    assert tracked.empty_since_ms == 100_000 + LOAD_MS


def test_player_who_is_listed_again_is_not_removed() -> None:
    tracked = presence(entered(ANN), entered(BEN), GAP)
    tracked.apply(listed(ANN), 10_000)
    tracked.apply(listed(ANN, BEN), 40_000)
    tracked.apply(listed(ANN), 10_000 + LOAD_MS)
    assert list(tracked.connected) == [ANN, BEN]


def test_unlisted_player_found_by_the_console_is_kicked_by_player_id() -> None:
    tracked = presence(entered(ANN), GAP)
    assert tracked.apply(listed(ANN, EVE), 10_000) == [Kick(EVE, UNKNOWN_USER_ID, NOT_LISTED)]
    assert EVE not in tracked.connected


def test_another_gap_extends_the_doubt_but_keeps_the_listed_players() -> None:
    tracked = presence(entered(ANN), connected(BEN), GAP)
    tracked.apply(listed(ANN, BEN), 10_000)
    tracked.apply(GAP, 30_000)
    tracked.apply(listed(ANN, BEN), 10_000 + LOAD_MS)
    assert tracked.complete_since_ms() == 10_000 + LOAD_MS
    assert tracked.is_doubtful
    tracked.apply(listed(ANN, BEN), 30_000 + LOAD_MS)
    assert not tracked.is_doubtful


@pytest.mark.parametrize("event", [connected(BEN), gone(BEN), ev.MapLoading(0, "de_nuke"), listed(ANN)])
def test_player_whose_client_loads_again_must_be_listed_for_the_whole_load_time(event: ev.GameEvent) -> None:
    tracked = presence(entered(ANN), connected(BEN), GAP)
    tracked.apply(listed(ANN, BEN), 10_000)
    tracked.apply(event, 40_000)
    tracked.apply(listed(ANN, BEN), 50_000)
    tracked.apply(listed(ANN, BEN), 50_000 + LOAD_MS - 1)
    assert tracked.connected[BEN].entered_ms is None
    tracked.apply(listed(ANN, BEN), 50_000 + LOAD_MS)
    assert tracked.connected[BEN].entered_ms == 50_000 + LOAD_MS


def test_list_of_the_console_is_awaited_for_the_load_time_after_the_last_loss() -> None:
    tracked = presence(entered(ANN), GAP)
    tracked.apply(GAP, 10_000)
    tracked.apply(connected(BEN), 30_000)
    assert tracked.awaits_list
    tracked.apply(listed(ANN, BEN), 10_000 + LOAD_MS - 1)
    assert tracked.awaits_list
    tracked.apply(listed(ANN), 10_000 + LOAD_MS)
    assert tracked.awaits_list
    tracked.apply(listed(ANN, BEN), 10_000 + LOAD_MS)
    assert (tracked.awaits_list, tracked.is_doubtful, tracked.loading()) == (False, True, (BEN,))
    tracked.apply(connected(BEN), 80_000)
    tracked.apply(listed(ANN, BEN), 90_000)
    assert not tracked.awaits_list
    tracked.apply(GAP, 91_000)
    assert tracked.awaits_list


def test_list_of_the_console_is_awaited_while_a_client_may_have_entered_meanwhile() -> None:
    tracked = presence(entered(ANN), connected(BEN), GAP)
    tracked.apply(listed(ANN, BEN), LOAD_MS + 3_000)
    assert tracked.awaits_list
    tracked = presence(entered(ANN), GAP)
    tracked.apply(listed(ANN, BEN), LOAD_MS + 3_000)  # only the list says that it connected
    assert tracked.awaits_list
    tracked.mark_doubtful(LOAD_MS + 4_000)
    assert tracked.awaits_list


def test_listed_players_load_from_their_connection_until_they_enter() -> None:
    tracked = presence(connected(CAT), connected(ANN), connected(EVE), roster=(ANN, BEN, CAT))
    assert (tracked.loading(), tracked.loading_since_ms()) == ((ANN, CAT), 2_000)
    tracked.apply(entered(ANN), 4_000)
    assert (tracked.loading(), tracked.loading_since_ms()) == ((CAT,), 1_000)
    tracked.apply(on_side(CAT), 5_000)
    assert (tracked.loading(), tracked.loading_since_ms()) == ((), None)


def test_no_client_loads_on_a_map_that_is_over() -> None:
    tracked = presence(entered(ANN), connected(BEN))
    tracked.map_ended(5_000)
    assert tracked.loading() == ()
    tracked.apply(connected(BEN), 6_000)
    assert tracked.loading() == (BEN,)


@pytest.mark.parametrize(
    ("events", "until_ms"),
    [
        ((entered(ANN), connected(BEN)), 2_000 + LOAD_MS),
        ((connected(ANN), connected(BEN)), 2_000 + LOAD_MS),
        ((connected(ANN),), 30_000),
        ((entered(ANN), entered(BEN)), 30_000),
    ],
)
def test_clients_that_load_are_waited_for_if_nobody_else_is_missing(
    events: tuple[ev.GameEvent, ...], until_ms: int
) -> None:
    assert presence(*events).loaded_by_ms(30_000, LOAD_MS) == until_ms


@pytest.mark.parametrize(("end_ms", "until_ms"), [(1_999, 1_999), (61_999, 2_000 + LOAD_MS), (62_000, 62_000)])
def test_clients_are_waited_for_that_are_within_the_load_time(end_ms: int, until_ms: int) -> None:
    assert presence(entered(ANN), connected(BEN)).loaded_by_ms(end_ms, LOAD_MS) == until_ms


def test_player_enters_by_the_console_list_even_if_more_lines_are_lost() -> None:
    tracked = presence(connected(ANN), GAP)
    for turn in range(4):
        tracked.apply(listed(ANN), 10_000 + turn * LOAD_MS // 2)
        tracked.apply(GAP, 10_001 + turn * LOAD_MS // 2)
    assert tracked.connected[ANN].entered_ms == 10_000 + LOAD_MS


def test_guest_is_let_in_and_is_no_player() -> None:
    tracked = presence()
    tracked.roster = tracked.roster.add(EVE, RosterRole.SPECTATOR)
    for event in (connected(EVE, 7), entered(EVE, 7), on_side(EVE, None)):
        assert tracked.apply(event, 1_000) == []
    assert tracked.guests == {EVE: PlayerConnection(7, EVE[-1])}
    assert (tracked.connected, tracked.ever_connected, tracked.teams) == ({}, [], {})
    tracked.apply(gone(EVE), 2_000)
    assert tracked.guests == {}


def test_console_lists_guests_too() -> None:
    tracked = presence(connected(ANN))
    tracked.roster = tracked.roster.add(EVE, RosterRole.SPECTATOR)
    tracked.mark_doubtful(2_000)
    assert tracked.apply(ev.PlayersSeen(0, {ANN: "a", EVE: "e"}, 9_000), 3_000) == []
    assert list(tracked.guests) == [EVE]
    tracked.apply(ev.PlayersSeen(0, {ANN: "a"}, 9_000), 4_000)
    assert tracked.guests == {}
