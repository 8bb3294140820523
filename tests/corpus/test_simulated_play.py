"""Tests that simulated matches resemble the real one in their line types and rates of play."""

from __future__ import annotations

from pathlib import Path

import pytest

from cs2_protocol.log_lines.reader import LineReader
from protocol_tests.log_lines.line_format import format_http_line
from scripts.compare_lines import Rates
from tests.unit.simulator.played_match import five_against_five

SEEDS = range(1, 3)

RANGES = {
    # The only real match has unusually many grenades, so the ranges allow for the variation of a single match.
    "kills per round": 0.15,
    "headshot share": 0.25,
    "damage per round": 0.25,
    "enemies flashed per round": 0.4,
    "flash assists per round": 0.6,
    "lines per round": 0.15,
}
"""Maximum relative difference between the mean of the simulated matches and the real match."""

KINDS = {
    "Attacked": 0.35,
    "ItemTransfer: picked up": 0.35,
    "ItemTransfer: purchased": 0.5,
    "MoneyChange": 0.35,
    "LeftBuyzone": 0.35,
    "Assisted": 0.6,
    "BlindedBy": 0.6,
    "GrenadeLanded": 0.6,
}
"""The same for the number of lines per round, by line type."""

CAUSED_BY_CALLERS = {"CvarChanged"}
"""Line types of the real log that are caused by a caller."""


@pytest.fixture(scope="module")
def logs() -> list[list[bytes]]:
    return [five_against_five(seed).log_lines() for seed in SEEDS]


@pytest.fixture(scope="module")
def simulated(logs: list[list[bytes]]) -> Rates:
    rates = Rates()
    for lines in logs:
        rates.add(lines)
    return rates


@pytest.fixture
def real(corpus: Path) -> Rates:
    rates = Rates()
    rates.add((corpus / "cs2-5v5-inferno.log").read_bytes().split(b"\n"))
    return rates


def test_rates_of_play_are_close_to_the_real_match(real: Rates, simulated: Rates) -> None:
    theirs, ours = real.figures(), simulated.figures()
    far = {
        name: (theirs[name], ours[name]) for name, share in RANGES.items() if _is_far(theirs[name], ours[name], share)
    }
    assert far == {}
    assert 13 <= ours["rounds per map"] <= 30


def test_common_lines_are_as_common_as_in_the_real_match(real: Rates, simulated: Rates) -> None:
    theirs = {kind: real.kinds[kind] / real.rounds for kind in KINDS}
    ours = {kind: simulated.kinds[kind] / simulated.rounds for kind in KINDS}
    far = {
        kind: (theirs[kind], ours[kind]) for kind, share in KINDS.items() if _is_far(theirs[kind], ours[kind], share)
    }
    assert far == {}


def test_every_line_type_of_the_real_match_is_simulated(real: Rates, simulated: Rates) -> None:
    assert real.kinds.keys() - simulated.kinds.keys() <= CAUSED_BY_CALLERS
    assert simulated.unknown == 0


def test_formatting_a_parsed_simulated_line_gives_the_original_text(logs: list[list[bytes]]) -> None:
    reader = LineReader()
    for raw in logs[0]:
        at_ms, line = reader.read(raw)
        assert at_ms is not None
        assert format_http_line(at_ms, line).encode() == raw


def _is_far(real: float, simulated: float, share: float) -> bool:
    return abs(simulated - real) > share * real
