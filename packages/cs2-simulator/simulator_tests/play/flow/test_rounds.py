"""Test the sequence of rounds: halves, overtime, joining and leaving players, deathmatch, random streams."""

from __future__ import annotations

from itertools import pairwise

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import MatchScore, RoundEndNotice
from cs2_simulator.play.door import BY_USER
from cs2_simulator.play.flow.game import GamePhase
from simulator_tests.play.flow.played_server import PlayedServer


def decisions(server: PlayedServer) -> list[RoundEndNotice]:
    return [line for _, line in server.log.lines if isinstance(line, RoundEndNotice)]


# --- sequence ------------------------------------------------------------------------------------------------------


def test_freeze_time_and_round_delay_follow_the_variables(server: PlayedServer) -> None:
    server.go_live({"mp_freezetime": "12", "mp_round_restart_delay": "6"})
    began = server.agenda.now_ms
    server.run_until("round 1")
    assert server.agenda.now_ms - began == 12_000
    server.run_until("end 1")
    ended = server.agenda.now_ms
    server.run_until("freeze 2")
    assert server.agenda.now_ms - ended == 6_000


def test_halftime_changes_sides_before_the_freeze_time_and_logs_the_old_names(server: PlayedServer) -> None:
    server.go_live({"mp_match_can_clinch": "0", "mp_halftime_duration": "10", "mp_round_restart_delay": "7"})
    server.run_until("end 2")
    ended, score = server.agenda.now_ms, server.game.score
    server.wait(16.9)
    server.mark_log()
    server.run_until("freeze 3")
    assert server.agenda.now_ms - ended == 17_000
    texts = [line for line in server.log_texts() if "money change" not in line]
    assert texts[:5] == [
        '"p101<1><[U:1:101]>" switched from team <CT> to <TERRORIST>',
        '"p201<2><[U:1:201]>" switched from team <TERRORIST> to <CT>',
        '"p102<3><[U:1:102]>" switched from team <CT> to <TERRORIST>',
        '"p202<4><[U:1:202]>" switched from team <TERRORIST> to <CT>',
        "Starting Freeze period",
    ]
    assert server.world_texts()[-3:] == [
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        f'MatchStatus: Score: {score[1]}:{score[0]} on map "de_nuke" RoundsPlayed: 2',
    ]
    assert server.block_values("score_ct") == [str(score[1])]
    assert all(player.money == server.variables.whole("mp_startmoney") for player in server.arena.players)
    server.run_until("end 3")
    assert 'MatchStatus: Team playing "CT": Blues' in server.world_texts()


def test_overtime_has_its_own_start_money_and_changes_sides_in_its_middle() -> None:
    server = PlayedServer({"sim_scenario": "overtime"})
    server.go_live({"mp_overtime_enable": "1", "mp_overtime_maxrounds": "4", "mp_overtime_startmoney": "9000"})
    server.run_until("freeze 5")
    assert (server.game.score, server.game.team1_side) == ((2, 2), Side.T)
    assert {player.money for player in server.arena.players} == {9000}
    server.run_until("freeze 7")
    assert server.is_team1_on(Side.CT)
    server.run_until("over")
    assert server.game.score[0] != server.game.score[1]


def test_time_limit_ends_a_map_without_a_round_limit() -> None:
    server = PlayedServer({"game_type": "3", "game_mode": "0"})
    server.go_live({"mp_maxrounds": "0", "mp_timelimit": "3"})
    server.run_until("over")
    assert server.world_texts()[-1].startswith("Game Over: custom  de_nuke score ")


# --- joining and leaving -------------------------------------------------------------------------------------------


def test_quiet_rounds_have_a_stretch_without_a_line(server: PlayedServer) -> None:
    server.set({"sim_quiet": "1"})
    server.go_live({"mp_maxrounds": "30"}, count=5)
    for number in range(1, 6):
        server.run_until(f"round {number}")
        begin = len(server.log.lines)
        server.run_until(f"end {number}")
        times = [at for at, _ in server.log.lines[begin:]]
        assert 10_000 <= max(after - before for before, after in pairwise(times)) <= 60_000
        assert times[-1] - times[0] < 120_000


def test_game_without_players_is_idle_and_resumes_with_the_first_player(server: PlayedServer) -> None:
    server.go_live()
    server.run_until("round 1")
    server.disconnect_all()
    server.wait(20)
    played = server.game.standing.rounds_played
    server.mark_log()
    server.wait(3600)
    assert server.log_texts() == []
    assert server.is_in(GamePhase.LIVE)
    server.join(101, Side.CT)
    assert server.watcher.events[-1] == f"freeze {played + 1}"


