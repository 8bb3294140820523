"""First fights of the rounds."""

from __future__ import annotations

from matchpod.console.charts.opening_duels import opening_duels
from tests.unit.console.charts.chart_input import ANN, BEN, CID, check, make_player, make_round, texts


def test_fights_are_counted_for_both_players() -> None:
    rounds = [
        make_round(1, first_kill=(ANN, BEN)),
        make_round(2, first_kill=(BEN, ANN)),
        make_round(3, first_kill=(ANN, BEN)),
    ]
    tree = check(opening_duels(rounds, "Red", "Blue"))
    assert [texts(row, "*") for row in tree.findall(".//tbody/tr")] == [
        ["Ann", "Red", "2", "1"],
        ["Ben", "Blue", "1", "2"],
    ]
    assert "Ann: won 2 first fights, lost 1" in texts(tree, ".//svg:rect/svg:title")


def test_player_without_a_first_fight_is_listed() -> None:
    tree = check(opening_duels([make_round(first_kill=(ANN, BEN), players=(make_player(CID),))], "Red", "Blue"))
    assert texts(tree, ".//tbody/tr[2]/*") == ["Cid", "Red", "0", "0"]
