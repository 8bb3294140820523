"""Tests that every line of the real logs is read, and almost none is unknown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cs2_protocol.log_batches import LogCursor, split_lines
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, Unknown
from cs2_protocol.recorded_posts import read_posts
from matchpod.core.model import Winner
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import SeriesResult
from protocol_tests.log_lines.line_format import format_file_line, format_http_line
from tests.corpus.real_logs import CS2_LOGS, CSGO_LOGS, INFERNO, read_log

POSTS = "cs2-http-posts.txt"
UNKNOWN_KINDS = Path(__file__).resolve().parents[2] / "docs" / "unknown-lines.md"


def lines_in(path: Path) -> list[bytes]:
    if path.name != POSTS:
        return list(split_lines([path.read_bytes()]))
    cursor = LogCursor()
    return [line for post in read_posts(path.read_bytes()) for line in cursor.read(post).lines]


@pytest.mark.parametrize("name", [*CS2_LOGS, *CSGO_LOGS, POSTS])
def test_every_line_is_read_and_under_one_percent_is_unknown(corpus: Path, name: str) -> None:
    reader = LineReader()
    lines = [reader.read(raw) for raw in lines_in(corpus / name)]
    assert len(lines) > 80
    unknown = [line.text() for _, line in lines if isinstance(line, Unknown)]
    assert len(unknown) < len(lines) / 100
    listed = UNKNOWN_KINDS.read_text("utf-8")
    for text, _ in Counter(unknown).items():
        assert text.split()[0] in listed, f"not listed in {UNKNOWN_KINDS.name}: {text}"


@pytest.mark.parametrize("name", [*CS2_LOGS, *CSGO_LOGS, POSTS])
def test_formatting_a_parsed_line_gives_the_original_text(corpus: Path, name: str) -> None:
    reader = LineReader()
    for raw in lines_in(corpus / name):
        text = raw.decode("utf-8", "replace")
        ms, line = reader.read(raw)
        assert ms is not None
        if isinstance(line, StatsField | StatsMark) and not text.endswith((",", "{", "D", '"')):
            continue  # its closing quote is missing in the capture
        written = format_file_line(ms, line) if text.startswith("L ") else format_http_line(ms, line)
        if ".170: " in text:
            written = written.replace("19:03:11: ", "19:03:11.170: ")
        assert written == text.rstrip(" ")


def test_csgo_match_with_bots_is_read_to_its_end(corpus: Path) -> None:
    reader, _ = read_log(corpus / "csgo-5v5-cache-bots.log")
    result = build_result(reader.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.team2.total_rounds, result.team1.total_rounds) == (Winner.TEAM2, 16, 1)
    (human,) = result.overall
    assert (human.name, human.kills) == ("Player", 49)
    assert result.maps[0].players[0].bomb_defuses == 1


def test_csgo_hostage_match_is_read_to_its_end(corpus: Path) -> None:
    reader, _ = read_log(corpus / "csgo-hostage-agency.log")
    result = build_result(reader.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.team2.total_rounds, result.team1.total_rounds) == (Winner.TEAM2, 6, 3)
    assert {player.steam_id for player in result.overall if player.name == "Dean"} == {"76561197960265737"}


def test_truncated_log_is_read_without_an_error(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    for end in range(1, len(data), len(data) // 10):
        reader = LineReader()
        for raw in split_lines([data[:end]]):
            reader.read(raw)
