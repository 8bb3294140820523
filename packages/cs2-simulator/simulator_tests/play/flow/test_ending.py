"""Test the end of a map and what the server does after it."""

from __future__ import annotations

from cs2_simulator.play.door import BY_USER
from cs2_simulator.play.flow.game import GamePhase
from simulator_tests.play.flow.played_server import PlayedServer


def finished_map(settings: dict[str, str]) -> PlayedServer:
    server = PlayedServer()
    server.go_live({"mp_match_restart_delay": "20", "mp_warmup_pausetimer": "1", **settings})
    server.run_until("over")
    return server


def test_game_over_is_logged_right_after_the_last_round() -> None:
    server = finished_map({})
    world = server.world_texts()
    end = len(world) - 1 - world[::-1].index('World triggered "Round_End"')
    awards = [line for line in world if line.startswith("ACCOLADE, FINAL: ")]
    assert len(awards) == 4
    assert world[end + 1 :] == [*awards, *world[end - 3 : end], world[-1]]
    ct, t = (
        server.game.standing.side_score(server.game.team1_side.other),
        server.game.standing.side_score(server.game.team1_side),
    )
    assert world[-1].startswith(f"Game Over: competitive  de_nuke score {ct}:{t} after ")
    assert (server.game.phase, server.arena.book.is_open) == (GamePhase.OVER, False)


def test_server_restarts_the_map_with_all_players_unassigned() -> None:
    server = finished_map({"mp_match_end_restart": "1"})
    gone = server.arena.players[0]
    server.door.leave(gone, BY_USER)
    server.mark_log()
    server.wait(20.1)
    switched = [line for line in server.log_texts() if "switched" in line]
    assert switched[0] == '"p101<1><STEAM_ID_PENDING>" switched from team <TERRORIST> to <Unassigned>'
    assert len(switched) == 4
    names = ['Team playing "CT": Blues', 'Team playing "TERRORIST": Reds']
    assert server.world_texts() == [
        "Starting Freeze period",
        "(block)",
        'World triggered "Match_Start" on "de_nuke"',
        *names,
        *(f"MatchStatus: {name}" for name in names),
        'MatchStatus: Score: 0:0 on map "de_nuke" RoundsPlayed: -1',
    ]
    server.wait(2.1)
    assert server.world_texts()[-1] == 'World triggered "Warmup_Start"'


def test_server_reloads_the_map_if_restart_is_disabled() -> None:
    server = finished_map({"mp_match_end_restart": "0"})
    server.wait(20.1)
    assert server.is_in(GamePhase.LOADING)
    server.wait(6.1)
    assert server.watcher.events[-2:] == ["loaded de_nuke", "warmup"]


def test_player_who_became_spectator_after_the_end_stays_spectator() -> None:
    server = finished_map({"mp_match_end_restart": "1"})
    server.door.join(server.arena.players[0], "Spectator")
    server.wait(30)
    assert server.arena.players[0].team == "Spectator"
