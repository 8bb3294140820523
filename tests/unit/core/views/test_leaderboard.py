"""Rows and ranking of leaderboards."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Team
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views.leaderboard import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    LeaderboardPlayer,
    LeaderboardSort,
    player_rows,
    rank,
)
from tests.effort import examples
from tests.unit.core.stats.event_builder import ANNA, BEN, CARL, XENA

NAMES = {ANNA: "Anna", BEN: "Ben", CARL: "Carl"}


def ranked(
    rows: list[LeaderboardPlayer], *, sort_by: LeaderboardSort = LeaderboardSort.KILLS, limit: int = DEFAULT_LIMIT
) -> list[LeaderboardPlayer]:
    top = rank(msgspec.json.encode(rows), sort_by=sort_by, limit=limit)
    return msgspec.json.decode(msgspec.json.encode(top), type=list[LeaderboardPlayer])


def ids(lines: list[PlayerLine], sort_by: LeaderboardSort) -> list[str]:
    return [player.steam_id for player in ranked(player_rows(lines, NAMES), sort_by=sort_by)]


def test_row_has_the_api_shape() -> None:
    line = PlayerLine(
        kills=3,
        deaths=1,
        assists=2,
        headshots=1,
        damage=310,
        bomb_plants=1,
        bomb_defuses=2,
        he_thrown=1,
        flash_thrown=2,
        smoke_thrown=3,
        molly_thrown=4,
        decoy_thrown=5,
        player_id=ANNA,
        team=Team.TEAM2,
        shots_fired=40,
        shots_hit=10,
        weapon_kills={"ak47": 1, "m4a1_silencer": 2},
    )
    assert msgspec.to_builtins(ranked(player_rows([line], NAMES))) == [
        {
            "name": "Anna",
            "steamId": ANNA,
            "team": 2,
            "kills": 3,
            "deaths": 1,
            "assists": 2,
            "headshots": 1,
            "damageDealt": 310,
            "bulletsFired": 40,
            "bulletsHit": 10,
            "accuracyPercent": 25.0,
            "bombPlants": 1,
            "bombDefuses": 2,
            "utility": {"total": 15, "he": 1, "flash": 2, "smoke": 3, "molly": 4, "decoy": 5},
            "topWeapon": {"weaponName": "m4a1_silencer", "kills": 2},
        }
    ]


def test_team_number_is_1_or_2_and_0_without_a_team() -> None:
    lines = [PlayerLine(player_id=ANNA, team=Team.TEAM1), PlayerLine(player_id=BEN, team=Team.TEAM2)]
    rows = ranked(player_rows([*lines, PlayerLine(player_id=CARL)], NAMES))
    assert [row.team for row in rows] == [1, 2, 0]


def test_highest_value_is_first() -> None:
    for sort_by, best in [
        (LeaderboardSort.KILLS, PlayerLine(kills=5, player_id=BEN)),
        (LeaderboardSort.DAMAGE, PlayerLine(damage=500, player_id=BEN)),
        (LeaderboardSort.HEADSHOTS, PlayerLine(headshots=5, player_id=BEN)),
        (LeaderboardSort.ACCURACY, PlayerLine(player_id=BEN, shots_fired=2, shots_hit=1)),
        (LeaderboardSort.UTILITY, PlayerLine(decoy_thrown=3, player_id=BEN)),
        (LeaderboardSort.PLANTS, PlayerLine(bomb_plants=2, player_id=BEN)),
        (LeaderboardSort.DEFUSES, PlayerLine(bomb_defuses=2, player_id=BEN)),
    ]:
        other = PlayerLine(kills=1, damage=99, headshots=1, he_thrown=1, player_id=ANNA, shots_fired=100, shots_hit=1)
        assert ids([other, best], sort_by) == [BEN, ANNA]


def test_ties_are_broken_by_kills_then_damage_then_name() -> None:
    lines = [
        PlayerLine(kills=1, damage=80, player_id=CARL),
        PlayerLine(kills=1, damage=80, player_id=ANNA),
        PlayerLine(kills=1, damage=90, player_id=BEN),
        PlayerLine(kills=2, player_id=XENA),
    ]
    assert ids(lines, LeaderboardSort.PLANTS) == [XENA, BEN, ANNA, CARL]


def test_weapons_with_equal_kills_are_ordered_by_name() -> None:
    (row,) = player_rows([PlayerLine(player_id=ANNA, weapon_kills={"p90": 2, "awp": 2})], NAMES)
    assert row.top_weapon is not None
    assert row.top_weapon.weapon_name == "awp"


def test_bots_are_left_out_and_missing_names_are_replaced_by_ids() -> None:
    rows = player_rows([PlayerLine(player_id="BOT:Ivan", kills=9), PlayerLine(player_id=XENA)], NAMES)
    assert [row.name for row in rows] == [XENA]


@examples(15)
@given(limit=st.integers(-3, 50), players=st.integers(0, 50))
def test_rows_are_limited_by_the_request_and_the_maximum(limit: int, players: int) -> None:
    lines = [PlayerLine(player_id=str(number)) for number in range(players)]
    assert len(ranked(player_rows(lines, {}), limit=limit)) == max(0, min(limit, players, MAX_LIMIT))
