"""Test the awards of the end screen."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_grammar import read_world
from cs2_protocol.log_lines.world_lines import Accolade
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.accolades import accolades
from cs2_simulator.play.player import Participant, Player
from cs2_simulator.variables import Variables
from simulator_tests.null_outside import NoLog


def make_arena(*players: Player) -> Arena:
    arena = Arena(Agenda(0), NoLog(), Variables())
    arena.players.extend(players)
    arena.book.open(is_free_for_all=False, has_respawns=False)
    arena.book.round_started(1, arena.players_on(Side.CT), arena.players_on(Side.T))
    return arena


def make_team(side: Side, *user_ids: int) -> list[Player]:
    return [Player(Participant(f"p{n}", n), n, team=side, is_in_game=True, is_alive=True) for n in user_ids]


def awards_of(arena: Arena) -> list[Accolade]:
    return list(accolades(arena))


def test_every_player_gets_one_award_cts_first() -> None:
    ours, theirs = make_team(Side.CT, 2, 6), make_team(Side.T, 1, 3)
    awards = awards_of(make_arena(theirs[0], ours[0], theirs[1], ours[1]))
    assert [award.user_id for award in awards] == [2, 6, 1, 3]


def test_award_line_has_the_format_of_a_real_log() -> None:
    (ann,), (eve,) = make_team(Side.CT, 1), make_team(Side.T, 2)
    arena = make_arena(ann, eve)
    arena.book.chicken_killed(ann)
    arena.book.chicken_killed(ann)
    line = awards_of(arena)[0]
    assert line.text() == "ACCOLADE, FINAL: {chickenskilled},\tp1<1>,\tVALUE: 2.000000,\tPOS: 1,\tSCORE: 2.000000"
    assert read_world(line.text()) == line
