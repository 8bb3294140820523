"""Test the score and sides of a map, and how they are logged."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.variables import Variables
from simulator_tests.play.flow.played_server import RecordingLog


def make_standing(*, has_names: bool = True) -> tuple[Standing, RecordingLog]:
    agenda, variables = Agenda(0), Variables()
    log = RecordingLog(agenda)
    arena = Arena(agenda, log, variables)
    arena.map_name = "de_nuke"
    if has_names:
        variables.set("mp_teamname_1", "Reds")
        variables.set("mp_teamname_2", "Blues")
    standing = Standing(arena)
    standing.reset(GamePhase.LIVE)
    return standing, log


def texts(log: RecordingLog) -> list[str]:
    return [line.text() for _, line in log.lines]


def test_round_end_is_logged_in_the_order_of_the_game() -> None:
    standing, log = make_standing()
    standing.count_round(Side.T)
    standing.write_round_end(RoundEnd(Side.T, "Target_Bombed"))
    assert texts(log) == [
        'Team "TERRORIST" triggered "SFUI_Notice_Target_Bombed" (CT "0") (T "1")',
        'Team "CT" scored "0" with "0" players',
        'Team "TERRORIST" scored "1" with "0" players',
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        'MatchStatus: Score: 0:1 on map "de_nuke" RoundsPlayed: 1',
        'World triggered "Round_End"',
    ]


def test_lines_show_the_old_team_names_after_halftime_until_the_next_round_end() -> None:
    standing, log = make_standing()
    standing.count_round(Side.CT)
    standing.change_sides()
    standing.write_status()
    assert texts(log) == [
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        'MatchStatus: Score: 0:1 on map "de_nuke" RoundsPlayed: 1',
    ]
    assert standing.team_name(Side.CT) == "Blues"
    standing.count_round(None)
    standing.write_teams()
    assert texts(log)[3:] == ['Team playing "CT": Blues', 'Team playing "TERRORIST": Reds']


def test_teams_without_names_are_logged_as_unset() -> None:
    standing, log = make_standing(has_names=False)
    standing.write_match_start()
    standing.write_status()
    assert texts(log) == [
        'World triggered "Match_Start" on "de_nuke"',
        'MatchStatus: Team "CT" is unset.',
        'MatchStatus: Team "TERRORIST" is unset.',
        'MatchStatus: Score: 0:0 on map "de_nuke" RoundsPlayed: 0',
    ]


def test_swapped_teams_begin_on_the_other_sides_until_sides_are_reset() -> None:
    standing, _ = make_standing()
    standing.swap_teams()
    sides = [standing.team1_side]
    standing.reset(GamePhase.LIVE)
    sides.append(standing.team1_side)
    standing.reset_sides()
    standing.reset(GamePhase.WARMUP)
    sides.append(standing.team1_side)
    assert sides == [Side.T, Side.T, Side.CT]
