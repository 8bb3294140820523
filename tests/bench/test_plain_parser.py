"""The parser of the benchmark knows the same kinds of line as `cs2.log_lines`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cs2_protocol.log_lines.reader import LineReader
from protocol_tests.log_lines.samples import PLAYER_LINES, WORLD_LINES
from tests.bench.made_up_log import made_up_log
from tests.bench.plain_parser import ANY_NAME, UNQUOTED_NAME, PlainParser, common_kinds
from tests.bench.workload import REAL_LOG, lines_in


def share_of_same_kinds(parser: PlainParser, lines: list[bytes]) -> float:
    ours = LineReader()
    same = sum(type(ours.read(raw)[1]).__name__ == type(parser.read(raw)[1]).__name__ for raw in lines)
    return same / len(lines)


@pytest.mark.parametrize("name", [ANY_NAME, UNQUOTED_NAME])
def test_plain_parser_agrees_with_ours_on_99_percent_of_the_real_log_in_both_orders(corpus: Path, name: str) -> None:
    lines = lines_in((corpus / REAL_LOG).read_bytes())
    for order in ([], common_kinds(lines)):
        assert share_of_same_kinds(PlainParser(name, order), lines) >= 0.99


def test_plain_parser_agrees_with_ours_on_the_made_up_log() -> None:
    lines = lines_in(made_up_log())
    assert share_of_same_kinds(PlainParser(), lines) == 1


def test_plain_parser_knows_every_kind_of_line() -> None:
    samples = [f"L 01/19/2026 - 18:55:53: {text}".encode() for text in PLAYER_LINES + WORLD_LINES]
    assert share_of_same_kinds(PlainParser(), samples) >= 0.99


def test_plain_parser_converts_numbers_and_times() -> None:
    at, line = PlainParser().read(
        b'L 01/19/2026 - 18:55:53: "Ann<1><[U:1:101]><CT>" money change 100+300 = $400 (tracked)'
    )
    assert at is not None
    assert (at.year, at.second) == (2026, 53)
    assert (getattr(line, "player_number", None), getattr(line, "after", None)) == (1, 400)


def test_unrecognized_line_is_unknown() -> None:
    parser = PlainParser()
    assert type(parser.read(b"no time stamp")[1]).__name__ == "Unknown"
    assert type(parser.read(b"L 01/19/2026 - 18:55:53: nothing of the kind")[1]).__name__ == "Unknown"
