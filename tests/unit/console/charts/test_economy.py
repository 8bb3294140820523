"""Equipment values by round."""

from __future__ import annotations

from cs2_protocol.game import Side, Team
from matchpod.console.charts.economy import economy
from matchpod.core.stats.buy_types import BuyType
from tests.unit.console.charts.chart_input import SVG, check, make_round, make_team, texts

UNKNOWN = make_team(Side.T, value=None, buy=None)


def test_both_teams_have_a_bar_with_value_and_buy_type() -> None:
    tree = check(economy([make_round(1)], "Red", "Blue"))
    assert texts(tree, ".//svg:rect/svg:title") == [
        "Round 1, Red (CT): equipment $21,000, full buy. Won the round",
        "Round 1, Blue (T): equipment $9,000, eco",
    ]
    assert texts(tree, ".//tbody/tr") == ["121,000full buy9,000eco"]


def test_zero_is_not_missing() -> None:
    poor = make_team(Side.T, value=0, buy=BuyType.ECO)
    tree = check(economy([make_round(1, team2=poor)], "Red", "Blue"))
    assert len(tree.findall(".//svg:rect", SVG)) == 2
    assert texts(tree, ".//tbody/tr/*")[3] == "0"


def test_winner_without_a_value_is_marked() -> None:
    tree = check(economy([make_round(1, Team.TEAM2, team2=UNKNOWN)], "Red", "Blue"))
    assert any(text.startswith("✓Round 1, Blue") for text in texts(tree, ".//svg:text"))
