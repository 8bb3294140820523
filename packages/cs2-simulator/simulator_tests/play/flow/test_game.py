"""Test the flow of a server: map loads, warmup, starts, knife round, team swaps."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.flow.game import GamePhase
from simulator_tests.play.flow.played_server import START_MS, PlayedServer

MATCH_START = [
    "Starting Freeze period",
    "(block)",
    'World triggered "Match_Start" on "de_nuke"',
    'Team playing "CT": Reds',
    'Team playing "TERRORIST": Blues',
    'MatchStatus: Team playing "CT": Reds',
    'MatchStatus: Team playing "TERRORIST": Blues',
    'MatchStatus: Score: 0:0 on map "de_nuke" RoundsPlayed: 0',
]
WARMUP = [*MATCH_START[:-1], 'MatchStatus: Score: 0:0 on map "de_nuke" RoundsPlayed: -1']


# --- map loads -----------------------------------------------------------------------------------------------------


def test_map_load_is_logged_in_one_tick_at_its_end(server: PlayedServer) -> None:
    assert {at_ms for at_ms, _ in server.log.lines} == {START_MS + 6000}
    assert server.world_texts()[0] == 'Loading map "de_nuke"'
    assert server.world_texts()[-2:] == ['Started:  ""', 'World triggered "Warmup_Start"']
    assert server.watcher.events == ["loaded de_nuke", "warmup"]


def test_loaded_map_begins_a_freeze_time_without_players(server: PlayedServer) -> None:
    server.mark_log()
    server.wait(5)
    assert server.world_texts() == WARMUP


def test_arena_is_busy_until_the_map_is_loaded() -> None:
    server = PlayedServer({"sim_scenario": "slow_map_load"})
    assert server.arena.is_busy
    assert server.is_in(GamePhase.LOADING)
    server.wait(84)
    assert not server.arena.is_busy
    assert server.is_in(GamePhase.WARMUP)


def test_map_change_begins_one_frame_after_its_command(server: PlayedServer) -> None:
    number = server.arena.map_number
    server.game.change_map("de_mirage")
    assert (server.arena.is_busy, server.arena.map_name, server.arena.map_number) == (False, "de_nuke", number)
    server.wait(0.02)
    assert (server.arena.is_busy, server.arena.map_name, server.arena.map_number) == (True, "de_nuke", number + 1)
    server.wait(60)
    assert (server.arena.is_busy, server.arena.map_name) == (False, "de_mirage")


def test_commands_do_nothing_while_a_map_loads() -> None:
    server = PlayedServer({"sim_scenario": "slow_map_load"})
    server.game.start_warmup()
    server.game.end_warmup()
    server.game.restart(1)
    server.game.swap_teams()
    server.game.end_now()
    assert not server.game.restore("backup_round00.txt")
    server.wait(10)
    assert server.log.lines == []


def test_map_change_disconnects_all_players_and_starts_a_new_log(server: PlayedServer) -> None:
    server.fill()
    dead = server.arena.players[0]
    dead.is_alive = False
    server.game.load_map("de_mirage")
    assert server.arena.players == []
    assert server.watcher.events[-5:] == ["left NETWORK_DISCONNECT_LOOPDEACTIVATE"] * 4 + ["closing"]
    server.wait(6)
    last = [line.text() for _, line in server.log.before][-7:]
    assert last[0] == '"p101<1><[U:1:101]><CT>" disconnected (reason "NETWORK_DISCONNECT_LOOPDEACTIVATE")'
    assert last[1] == '"p201<2><[U:1:201]><TERRORIST>" disconnected (reason "NETWORK_DISCONNECT_LOOPDEACTIVATE")'
    assert last[2].endswith('committed suicide with "world"')
    assert server.log.lines[0][1].text() == 'Loading map "de_mirage"'
    assert (server.arena.map_name, server.arena.map_number) == ("de_mirage", 2)


def test_source_tv_has_user_id_0_if_enabled() -> None:
    server = PlayedServer({"tv_enable": "1"})
    texts = server.log_texts()
    assert '"SourceTV<0><BOT><>" connected, address "(unknown)"' in texts
    assert '"SourceTV<0><BOT><>" entered the game' in texts


# --- warmup and starts ---------------------------------------------------------------------------------------------


def test_first_player_on_a_side_commences_the_game(server: PlayedServer) -> None:
    server.mark_log()
    server.join(1, Side.T)
    names = ['Team playing "CT": Reds', 'Team playing "TERRORIST": Blues']
    assert server.world_texts() == ['World triggered "Game_Commencing"', *names, *WARMUP]
    server.mark_log()
    server.join(2, Side.CT)
    assert server.world_texts() == []
    assert [player.is_alive for player in server.arena.players] == [True, True]


def test_restart_is_announced_and_restarts_the_match(server: PlayedServer) -> None:
    server.go_live()
    server.run_until("freeze 2")
    server.mark_log()
    server.game.restart(4)
    server.wait(0.6)
    score = server.game.score
    assert server.world_texts() == [
        'World triggered "Restart_Round_(4_seconds)"',
        f'Team "CT" scored "{score[0]}" with "2" players',
        f'Team "TERRORIST" scored "{score[1]}" with "2" players',
    ]
    server.mark_log()
    server.wait(4)
    assert server.world_texts()[-8:] == MATCH_START
    assert (server.game.score, server.game.standing.rounds_played) == ((0, 0), 0)
    assert server.arena.book.rounds_played() == 0


def test_match_can_be_aborted_without_game_over(server: PlayedServer) -> None:
    server.go_live()
    server.run_until("round 2")
    server.game.restart(30)
    server.game.pause("mp_pause_match")
    server.set({"mp_warmup_pausetimer": "1"})
    server.mark_log()
    server.game.end_now()
    server.wait(100)
    assert server.world_texts()[:8] == WARMUP
    assert (server.game.phase, server.game.is_paused) == (GamePhase.WARMUP, False)
    assert not [line for line in server.world_texts() if "Game Over" in line or "Restart" in line]


# --- knife round and sides -----------------------------------------------------------------------------------------


def test_knife_round_is_not_counted_and_returns_to_warmup(server: PlayedServer) -> None:
    server.fill()
    server.set({"mp_freezetime": "5", "mp_warmup_pausetimer": "1"})
    server.game.start_knife_round()
    server.mark_log()
    server.game.end_warmup()
    assert server.is_in(GamePhase.KNIFE)
    assert server.world_texts() == MATCH_START
    server.run_until("end 0")
    end = server.world_texts().index('World triggered "Round_End"')
    assert server.world_texts()[end - 1].endswith("RoundsPlayed: 1")
    server.wait(0.1)
    assert server.world_texts()[end + 1 :] == WARMUP
    assert "live" not in server.watcher.events
    assert server.arena.book.tallies() == []
    server.game.end_warmup()
    assert server.is_in(GamePhase.LIVE)


def test_knife_round_has_no_money_lines_and_no_bomb(server: PlayedServer) -> None:
    server.fill()
    server.game.start_knife_round()
    server.mark_log()
    server.game.end_warmup()
    server.run_until("end 0")
    assert not [line for line in server.log_texts() if "money change" in line or "Got_The_Bomb" in line]


def test_swapped_teams_begin_the_match_on_the_other_sides(server: PlayedServer) -> None:
    server.fill(1)
    server.mark_log()
    server.game.swap_teams()
    assert server.log_texts() == [
        '"p101<1><[U:1:101]>" switched from team <CT> to <TERRORIST>',
        '"p201<2><[U:1:201]>" switched from team <TERRORIST> to <CT>',
    ]
    server.game.end_warmup()
    assert server.is_team1_on(Side.T)
    assert server.game.standing.team_name(Side.CT) == "Blues"
    assert 'Team playing "CT": Blues' in server.world_texts()
    server.wait(2)
    assert 'World triggered "Restart_Round_(1_second)"' in server.world_texts()
    assert server.is_team1_on(Side.T)
