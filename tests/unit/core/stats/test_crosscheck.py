"""Comparison of our statistics with the game's."""

from __future__ import annotations

import pytest

from matchpod.core.stats.crosscheck import MAX_DISCREPANCIES, Discrepancy, compare
from matchpod.core.stats.player_round import PlayerRound
from tests.unit.core.stats.event_builder import ANNA, BEN, game_count


def test_equal_numbers_give_no_differences() -> None:
    line = PlayerRound(kills=3, headshots=1, assists=1, flash_assists=1, damage=250)
    game = game_count(ANNA, kills=3, hs_percent=33.33, assists=2, damage=250.0)
    assert compare({ANNA: [line]}, [game], [], round_number=1) == []


def test_counts_are_compared_exactly() -> None:
    many_kills = ("triple_kills", "quad_kills", "aces")
    for field in (
        "kills",
        "deaths",
        "assists",
        *many_kills,
        "clutch_kills",
        "first_kills",
        "pistol_kills",
        "sniper_kills",
    ):
        new = compare({ANNA: [PlayerRound()]}, [game_count(ANNA, **{field: 1})], [], round_number=1)
        assert [found.field for found in new] == [field]


def test_measured_numbers_have_a_tolerance() -> None:
    for field, ours, game, is_reported in [
        ("damage", 1020, 1000.0, False),
        ("damage", 1026, 1000.0, True),
        ("damage", 5, 0.0, False),
        ("utility_damage", 105, 100.0, False),
        ("utility_damage", 111, 100.0, True),
        ("enemies_flashed", 1, 0, False),
        ("enemies_flashed", 3, 1, True),
        ("enemies_flashed", 12, 10, False),
    ]:
        line = PlayerRound()
        setattr(line, field, ours)
        new = compare({ANNA: [line]}, [game_count(ANNA, **{field: game})], [], round_number=1)
        assert [found.field for found in new] == ([field] if is_reported else [])


def test_last_decimal_of_a_percentage_has_a_tolerance() -> None:
    line = PlayerRound(kills=3, headshots=2)
    assert compare({ANNA: [line]}, [game_count(ANNA, kills=3, hs_percent=66.66)], [], round_number=1) == []
    assert compare({ANNA: [line]}, [game_count(ANNA, kills=3, hs_percent=66.6)], [], round_number=1) != []


def test_unchanged_difference_is_reported_once() -> None:
    known = compare({ANNA: [PlayerRound(kills=2)]}, [game_count(ANNA, kills=1)], [], round_number=1)
    assert compare({ANNA: [PlayerRound(kills=5)]}, [game_count(ANNA, kills=4)], known, round_number=2) == []


def test_growing_difference_is_reported_again() -> None:
    known = compare({ANNA: [PlayerRound(kills=2)]}, [game_count(ANNA, kills=1)], [], round_number=1)
    new = compare({ANNA: [PlayerRound(kills=5)]}, [game_count(ANNA, kills=3)], known, round_number=2)
    assert new == [Discrepancy(2, ANNA, "kills", 5, 3)]


def test_player_missing_from_our_statistics_is_compared_as_zero() -> None:
    assert compare({}, [game_count(BEN)], [], round_number=1) == []
    assert compare({}, [game_count(BEN, kills=1)], [], round_number=1) == [Discrepancy(1, BEN, "kills", 0, 1)]


def test_number_of_differences_is_limited() -> None:
    players = [game_count(str(number), kills=1) for number in range(2 * MAX_DISCREPANCIES)]
    known = compare({}, players[:10], [], round_number=1)
    assert len(known) + len(compare({}, players[10:], known, round_number=2)) == MAX_DISCREPANCIES
    full = compare({}, players, [], round_number=1)
    assert compare({}, [game_count("x", kills=1)], full, round_number=2) == []


@pytest.mark.parametrize(("adr", "is_reported"), [(100.0, False), (101.0, False), (97.0, True)])
def test_after_a_restore_adr_is_compared_because_the_game_keeps_the_damage_of_undone_rounds(
    adr: float, *, is_reported: bool
) -> None:
    line = PlayerRound(damage=300, rounds_played=3)
    game = game_count(ANNA, damage=420.0, adr=adr)
    new = compare({ANNA: [line]}, [game], [], round_number=3, was_restored=True)
    assert [found.field for found in new] == (["adr"] if is_reported else [])
    assert [found.field for found in compare({ANNA: [line]}, [game], [], round_number=3)] == ["damage"]


def test_adr_of_a_player_who_joined_late_is_compared_over_all_rounds_of_the_map() -> None:
    rows = {ANNA: [PlayerRound(damage=90, rounds_played=1), PlayerRound(damage=30, rounds_played=1)]}
    game = game_count(ANNA, damage=120.0, adr=30.0)
    assert compare(rows, [game], [], round_number=4, was_restored=True) == []
