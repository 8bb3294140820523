"""Halves and overtimes of a map."""

from __future__ import annotations

from cs2_protocol.game import Side
from matchpod.console.charts.halves import split_rounds
from matchpod.core.views.round_shapes import StoredRound
from tests.unit.console.charts.chart_input import make_map, make_round


def parts_of(rounds: tuple[StoredRound, ...]) -> list[tuple[str, int, int]]:
    return [(name, part[0].number, len(part)) for name, part in split_rounds(rounds)]


def test_halves_of_any_length() -> None:
    assert parts_of(make_map(24)) == [("1st half", 1, 12), ("2nd half", 13, 12)]
    assert parts_of(make_map(10, half=8)) == [("1st half", 1, 8), ("2nd half", 9, 2)]


def test_overtime_follows_a_tie() -> None:
    assert parts_of(make_map(26))[2:] == [("Overtime", 25, 2)]
    assert parts_of(make_map(32))[2:] == [("Overtime 1", 25, 3), ("", 28, 3), ("Overtime 2", 31, 2)]


def test_other_rules_have_gaps_without_names() -> None:
    sides = (Side.CT, Side.T, Side.CT, Side.T)
    rounds = tuple(make_round(number, side=side, score=(number, 0)) for number, side in enumerate(sides, start=1))
    assert parts_of(rounds) == [("", 1, 1), ("", 2, 1), ("", 3, 1), ("", 4, 1)]


def test_nothing_is_named_if_the_change_of_sides_is_missing() -> None:
    rounds = make_map(20)
    assert parts_of(rounds[:10] + rounds[14:]) == [("", 1, 10), ("", 15, 6)]
