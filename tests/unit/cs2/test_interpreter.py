"""Tests of the events that lines are turned into."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.model import DmSubMode, GameSettings, MatchType, TeamRoster
from matchpod.cs2.interpreter import MAX_USERS, Interpreter
from tests.unit.cs2.server_log import MAP, ServerLog, competitive, id64


def test_map_goes_live_with_the_first_round_after_the_last_restart() -> None:
    log = ServerLog().go_live()
    (live,) = log.all(ev.MapLive)
    assert live.map_name == MAP
    assert live.at_ms - live.since_ms == 15_000
    assert log.last(ev.RoundStarted).team1 == (id64(1), id64(2))
    assert log.last(ev.RoundStarted).team2 == (id64(3), id64(4))


def test_knife_round_is_undone_by_the_next_match_start() -> None:
    log = ServerLog().go_live().kill(1, 3, "knife").round_end("CT").match_start(-1).match_start().round_start()
    flow = [type(event) for event in log.events if isinstance(event, ev.MapLive | ev.RoundRestored | ev.WarmupBegan)]
    assert flow == [ev.MapLive, ev.WarmupBegan, ev.MapLive]
    assert log.last(ev.RoundStarted).round_number == 1
    log.round_end("CT")
    assert log.last(ev.RoundDecided).round_number == 1


def test_score_line_ends_warmup_if_the_warmup_end_line_was_lost() -> None:
    log = ServerLog().load().join(1, 2, 3, 4).match_start(-1).write('World triggered "Warmup_Start"')
    log.match_start().round_start()
    assert log.all(ev.MapLive)


def test_round_is_won_by_the_team_on_the_winning_side() -> None:
    for side, notice, reason in [
        ("CT", "CTs_Win", RoundEndReason.CTS_WIN),
        ("TERRORIST", "Terrorists_Win", RoundEndReason.TERRORISTS_WIN),
        ("CT", "Target_Saved", RoundEndReason.TARGET_SAVED),
        ("CT", "All_Hostages_Rescued", RoundEndReason.HOSTAGES_RESCUED),
        ("TERRORIST", "Hostages_Not_Rescued", RoundEndReason.HOSTAGES_NOT_RESCUED),
        ("TERRORIST", "Aliens_Landed", RoundEndReason.UNKNOWN),
    ]:
        decided = ServerLog().go_live().round_end(side, notice).last(ev.RoundDecided)
        assert decided.reason is reason
        assert decided.winner is (Team.TEAM1 if side == "CT" else Team.TEAM2)
        assert (decided.team1_score, decided.team2_score) == ((1, 0) if side == "CT" else (0, 1))


def test_target_bombed_means_the_bomb_exploded() -> None:
    log = ServerLog().go_live().round_end("TERRORIST", "Target_Bombed")
    assert log.all(ev.BombExploded)


def test_teams_keep_their_score_through_halves_and_overtimes() -> None:
    log = ServerLog().go_live().play("CT", "CT", "TERRORIST").round_end("CT").halftime()
    assert log.last(ev.SidesSwapped).team1_side is Side.T
    log.round_end("TERRORIST").freeze().round_start().round_end("CT").halftime()
    assert log.last(ev.SidesSwapped).team1_side is Side.CT
    decided = log.round_end("CT").last(ev.RoundDecided)
    assert decided.winner is Team.TEAM1
    assert (decided.team1_score, decided.team2_score) == (5, 2)


def test_round_score_reveals_halftime_without_status_lines() -> None:
    # CS:GO prints no status lines.
    log = ServerLog(competitive(roster=False)).write('World triggered "Match_Start" on "x"').round_start()
    log.write('Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")').round_start()
    log.write('Team "TERRORIST" triggered "SFUI_Notice_Terrorists_Win" (CT "0") (T "2")')
    assert log.last(ev.SidesSwapped).team1_side is Side.T
    assert log.last(ev.RoundDecided).team1_score == 2


def test_without_a_roster_a_player_who_changes_side_changes_team() -> None:
    log = ServerLog(competitive(roster=False)).go_live().round_end("CT").switch(2, "CT", "TERRORIST").freeze()
    started = log.round_start().last(ev.RoundStarted)
    assert (started.team1, len(started.team2)) == ((id64(1),), 3)


def test_listed_player_on_the_wrong_side_stays_in_the_listed_team() -> None:
    log = ServerLog().go_live().round_end("CT").switch(2, "CT", "TERRORIST").freeze().round_start()
    assert id64(2) in log.last(ev.RoundStarted).team1


def test_map_live_event_has_the_team_names() -> None:
    log = ServerLog().load().join(1, 2, 3, 4).write('Team playing "CT": Reds', 'Team playing "TERRORIST": Blues')
    live = log.match_start().round_start().last(ev.MapLive)
    assert (live.team1_name, live.team2_name) == ("Reds", "Blues")


def test_rejoining_player_is_in_the_same_team() -> None:
    log = ServerLog().go_live().leave(2).round_end("CT").freeze().round_start()
    assert log.last(ev.RoundStarted).team1 == (id64(1),)
    assert log.last(ev.PlayerGone).player_id == id64(2)
    log.join(2).round_end("CT").freeze().round_start()
    assert log.last(ev.RoundStarted).team1 == (id64(1), id64(2))


def test_suicide_line_of_a_leaving_player_is_a_death() -> None:
    log = ServerLog().go_live().leave(2).write(f'{ServerLog().token(2)} [1 2 3] committed suicide with "world"')
    assert log.last(ev.Death) == ev.Death(log.now, id64(2), "world")


# Lines that a server prints of a player who has left, in the forms of a real log.
ABSENT = (
    '"Ben<2><STEAM_ID_PENDING><CT>" left buyzone with [ ]',
    '"Ben<2><STEAM_ID_PENDING>" switched from team <CT> to <TERRORIST>',
    '"Ben<3><STEAM_ID_PENDING><CT>" money change 6900+2400 = $9300 (tracked)',
    '"Ben<2><[U:1:2]><CT>" left buyzone with [ ]',
    '"Ben<2><[U:1:2]><CT>" dropped "knife"',
    '"Ben<2><[U:1:2]>" switched from team <CT> to <TERRORIST>',
    '"Ben<2><[U:1:2]><CT>" [0 0 0] killed "Dan<4><[U:1:4]><TERRORIST>" [3 4 0] with "inferno"',
)


@pytest.mark.parametrize("line", ABSENT)
@pytest.mark.parametrize("roster", [True, False])
def test_line_of_a_player_who_has_left_brings_nobody_back(line: str, roster: bool) -> None:
    log = ServerLog(competitive(roster=roster)).go_live().leave(2).write(line).round_end("CT").write(line)
    log.freeze().write(line).round_start().write(line)
    assert log.last(ev.RoundStarted).team1 == (id64(1),)
    assert log.last(ev.RoundStarted).team2 == (id64(3), id64(4))
    assert not log.all(ev.LineupGrown)
    assert id64(2) not in {event.player_id for event in log.all(ev.PlayerJoinedSide)[4:]}


def test_player_who_returned_during_lost_lines_is_in_the_line_up() -> None:
    log = ServerLog().go_live().leave(2).round_end("CT")
    log.interpreter.on_lost_lines(log.now, 1000)
    log.freeze().write(f'{log.token(2)} picked up "knife"').round_start()
    assert id64(2) in log.last(ev.RoundStarted).team1


def lose_leaving(log: ServerLog) -> ServerLog:
    """Lose the lines with which player 2 leaves; the others are seen after them."""
    log.interpreter.on_lost_lines(log.now, 1000)
    log.freeze()
    for account in (1, 3, 4):
        log.write(f'{log.token(account)} picked up "knife"')
    return log


@pytest.mark.parametrize("line", ABSENT)
@pytest.mark.parametrize("roster", [True, False])
def test_player_whose_leaving_is_lost_is_in_no_line_up(line: str, roster: bool) -> None:
    log = lose_leaving(ServerLog(competitive(roster=roster)).go_live().round_end("CT"))
    log.write(line).round_start().write(line).round_end("CT").write(line).freeze().write(line).round_start()
    first, last = log.all(ev.RoundStarted)[-2:]
    for start in (first, last):
        assert (start.team1, start.team2, start.unseen) == ((id64(1),), (id64(3), id64(4)), (id64(2),))
    assert not [event for event in log.all(ev.LineupGrown) if event.player_id == id64(2)]


OWN_LINES = (
    '"Ben<2><[U:1:2]><CT>" picked up "deagle"',
    '"Ben<3><[U:1:2]><CT>" money change 800+300 = $1100 (tracked)',
    '"Ben<2><[U:1:2]><CT>" left buyzone with [ weapon_knife ]',
    '"Ben<2><[U:1:2]><CT>" [0 0 0] killed "Dan<4><[U:1:4]><TERRORIST>" [3 4 0] with "ak47"',
    '"Dan<4><[U:1:4]><TERRORIST>" [0 0 0] attacked "Ben<2><[U:1:2]><CT>" [3 4 0] with "inferno"'
    ' (damage "5") (damage_armor "0") (health "95") (armor "0") (hitgroup "generic")',
    '"Ben<2><[U:1:2]><CT>" triggered "Begin_Bomb_Defuse_With_Kit"',
    '"Ben<2><[U:1:2]><CT>" sv_throw_decoygrenade 1.0 2.0 3.0 0.0 0.0 0.0 1.0 1.0 1.0 1.0 1.0 0.0 47 3.000',
    '"Ben<2><[U:1:2]><CT>" disconnected (reason "NETWORK_DISCONNECT_KICKED_IDLE")',
)


@pytest.mark.parametrize("line", OWN_LINES)
def test_line_of_a_player_after_lost_lines_puts_them_back_in_all_line_ups_since(line: str) -> None:
    log = lose_leaving(ServerLog().go_live().round_end("CT")).round_start().play("CT").write(line)
    grown = log.all(ev.LineupGrown)
    assert grown[-1] == ev.LineupGrown(log.now, id64(2), Team.TEAM1, was_unseen=True)
    assert id64(2) not in log.interpreter.flow.sides.unproven


def test_player_who_connects_after_lost_lines_was_not_there_before() -> None:
    log = lose_leaving(ServerLog().go_live().round_end("CT")).round_start()
    log.write(f"{log.token(2, '')} entered the game", f'{log.token(2)} picked up "knife"')
    assert id64(2) not in {event.player_id for event in log.all(ev.LineupGrown)}
    log.round_end("CT").freeze().write(f'{log.token(2)} picked up "knife"').round_start()
    assert log.last(ev.RoundStarted).team1 == (id64(1), id64(2))


PROOFS = (
    '"Ben<2><[U:1:2]><CT>" purchased "deagle"',
    '"Ben<3><[U:1:2]><CT>" money change 3150-1000 = $2150 (tracked) (purchase: item_assaultsuit)',
    '"Ben<2><[U:1:2]><CT>" left buyzone with [ weapon_knife ]',
    '"Ben<2><[U:1:2]><CT>" [0 0 0] killed "Dan<4><[U:1:4]><TERRORIST>" [3 4 0] with "ak47"',
    '"Ben<2><[U:1:2]><CT>" triggered "Planted_The_Bomb" at bombsite A',
)


@pytest.mark.parametrize("line", PROOFS)
def test_player_whose_return_is_not_in_the_log_is_believed_by_what_they_do(line: str) -> None:
    log = ServerLog().go_live().leave(2).round_end("CT").freeze().round_start().write(line)
    assert log.last(ev.LineupGrown) == ev.LineupGrown(log.now, id64(2), Team.TEAM1, is_return=True)
    assert log.play("CT").last(ev.RoundStarted).team1 == (id64(1), id64(2))


def test_bot_that_was_kicked_is_in_no_line_up() -> None:
    log = ServerLog(competitive(roster=False)).load().join(1, 3)
    log.write(
        '"Rex<7><BOT><>" connected, address "(unknown)"',
        '"Rex<7><BOT><>" entered the game',
        '"Rex<7><BOT>" switched from team <Unassigned> to <TERRORIST>',
        '"Rex<7><BOT><TERRORIST>" disconnected (reason "NETWORK_DISCONNECT_KICKED")',
        '"Rex<7><<none>><TERRORIST>" left buyzone with [ ]',
    )
    assert log.match_start().round_start().last(ev.RoundStarted).team2 == (id64(3),)
    log.write('"Rex<8><BOT><>" connected, address "(unknown)"', '"Rex<8><BOT><>" entered the game')
    log.write('"Rex<8><BOT>" switched from team <Unassigned> to <TERRORIST>').round_end("CT").freeze().round_start()
    assert log.last(ev.RoundStarted).team2 == (id64(3), "BOT:Rex")


def test_disconnect_reason_distinguishes_map_change_from_leaving() -> None:
    log = ServerLog().go_live().leave(1).leave(2, "NETWORK_DISCONNECT_LOOPDEACTIVATE")
    assert [event.is_map_change for event in log.all(ev.PlayerDisconnected)] == [False, True]


def test_pending_id_is_resolved_by_name_and_user_id() -> None:
    log = ServerLog().join(1).write('"Ann<1><STEAM_ID_PENDING>" switched from team <CT> to <Unassigned>')
    assert log.last(ev.PlayerJoinedSide).player_id == id64(1)
    log.write('"Ann<1><STEAM_ID_PENDING><>" disconnected (reason "x")')
    assert log.last(ev.PlayerDisconnected).player_id == id64(1)
    before = len(log.events)
    log.write(
        '"Nil<1><STEAM_ID_PENDING>" switched from team <CT> to <Unassigned>',
        '"Nil<1><STEAM_ID_PENDING><>" disconnected (reason "x")',
        '"Nil<1><STEAM_ID_PENDING><>" say "hi"',
        '"Nil<1><STEAM_ID_PENDING><>" connected, address "x"',
        '"Nil<1><STEAM_ID_PENDING><>" entered the game',
        '"Nil<1><STEAM_ID_PENDING><>" changed name to "x"',
        '"Nil<1><STEAM_ID_PENDING><CT>" picked up "knife"',
    )
    assert len(log.events) == before


def test_renames_and_chat_are_events() -> None:
    log = (
        ServerLog()
        .join(1)
        .write(f'{ServerLog().token(1)} changed name to "Anna"', f'{ServerLog().token(1)} say_team "go"')
    )
    assert log.last(ev.PlayerRenamed).name == "Anna"
    assert log.last(ev.ChatMessage) == ev.ChatMessage(log.now, id64(1), "Ann", True, "go")


def test_pauses_are_events_only_after_the_match_started() -> None:
    log = ServerLog().write("Match pause is enabled - mp_pause_match", "Match unpaused")
    assert not log.events
    log.go_live().write("Match pause is enabled - TimeOutTs", "Match pause is disabled - TimeOutTs", "Match unpaused")
    assert [event.by for event in log.all(ev.Paused)] == ["TimeOutTs"]
    assert [event.by for event in log.all(ev.Unpaused)] == ["TimeOutTs", ""]


# --- restores ----------------------------------------------------------------------------------------------------


def restore(log: ServerLog, rounds: int, ct: int, t: int) -> ServerLog:
    """Write the lines of a restored backup in the order of a real server."""
    for account in (1, 2, 3, 4):
        log.write(f'{log.token(account)} [1 2 3] committed suicide with "world"')
        log.switch(account, log.side[account], "Spectator")
    for account, side in ((1, "CT"), (2, "CT"), (3, "TERRORIST"), (4, "TERRORIST")):
        log.switch(account, "Spectator", side)
    log.score, log.rounds = {"CT": ct, "TERRORIST": t}, rounds
    log.write(f'World triggered "Match_Reloaded" on "{MAP}"')
    log.write(f'World triggered "SFUI_Notice_Round_Draw" (CT "{ct}") (T "{t}")')
    return log.status().write('World triggered "Round_End"').freeze()


def test_restore_returns_to_an_earlier_round_and_its_draw_line_is_not_a_round() -> None:
    log = ServerLog().go_live().play("CT", "CT", "TERRORIST")
    restore(log, 1, 1, 0)
    assert log.last(ev.RoundRestored) == ev.RoundRestored(log.last(ev.RoundRestored).at_ms, 1, 1, 0)
    assert len(log.all(ev.RoundDecided)) == 3
    assert log.round_start().last(ev.RoundStarted).round_number == 2
    assert log.round_end("TERRORIST").last(ev.RoundDecided).round_number == 2


def test_restore_after_the_end_reopens_the_map() -> None:
    log = ServerLog().go_live().play("CT").round_end("CT").game_over()
    assert log.all(ev.MapEnded)
    restore(log, 1, 1, 0)
    assert log.last(ev.RoundRestored).rounds_kept == 1
    log.round_start().round_end("TERRORIST").game_over()
    assert len(log.all(ev.MapEnded)) == 2


def test_restore_on_a_new_server_continues_at_the_restored_round() -> None:
    log = ServerLog().load().join(1, 2, 3, 4)
    restore(log, 5, 3, 2)
    assert log.last(ev.MapLive).rounds_played == 5
    assert log.round_start().last(ev.RoundStarted).round_number == 6


# --- ends --------------------------------------------------------------------------------------------------------


def test_nothing_after_game_over_counts() -> None:
    log = ServerLog().go_live().play("CT").round_end("CT").game_over()
    before = [type(event) for event in log.events]
    log.kill(1, 3).round_start().match_start(-1).match_start(0).round_start().kill(1, 3)
    log.write('Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")').game_over()
    assert [type(event) for event in log.events] == before


def test_game_over_with_another_score_waits_for_a_second_source() -> None:
    log = ServerLog().go_live().play("CT").game_over(score=(13, 0))
    assert not log.all(ev.MapEnded)
    log.match_start(-1)
    assert log.last(ev.MapEnded) == ev.MapEnded(log.now, MAP, 13, 0, is_complete=False)


def test_game_over_of_an_unknown_map_needs_confirmation() -> None:
    log = ServerLog().join(1, 2, 3, 4).game_over(score=(13, 7))
    assert not log.all(ev.MapEnded)
    log.load("de_dust2")
    assert log.last(ev.MapLive).rounds_played == 20
    assert log.last(ev.MapEnded) == ev.MapEnded(log.now, MAP, 13, 7, False)


# --- logs joined during a map, lost lines ------------------------------------------------------------------------


def test_map_goes_live_after_a_status_line_without_match_start() -> None:
    log = ServerLog().load().join(1, 2, 3, 4).status(0).round_start()
    assert log.all(ev.MapLive)


def test_draw_is_a_round_without_a_winner() -> None:
    log = ServerLog().go_live().write('World triggered "SFUI_Notice_Round_Draw" (CT "0") (T "0")')
    assert log.last(ev.RoundDecided).winner is None
    assert log.last(ev.RoundDecided).round_number == 1


def test_round_end_in_warmup_is_ignored() -> None:
    log = ServerLog().load().join(1, 3).round_end("CT")
    assert not log.all(ev.RoundDecided)


# --- deathmatch --------------------------------------------------------------------------------------------------

FFA = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,), dm_sub_mode=DmSubMode.FFA)


def test_deathmatch_goes_live_without_a_round_start_and_ends_with_game_over() -> None:
    log = ServerLog(FFA).load().join(1, 2).match_start(-1).match_start(0).kill(1, 2)
    assert log.all(ev.MapLive)
    assert log.last(ev.Kill).is_enemy
    log.game_over("deathmatch", (0, 0))
    assert log.last(ev.MapEnded).is_complete


# --- statistics of the game, snapshots ---------------------------------------------------------------------------


def test_statistics_block_of_the_game_is_one_event() -> None:
    row = '"player_1" : "1,3,8350,12,3,4,1109.00,41.67,4.00,158,3,0,355,0,1,0,2,0,3,2,1,167.0,264.0,3,8,0"'
    log = (
        ServerLog()
        .go_live()
        .round_end("CT")
        .write("Starting Freeze period", "JSON_BEGIN{", '"round_number" : "2",', row, "}}JSON_END")
    )
    counted = log.last(ev.GameCounted)
    assert counted.round_number == 2
    assert (counted.players[0].player_id, counted.players[0].kills, counted.players[0].mvps) == (id64(1), 12, 3)


def test_statistics_block_before_the_map_is_live_is_ignored() -> None:
    log = ServerLog().write("JSON_BEGIN{", '"round_number" : "2",', "}}JSON_END")
    assert not log.events


def test_stored_interpreter_equals_the_original() -> None:
    log = ServerLog().go_live().play("CT", "TERRORIST").write("JSON_BEGIN{").kill(1, 3)
    stored = msgspec.msgpack.encode(log.interpreter)
    assert msgspec.msgpack.decode(stored, type=Interpreter) == log.interpreter


def test_number_of_known_users_is_bounded() -> None:
    log = ServerLog()
    log.interpreter.users = {f"7656119{number:010}": number for number in range(MAX_USERS)}
    log.write('"Ann<1><[U:1:1]><>" entered the game')
    assert list(log.interpreter.users) == [log.last(ev.PlayerEntered).player_id]


def test_fights_of_coaches_and_spectators_are_in_nobodys_numbers() -> None:
    """Dan coaches and Eve watches: a log with lines about them gives the same events as one without."""
    one, two = TeamRoster("Reds", (id64(1), id64(2))), TeamRoster("Blues", (id64(3),), coaches=(id64(4),))
    settings = msgspec.structs.replace(competitive(), team1=one, team2=two, spectators=(id64(5),))
    log, without = ServerLog(settings), ServerLog(settings)
    coach = log.token(4)
    watcher = '"Eve<5><[U:1:5]><Spectator>"'
    for one_log in (log, without):
        one_log.load().join(1, 2, 3, *((4,) if one_log is log else ()))
        one_log.match_start()
        if one_log is log:
            one_log.write(f'{coach} [0 0 0] committed suicide with "world"', f"{coach} left buyzone with [ weapon_c4 ]")
        one_log.round_start()
        if one_log is log:
            one_log.write(
                f'{coach} [0 0 0] committed suicide with "world"',
                f'{one_log.token(1)} [0 0 0] attacked {coach} [3 4 0] with "ak47" (damage "30") (damage_armor "0")'
                ' (health "70") (armor "0") (hitgroup "chest")',
                f'{watcher} [0 0 0] killed other "chicken<145>" [1 1 1] with "knife"',
            )
            one_log.leave(4)
        one_log.wait(5).kill(1, 3).round_end("CT")
    people = (ev.PlayerConnected, ev.PlayerEntered, ev.PlayerJoinedSide, ev.PlayerDisconnected)
    assert [event for event in log.events if not isinstance(event, people)] == [
        event for event in without.events if not isinstance(event, people)
    ]
    assert log.last(ev.RoundStarted).team2 == (id64(3),)
