"""Test complete rounds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Attacked, BombDeath, Killed, Suicide, Triggered
from cs2_simulator.play.fights.round_play import RoundStyle, play_aftermath, play_round
from cs2_simulator.play.watcher import RoundEnd
from protocol_tests.effort import seeds, sized
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng, begin_round, without_result

ENDS = {
    Side.CT: {"CTs_Win", "Bomb_Defused", "Target_Saved", "All_Hostages_Rescued"},
    Side.T: {"Terrorists_Win", "Target_Bombed", "Hostages_Not_Rescued"},
}


@pytest.mark.parametrize("style", list(RoundStyle))
@pytest.mark.parametrize("winner", list(Side))
@pytest.mark.parametrize("size", [1, 5, 10])
def test_given_side_wins_the_round(style: RoundStyle, winner: Side, size: int) -> None:
    for seed in range(sized(6, 25)):
        field, rng = Battlefield(cts=size, ts=size), Random(seed)
        begin_round(field, rng, style)
        started_ms = field.agenda.now_ms
        end = field.run(play_round(field.arena, rng, winner, style))
        assert end.side is winner
        assert end.notice in ENDS[winner]
        assert end.mvp is not None
        assert end.mvp.team == winner
        assert field.agenda.now_ms - started_ms < 160_000


def test_logged_health_matches_the_logged_damage() -> None:
    for seed in range(20):
        field, rng = Battlefield(), Random(seed)
        begin_round(field, rng)
        field.run(play_round(field.arena, rng, Side.CT, RoundStyle.BOMB))
        health = {player.user_id: 100 for player in field.arena.players}
        for line in field.log.lines_of(Attacked):
            number = line.victim.user_id
            assert line.health == health[number] - min(line.damage, health[number])
            health[number] = line.health


def test_knife_round_has_only_knife_kills() -> None:
    field = Battlefield()
    begin_round(field, Random(1), RoundStyle.KNIFE)
    field.run(play_round(field.arena, Random(1), Side.CT, RoundStyle.KNIFE))
    assert {line.weapon for line in field.log.lines_of(Killed)} <= {"knife", "knife_t"}
    assert all(player.money == 3000 for player in field.arena.players)


def test_retake_begins_with_the_plant() -> None:
    field = Battlefield()
    begin_round(field, Random(1), RoundStyle.RETAKE)
    script = play_round(field.arena, Random(1), Side.CT, RoundStyle.RETAKE)
    field.agenda.start(without_result(script))
    field.agenda.run_until(field.agenda.now_ms + 2000)
    assert [line.trigger for line in field.log.lines_of(Triggered)][-1] == "Planted_The_Bomb"
    assert all(player.primary and player.armor for player in field.arena.players)
    assert {player.team for player in field.arena.players if player.has_kit} == {"CT"}


def test_given_side_wins_even_with_low_health_and_many_grenades() -> None:
    for seed in range(sized(20, 60)):
        field, rng = Battlefield(), Random(seed)
        begin_round(field, rng)
        for player in field.arena.players:
            player.health, player.grenades = 1, ["molotov", "incgrenade", "hegrenade", "hegrenade"]
        winner = list(Side)[seed % 2]
        assert field.run(play_round(field.arena, rng, winner, RoundStyle.BOMB)).side is winner


def test_planter_or_defuser_who_decides_the_round_is_the_mvp() -> None:
    notices = Counter[str]()
    for seed in range(80):
        field, rng = Battlefield(), Random(seed)
        begin_round(field, rng)
        end = field.run(play_round(field.arena, rng, list(Side)[seed % 2], RoundStyle.BOMB))
        triggers = {"Target_Bombed": "Planted_The_Bomb", "Bomb_Defused": "Begin_Bomb_Defuse"}
        if end.notice in triggers:
            last = [line for line in field.log.lines_of(Triggered) if line.trigger.startswith(triggers[end.notice])][-1]
            assert end.mvp is not None
            assert last.player == end.mvp.token
            notices[end.notice] += 1
    assert set(notices) == {"Target_Bombed", "Bomb_Defused"}


def test_round_without_players_is_drawn_at_once() -> None:
    field = Battlefield(cts=0, ts=0).spawn_all()
    before_ms = field.agenda.now_ms
    assert field.run(play_round(field.arena, Random(1), Side.CT, RoundStyle.BOMB)).side is None
    assert field.agenda.now_ms == before_ms


@pytest.mark.parametrize("seed", range(sized(3, 8)))
def test_round_without_opponents_lasts_until_time_is_up_or_the_bomb_explodes(seed: int) -> None:
    field = Battlefield(cts=3, ts=0).spawn_all()
    end = field.run(play_round(field.arena, Random(seed), Side.CT, RoundStyle.BOMB))
    assert (end.side, end.notice) == (Side.CT, "Target_Saved")
    assert field.arena.clock_ms >= 115_000
    field = Battlefield(cts=0, ts=3).spawn_all()
    end = field.run(play_round(field.arena, Random(seed), Side.T, RoundStyle.BOMB))
    assert end.notice in ("Target_Bombed", "Target_Saved")
    assert field.arena.clock_ms > 30_000


@pytest.mark.parametrize("seed", seeds(24))
def test_round_ends_even_if_players_leave(seed: int) -> None:
    rng = Random(seed)
    style = list(RoundStyle)[seed % 4]
    field = Battlefield(cts=3, ts=3)
    begin_round(field, rng, style)

    def leave() -> None:
        if field.arena.players:
            field.leave(field.arena.players[int(rng.random() * len(field.arena.players))])

    for _ in range(1 + seed % 6):
        field.agenda.call_in(int(rng.random() * 70_000), leave)
    end = field.run(play_round(field.arena, rng, list(Side)[seed // 4 % 2], style))
    if not field.arena.players:
        assert end == RoundEnd(None, "Round_Draw")


def test_bomb_deaths_are_logged_after_the_round_is_decided() -> None:
    field = Battlefield().spawn_all()
    field.go_live()
    field.cts[1].health = 0
    field.run(play_aftermath(field.arena, Random(1)))
    assert [type(line) for line in field.log.lines[:2]] == [BombDeath, Suicide]
    assert sum(tally.deaths for tally in field.arena.book.tallies()) >= 1
    assert not field.cts[1].is_alive


def test_aftermath_can_have_kills() -> None:
    field = Battlefield().spawn_all()
    field.run(play_aftermath(field.arena, FixedRng(0.1)))
    other = Battlefield(cts=2, ts=0).spawn_all()
    other.run(play_aftermath(other.arena, FixedRng(0.01)))
    third = Battlefield().spawn_all()
    third.run(play_aftermath(third.arena, FixedRng(0.2, 0.2, 0.6)))
    assert [len(each.log.lines_of(Killed)) for each in (field, other, third)] == [1, 1, 1]


def test_rounds_have_statistics_similar_to_a_real_match() -> None:
    kills, heads, damage = 0, 0, 0
    for seed in range(60):
        field, rng = Battlefield(), Random(seed)
        begin_round(field, rng)
        field.run(play_round(field.arena, rng, list(Side)[seed % 2], RoundStyle.BOMB))
        kills += len(field.log.lines_of(Killed))
        heads += sum("headshot" in line.modifiers for line in field.log.lines_of(Killed))
        damage += sum(tally.damage for tally in field.arena.book.tallies())
    assert 6.8 < kills / 60 < 7.8
    assert 0.35 < heads / kills < 0.52
    assert 72 < damage / 600 < 90