def test_round_does_not_start_without_players(server: PlayedServer) -> None:
    server.go_live()
    server.disconnect_all()
    server.wait(60)
    assert 'World triggered "Round_Start"' not in server.world_texts()
    server.join(101, Side.CT)
    server.join(201, Side.T)
    server.run_until("round 1")


# --- backups -------------------------------------------------------------------------------------------------------


def test_backup_is_written_at_each_freeze_time(server: PlayedServer) -> None:
    server.go_live({"mp_backup_round_file": "final"})
    assert server.game.last_backup == "final_round00.txt"
    server.run_until("freeze 2")
    assert server.game.backups() == ["final_round01.txt", "final_round00.txt"]


# --- deathmatch ----------------------------------------------------------------------------------------------------


def deathmatch(settings: dict[str, str]) -> PlayedServer:
    server = PlayedServer({"game_type": "1", "game_mode": "2"})
    server.go_live({"mp_freezetime": "0", "mp_timelimit": "5", **settings})
    return server


def test_deathmatch_is_one_round_until_its_time_is_up() -> None:
    server = deathmatch({"mp_teammates_are_enemies": "1"})
    began = server.agenda.now_ms
    server.run_until("over")
    assert abs(server.agenda.now_ms - began - 300_000) < 1000
    world = server.world_texts()
    assert world.count('World triggered "Round_Start"') == 1
    assert decisions(server) == []
    assert world[-1] == "Game Over: deathmatch  de_nuke score 0:0 after 5 min"
    assert sum(tally.kills for tally in server.arena.book.tallies()) > 20


def test_team_deathmatch_score_is_the_kills_of_each_team() -> None:
    server = deathmatch({"mp_teammates_are_enemies": "0"})
    server.run_until("over")
    tallies = server.arena.book.tallies()
    kills = [sum(tally.kills for tally in tallies if tally.team == team) for team in (1, 2)]
    assert server.game.score == tuple(kills)
    last = [line for _, line in server.log.lines if isinstance(line, MatchScore)][-1]
    assert (last.ct, last.t) == tuple(kills)


# --- random streams ------------------------------------------------------------------------------------------------


def match_lines(server: PlayedServer) -> list[str]:
    """Play to the end and return all lines after the last `Match_Start`."""
    server.run_until("over")
    texts = server.log_texts()
    return texts[len(texts) - texts[::-1].index('World triggered "Match_Start" on "de_nuke"') :]


def test_same_seed_plays_the_same_match_regardless_of_earlier_events() -> None:
    plain = PlayedServer()
    plain.go_live()
    other = PlayedServer()
    other.game.load_map("de_nuke")
    other.wait(100)
    other.fill()
    other.game.restart(2)
    other.wait(200)
    other.set({"mp_freezetime": "5", "mp_maxrounds": "4"})
    other.game.end_warmup()
    other.wait(3)
    other.game.restart(1)
    other.run_until("freeze 1")
    assert match_lines(other) == match_lines(plain)


def test_match_after_a_map_reload_is_the_same_unless_a_match_was_finished_before() -> None:
    plain, other = PlayedServer(), PlayedServer()
    plain.go_live()
    other.go_live()
    other.run_until("round 2")
    other.game.load_map("de_nuke")
    other.wait(10)
    other.go_live()
    first = match_lines(other)
    other.game.load_map("de_nuke")
    other.wait(10)
    other.go_live()
    assert first == match_lines(plain) != match_lines(other)


def test_round_ends_in_the_tick_in_which_the_last_player_of_a_side_leaves(server: PlayedServer) -> None:
    server.go_live(count=1)
    server.run_until("round 1")
    server.wait(0.5)
    server.mark_log()
    leaver = server.arena.players_on(Side.T)[0]
    server.door.leave(leaver, BY_USER)
    server.wait(0)
    texts = [text for text in server.log_texts() if not text.startswith("MatchStatus")]
    assert texts.pop(0).endswith('triggered "Dropped_The_Bomb"')
    assert texts == [
        f'"p201<2><[U:1:201]><TERRORIST>" disconnected (reason "{BY_USER}")',
        '"p101<2><[U:1:101]><CT>" money change ' + texts[1].partition("money change ")[2],
        f'"p201<2><[U:1:201]><TERRORIST>" [{leaver.position}] committed suicide with "world"',
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "1") (T "0")',
        'Team "CT" scored "1" with "2" players',
        'Team "TERRORIST" scored "0" with "0" players',
        'World triggered "Round_End"',
        *texts[7:9],
        '"p201<2><STEAM_ID_PENDING><TERRORIST>" left buyzone with [ ]',
    ]
    assert texts[8].startswith('"p201<3><[U:1:201]><TERRORIST>" money change ')  # still with the id
