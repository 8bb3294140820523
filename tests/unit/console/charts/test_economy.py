"""Equipment values by round."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side, Team
from matchpod.console.charts.economy import economy
from matchpod.core.stats.buy_types import BuyType
from tests.unit.console.charts.chart_input import HOSTILE_NAMES, check, make_map, make_round, make_team, texts

SVG = {"svg": "http://www.w3.org/2000/svg"}
UNKNOWN = make_team(Side.T, value=None, buy=None)


def test_both_teams_have_a_bar_with_value_and_buy_type() -> None:
    tree = check(economy([make_round(1)], "Red", "Blue"))
    assert texts(tree, ".//svg:rect/svg:title") == [
        "Round 1, Red (CT): equipment $21,000, full buy. Won the round",
        "Round 1, Blue (T): equipment $9,000, eco",
    ]
    assert texts(tree, ".//tbody/tr") == ["121,000full buy9,000eco"]


def test_missing_value_is_a_dash_and_never_a_bar() -> None:
    tree = check(economy([make_round(1, team2=UNKNOWN)], "Red", "Blue"))
    assert [bar.get("class") for bar in tree.findall(".//svg:rect", SVG)] == ["bar team1"]
    assert "–Round 1, Blue (T): equipment value unknown" in texts(tree, ".//svg:text")
    assert texts(tree, ".//tbody/tr/*") == ["1", "21,000", "full buy", "–", "–"]


def test_zero_is_not_missing() -> None:
    poor = make_team(Side.T, value=0, buy=BuyType.ECO)
    tree = check(economy([make_round(1, team2=poor)], "Red", "Blue"))
    assert len(tree.findall(".//svg:rect", SVG)) == 2
    assert texts(tree, ".//tbody/tr/*")[3] == "0"


def test_winner_without_a_value_is_marked() -> None:
    tree = check(economy([make_round(1, Team.TEAM2, team2=UNKNOWN)], "Red", "Blue"))
    assert any(text.startswith("✓Round 1, Blue") for text in texts(tree, ".//svg:text"))


def test_bars_stay_inside_the_drawing() -> None:
    rich = make_team(Side.CT, value=90000)
    tree = check(economy([*make_map(40), make_round(41, team1=rich, team2=rich)], "Red", "Blue"))
    (drawing,) = tree.findall(".//svg:svg", SVG)
    for bar in tree.findall(".//svg:rect", SVG):
        x, y, width, height = (float(bar.get(key, "")) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + width <= float(drawing.get("width", ""))
        assert 0 <= y <= y + height <= float(drawing.get("height", ""))


def test_nothing_is_drawn_without_values() -> None:
    for rounds in ([], [make_round(1, team1=UNKNOWN, team2=UNKNOWN)]):
        assert texts(check(economy(rounds, "Red", "Blue")), "p") == ["The log has no equipment values."]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name: str) -> None:
    check(economy(make_map(3), name, name))
