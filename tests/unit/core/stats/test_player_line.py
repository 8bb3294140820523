"""Sums over rounds and maps."""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.core.stats.mvps import MvpCount
from matchpod.core.stats.player_line import PlayerLine, sum_lines, sum_rounds
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Fall, RoundRecord
from tests.unit.core.stats.event_builder import ANNA, BEN, XENA, round_started, started_record


def line_of(lines: list[PlayerLine], player_id: str) -> PlayerLine:
    return next(line for line in lines if line.player_id == player_id)


def test_every_counter_of_a_round_is_summed() -> None:
    ones = PlayerRound(*[1] * len(PlayerRound.__struct_fields__))
    records = [RoundRecord(1, players={ANNA: ones}), RoundRecord(2, players={ANNA: ones})]
    (line,) = sum_rounds(records)
    assert {name: getattr(line, name) for name in PlayerRound.__struct_fields__} == dict.fromkeys(
        PlayerRound.__struct_fields__, 2
    )
    assert line.clutch_wins == 10
    assert line.grenades_thrown == 10


def test_lines_are_ordered_by_kills_then_damage_then_id() -> None:
    record = RoundRecord(
        1,
        players={
            "4": PlayerRound(kills=1, damage=50),
            "3": PlayerRound(kills=1, damage=50),
            "2": PlayerRound(kills=1, damage=90),
            "1": PlayerRound(kills=2),
        },
    )
    assert [line.player_id for line in sum_rounds([record])] == ["1", "2", "3", "4"]


def test_team_comes_from_the_last_line_up() -> None:
    second = RoundRecord(2)
    second.start(round_started((XENA,), (ANNA,)))
    lines = sum_rounds([started_record(1), second])
    assert [line_of(lines, who).team for who in (XENA, ANNA, BEN)] == [Team.TEAM1, Team.TEAM2, Team.TEAM1]


def test_lines_have_no_team_in_a_match_without_teams() -> None:
    assert {line.team for line in sum_rounds([started_record(1)], has_teams=False)} == {None}


def test_kills_by_weapon_are_summed() -> None:
    first, second = started_record(1), started_record(2)
    for number, is_enemy in ((1, True), (2, True), (3, False)):
        first.add_fall(Fall(number, f"victim {number}", ANNA, is_enemy, weapon="ak47"))
    first.add_fall(Fall(4, ANNA, weapon="world"))
    second.has_respawns, second.respawn_kills = True, {ANNA: {"ak47": 1, "awp": 1}}
    assert line_of(sum_rounds([first, second]), ANNA).weapon_kills == {"ak47": 3, "awp": 1}


def test_mvps_are_those_that_are_known() -> None:
    lines = sum_rounds([started_record(1)], mvps={ANNA: MvpCount(1), BEN: MvpCount(0, is_complete=False)})
    assert [line_of(lines, who).mvps for who in (ANNA, BEN, XENA)] == [1, 0, None]
    assert [line_of(lines, who).are_mvps_complete for who in (ANNA, BEN)] == [True, False]


def test_mvps_over_several_maps_are_complete_if_those_of_each_map_are() -> None:
    lines = [PlayerLine(player_id=ANNA, mvps=1), PlayerLine(player_id=ANNA, mvps=2, are_mvps_complete=False)]
    (total,) = sum_lines(lines)
    assert (total.mvps, total.are_mvps_complete) == (3, False)


def test_mvps_and_shots_are_none_if_not_counted() -> None:
    line = sum_rounds([started_record(1)])[0]
    assert (line.mvps, line.shots_fired, line.shots_hit) == (None, None, None)


def test_overall_lines_sum_the_maps_of_each_player() -> None:
    overall = sum_lines(
        [
            PlayerLine(kills=3, player_id=ANNA, team=Team.TEAM1, mvps=1, weapon_kills={"awp": 3}),
            PlayerLine(kills=9, player_id=BEN, team=Team.TEAM1),
            PlayerLine(kills=8, player_id=ANNA, mvps=2, weapon_kills={"awp": 7, "ak47": 1}),
        ]
    )
    assert [(line.player_id, line.kills) for line in overall] == [(ANNA, 11), (BEN, 9)]
    assert overall[0].team is Team.TEAM1
    assert overall[0].mvps == 3
    assert overall[0].weapon_kills == {"awp": 10, "ak47": 1}


def test_sum_with_an_uncounted_map_is_unknown() -> None:
    counted = PlayerLine(player_id=ANNA, shots_fired=10, shots_hit=4, mvps=2)
    uncounted = PlayerLine(player_id=ANNA)
    for maps in ([counted, uncounted], [uncounted, counted]):
        (line,) = sum_lines(maps)
        assert (line.shots_fired, line.shots_hit, line.mvps) == (None, None, None)


def test_summing_does_not_modify_its_inputs() -> None:
    first = PlayerLine(kills=1, player_id=ANNA, weapon_kills={"awp": 1})
    sum_lines([first, first])
    assert first == PlayerLine(kills=1, player_id=ANNA, weapon_kills={"awp": 1})
