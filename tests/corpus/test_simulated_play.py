"""A simulated match looks like the real one: the same kinds of line, and rates of play in its range."""

from __future__ import annotations

from pathlib import Path

import pytest

from matchpod.cs2.log_lines.reader import LineReader, format_http_line
from scripts.compare_lines import Rates
from tests.unit.simulator.played_match import five_against_five

SEEDS = range(1, 9)

RANGES = {
    # The real match is one match, of people who like grenades: a range is what one match may be away from the usual.
    "kills a round": 0.15,
    "headshot share": 0.25,
    "damage a round": 0.25,
    "lines a round": 0.15,
}
"""How far the mean of simulated matches may be from the real one, as a share of it."""

KINDS = {
    "Attacked": 0.35,
    "Item: picked up": 0.35,
    "Item: purchased": 0.5,
    "MoneyChange": 0.35,
    "LeftBuyzone": 0.35,
    "Assisted": 0.6,
    "BlindedBy": 0.6,
    "GrenadeLanded": 0.6,
}
"""The same for the lines that matter most."""

RARE_IN_ONE_MATCH = {"CvarChanged"}
"""Kinds of the counted part of the real log that a caller causes."""


@pytest.fixture(scope="module")
def simulated() -> Rates:
    rates = Rates()
    for seed in SEEDS:
        rates.add(five_against_five(seed).log_lines())
    return rates


@pytest.fixture
def real(corpus: Path) -> Rates:
    rates = Rates()
    rates.add((corpus / "cs2-5v5-inferno.log").read_bytes().split(b"\n"))
    return rates


def test_rates_of_play_are_in_the_range_of_the_real_match(real: Rates, simulated: Rates) -> None:
    theirs, ours = real.figures(), simulated.figures()
    far = {
        name: (theirs[name], ours[name]) for name, share in RANGES.items() if _is_far(theirs[name], ours[name], share)
    }
    assert far == {}
    assert 13 <= ours["rounds a map"] <= 30


def test_common_lines_are_as_common_as_in_the_real_match(real: Rates, simulated: Rates) -> None:
    theirs = {kind: real.kinds[kind] / real.rounds for kind in KINDS}
    ours = {kind: simulated.kinds[kind] / simulated.rounds for kind in KINDS}
    far = {
        kind: (theirs[kind], ours[kind]) for kind, share in KINDS.items() if _is_far(theirs[kind], ours[kind], share)
    }
    assert far == {}


def test_every_kind_of_line_of_the_real_match_is_simulated(real: Rates, simulated: Rates) -> None:
    assert real.kinds.keys() - simulated.kinds.keys() <= RARE_IN_ONE_MATCH
    assert simulated.unknown == 0


def test_every_simulated_line_is_written_as_it_was_read() -> None:
    reader = LineReader()
    for raw in five_against_five(9).log_lines():
        at_ms, line = reader.read(raw)
        assert at_ms is not None
        assert format_http_line(at_ms, line).encode() == raw


def _is_far(real: float, simulated: float, share: float) -> bool:
    return abs(simulated - real) > share * real
