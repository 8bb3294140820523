"""Test play with respawns."""

from __future__ import annotations

from random import Random

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import ItemTransfer, Killed
from cs2_simulator.play.fights.deathmatch import play_deathmatch, play_warmup
from simulator_tests.play.fights.battlefield import Battlefield


def played(field: Battlefield, minutes: float = 5, *, is_free_for_all: bool = False) -> Battlefield:
    field.go_live(is_free_for_all=is_free_for_all, has_respawns=True)
    until_ms = field.arena.clock_ms + int(minutes * 60_000)
    field.run(play_deathmatch(field.arena, Random(1), is_free_for_all=is_free_for_all, until_ms=until_ms))
    assert until_ms <= field.arena.clock_ms < until_ms + 1000
    return field


def test_team_deathmatch_has_no_team_kills() -> None:
    for line in played(Battlefield()).log.lines_of(Killed):
        assert line.player.team != line.victim.team


def test_free_for_all_has_kills_within_a_side() -> None:
    kills = played(Battlefield(), is_free_for_all=True).log.lines_of(Killed)
    assert any(line.player.team == line.victim.team for line in kills)


def test_dead_players_do_not_kill() -> None:
    field = played(Battlefield())
    dead: set[str] = set()
    for line in field.log.lines:
        if isinstance(line, Killed):
            assert line.player.name not in dead
            dead.add(line.victim.name)
        elif isinstance(line, ItemTransfer):
            dead.discard(line.player.name)


def test_deathmatch_handles_joining_and_leaving_players() -> None:
    field = Battlefield(cts=1, ts=1)
    field.agenda.call_in(5_000, lambda: field.leave(field.cts[0]))
    field.agenda.call_in(20_000, lambda: field.leave(field.ts[0]))

    def join() -> None:
        field.add(20, Side.CT)
        field.add(21, Side.T)

    field.agenda.call_in(30_000, join)
    kills = played(field, 2).log.lines_of(Killed)
    assert {line.player.user_id for line in kills} <= {0, 1, 20, 21}
    assert any(line.player.user_id >= 20 for line in kills)


def test_warmup_has_few_kills_and_does_not_end() -> None:
    field = Battlefield()
    planned = field.agenda.start(play_warmup(field.arena, Random(1)))
    field.agenda.run_until(field.agenda.now_ms + 300_000)
    assert 20 < len(field.log.lines_of(Killed)) < 45
    assert not planned.is_over
    planned.cancel()
    assert planned.is_over
