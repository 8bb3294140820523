"""Names and numbers as text."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side, Team
from matchpod.console.charts.wording import clean, number, plural, shorten, side_letter, team_class


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ann", "Ann"),
        (" Ann\n", "Ann"),
        ("a\u202eb\u2066c\u2069\u200f", "abc"),
        ("\x00\ud800\ufffe", "unlisted player"),
        ("", "unlisted player"),
        (None, "unlisted player"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("x" * 300, "x" * 256),
    ],
)
def test_names_are_cleaned(name: str | None, text: str) -> None:
    assert clean(name) == text


def test_long_and_broad_names_are_cut() -> None:
    assert shorten("x" * 17) == "x" * 17
    assert shorten("x" * 18) == "x" * 16 + "…"
    assert shorten("76561198000000001") == "76561198000000001"
    assert shorten("W" * 17) == "W" * 10 + "…"
    assert shorten("名" * 17) == "名" * 10 + "…"
    assert shorten("") == ""


def test_missing_numbers_are_dashes() -> None:
    assert (number(None), number(0), number(1234), number(1.25, 1)) == ("–", "0", "1,234", "1.2")


def test_nouns_follow_their_count() -> None:
    assert (plural(1, "round"), plural(2, "round")) == ("1 round", "2 rounds")


def test_sides_and_teams() -> None:
    assert (side_letter(Side.CT), side_letter(Side.T), side_letter(None)) == ("CT", "T", "?")
    assert (team_class(Team.TEAM1), team_class(None)) == ("team1", "muted")
