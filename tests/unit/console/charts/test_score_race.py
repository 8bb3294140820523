"""The lead after each round."""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.console.charts.score_race import score_race
from tests.unit.console.charts.chart_input import SVG, check, make_round, open_round, texts

ROUNDS = (
    make_round(1, Team.TEAM1, score=(1, 0)),
    make_round(2, Team.TEAM2, score=(1, 1)),
    make_round(3, Team.TEAM2, score=(1, 2)),
    open_round(4),
)


def test_bars_go_up_for_the_first_team_and_down_for_the_second() -> None:
    up, down = check(score_race(ROUNDS, "Red", "Blue")).findall(".//svg:rect", SVG)
    assert (up.get("class"), down.get("class")) == ("bar team1", "bar team2")
    assert float(up.get("y", "")) + float(up.get("height", "")) == float(down.get("y", ""))
    assert texts(up, "*") == ["Round 1: 1:0, Red ahead by 1"]


def test_round_without_a_score_has_a_dash_and_no_bar() -> None:
    tree = check(score_race(ROUNDS, "Red", "Blue"))
    assert "–Round 4: no score" in texts(tree, ".//svg:text")
    assert "0Round 2: 1:1, tied" in texts(tree, ".//svg:text")
