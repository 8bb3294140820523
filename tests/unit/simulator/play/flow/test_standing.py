"""Score and sides, and how the log tells them."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.simulator.agenda import Agenda
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.flow.standing import Phase, Standing
from matchpod.simulator.play.watcher import RoundEnd
from matchpod.simulator.variables import Variables

from .played_server import KeptLog, PlayedServer


def standing(*, named: bool = True) -> tuple[Standing, KeptLog]:
    agenda, variables = Agenda(0), Variables()
    log = KeptLog(agenda)
    arena = Arena(agenda, log, variables)
    arena.map_name = "de_nuke"
    if named:
        variables.set("mp_teamname_1", "Reds")
        variables.set("mp_teamname_2", "Blues")
    result = Standing(arena)
    result.reset(Phase.LIVE)
    return result, log


def texts(log: KeptLog) -> list[str]:
    return [line.text() for _, line in log.lines]


def test_win_goes_to_the_team_on_the_side() -> None:
    now, _ = standing()
    now.count(Side.CT)
    now.change_sides()
    now.count(Side.CT)
    now.count(Side.T)
    assert (now.score, now.rounds_played) == ((2, 1), 3)
    assert (now.side_score(Side.CT), now.side_score(Side.T)) == (1, 2)


def test_draw_counts_as_a_round_for_nobody() -> None:
    now, _ = standing()
    now.count(None)
    assert (now.score, now.rounds_played, now.team_on(None)) == ((0, 0), 1, None)


def test_round_end_is_told_in_the_order_of_the_game() -> None:
    now, log = standing()
    now.count(Side.T)
    now.write_round_end(RoundEnd(Side.T, "Target_Bombed"))
    assert texts(log) == [
        'Team "TERRORIST" triggered "SFUI_Notice_Target_Bombed" (CT "0") (T "1")',
        'Team "CT" scored "0" with "0" players',
        'Team "TERRORIST" scored "1" with "0" players',
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        'MatchStatus: Score: 0:1 on map "de_nuke" RoundsPlayed: 1',
        'World triggered "Round_End"',
    ]


def test_lines_keep_the_old_names_after_a_half_until_the_next_round_ends() -> None:
    now, log = standing()
    now.count(Side.CT)
    now.change_sides()
    now.write_status()
    assert texts(log) == [
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        'MatchStatus: Score: 0:1 on map "de_nuke" RoundsPlayed: 1',
    ]
    assert now.team_name(Side.CT) == "Blues"
    now.count(None)
    now.write_teams()
    assert texts(log)[3:] == ['Team playing "CT": Blues', 'Team playing "TERRORIST": Reds']


def test_teams_without_names_are_unset() -> None:
    now, log = standing(named=False)
    now.write_match_start()
    now.write_status()
    assert texts(log) == [
        'World triggered "Match_Start" on "de_nuke"',
        'MatchStatus: Team "CT" is unset.',
        'MatchStatus: Team "TERRORIST" is unset.',
        'MatchStatus: Score: 0:0 on map "de_nuke" RoundsPlayed: 0',
    ]


def test_swapped_teams_begin_on_the_other_sides_until_that_is_forgotten() -> None:
    now, _ = standing()
    now.swap_teams()
    sides = [now.team1_side]
    now.reset(Phase.LIVE)
    sides.append(now.team1_side)
    now.forget_sides()
    now.reset(Phase.WARMUP)
    sides.append(now.team1_side)
    assert sides == [Side.T, Side.T, Side.CT]


def test_every_player_counts_twice_at_the_end_of_a_round() -> None:
    server = PlayedServer()
    server.go_live(count=3)
    server.until("freeze 2")
    scored = [text for text in server.world() if " scored " in text][-2:]
    assert [text.partition("with ")[2] for text in scored] == ['"6" players', '"6" players']
