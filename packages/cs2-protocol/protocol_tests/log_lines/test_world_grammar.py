"""Tests of lines that are not about a player."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side
from cs2_protocol.log_lines import world_lines as lines
from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_grammar import read_quoted, read_world

from .samples import WORLD_LINES


@pytest.mark.parametrize("text", WORLD_LINES)
def test_formatting_a_parsed_line_gives_the_original_text(text: str) -> None:
    line = LineReader().parse(text)
    assert not isinstance(line, lines.Unknown)
    assert line.text() == text


@pytest.mark.parametrize("text", WORLD_LINES)
def test_truncated_line_is_not_an_error(text: str) -> None:
    for end in range(len(text)):
        LineReader().parse(text[:end])


def test_round_end_has_the_scores_by_side() -> None:
    line = read_world('Team "TERRORIST" triggered "SFUI_Notice_Target_Bombed" (CT "1") (T "2")')
    assert line == lines.RoundEndNotice(Side.T, "Target_Bombed", 1, 2)


@pytest.mark.parametrize(
    ("text", "group", "map_name"),
    [
        ("Game Over: competitive  de_inferno score 2:13 after 10 min", "", "de_inferno"),
        ("Game Over: competitive mg_active de_inferno score 2:13 after 10 min", "mg_active", "de_inferno"),
        ("Game Over: competitive <allmaps> cs_agency score 6:3 after 14 min", "<allmaps>", "cs_agency"),
        ("Game Over: scrimcomp2v2  workshop/1/de_x score 9:3 after 14 min", "", "workshop/1/de_x"),
    ],
)
def test_map_group_of_game_over_may_be_empty(text: str, group: str, map_name: str) -> None:
    line = read_world(text)
    assert isinstance(line, lines.GameOver)
    assert (line.map_group, line.map_name) == (group, map_name)


def test_host_name_with_quotes_is_parsed() -> None:
    assert read_quoted('"server" : "Server "#1"",') == lines.StatsField("server", 'Server "#1"')


def test_statistics_field_without_its_closing_quote_is_parsed() -> None:
    assert read_quoted('"round_number" : "1') == lines.StatsField("round_number", "1")
    assert read_quoted('"name": "round_stats') == lines.StatsMark('"name": "round_stats",')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "World",
        "Game Over: competitive de_inferno",
        "x Game Over: competitive  de_inferno score 2:13 after 10 min",
        'Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "9999999") (T "0")',
        'MatchStatus: Score: 1:0 on map "x" RoundsPlayed: 1 and more',
        "[META] Loaded 0 plugins (2 already loaded)",
        '"Console<0>" say "',
        '"name": "round_stat',
        '"hostname" : "x"',
    ],
)
def test_other_text_is_unknown_and_kept_unchanged(text: str) -> None:
    line = LineReader().parse(text)
    assert line == lines.Unknown(text)
    assert line.text() == text
