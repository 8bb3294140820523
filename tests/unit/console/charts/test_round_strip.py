"""The strip of rounds."""

from __future__ import annotations

import pytest

from cs2_protocol.game import RoundEndReason, Team
from matchpod.console.charts.parts import MAX_ROUNDS
from matchpod.console.charts.round_strip import REASONS, round_strip
from tests.unit.console.charts.chart_input import check, make_map, make_round, make_team, open_round, texts

CELLS = ".//tbody/tr[{}]/td"


def test_winner_has_side_reason_and_survivors() -> None:
    tree = check(round_strip([make_round(1)], "Red", "Blue"))
    (won,), (lost,) = (tree.findall(CELLS.format(row)) for row in (1, 2))
    assert (won.get("class"), lost.get("class")) == ("won ct", "")
    assert won.get("title") == "Round 1: Red won as CT, bomb defused. Score 1:0. Alive 3 against 0."
    assert texts(tree, CELLS.format(1)) == ["CTwon, bomb defused3 alive"]
    assert texts(tree, CELLS.format(2)) == ["lost0 alive"]
    assert texts(tree, ".//tbody/tr/th") == ["Red 1", "Blue 0"]


def test_winner_on_the_other_side_has_its_letter() -> None:
    tree = check(round_strip([make_round(1, Team.TEAM2, reason=RoundEndReason.TARGET_BOMBED)], "Red", "Blue"))
    (won,) = tree.findall(CELLS.format(2))
    assert won.get("class") == "won t"
    assert texts(tree, ".//li")[0] == "bomb exploded"


@pytest.mark.parametrize("reason", list(RoundEndReason))
def test_every_reason_has_words_and_an_icon(reason: RoundEndReason) -> None:
    tree = check(round_strip([make_round(1, reason=reason)], "Red", "Blue"))
    assert REASONS[reason][0] in (tree.findall(CELLS.format(1))[0].get("title") or "")
    assert tree.findall(".//td//svg")


def test_rounds_are_links_which_the_tab_key_reaches_once_per_round() -> None:
    tree = check(round_strip(make_map(3), "Red", "Blue", address="?map=2&round="))
    links = tree.findall(".//a")
    assert {link.get("href") for link in links} == {f"?map=2&round={number}#feed-title" for number in (1, 2, 3)}
    assert sum(link.get("tabindex") is None for link in links) == 3
    assert not check(round_strip(make_map(3), "Red", "Blue")).findall(".//a"), "as on an overlay"


def test_current_round_is_open() -> None:
    tree = check(round_strip([make_round(1), open_round(2)], "Red", "Blue"))
    assert tree.findall(CELLS.format(1))[1].get("class") == "open"
    assert tree.findall(CELLS.format(1))[1].get("title") == "Round 2: being played. Alive 3 against 0."
    assert "● being played" in texts(tree, ".//li")
    assert texts(tree, ".//tbody/tr/th") == ["Red 1", "Blue 0"]


def test_undecided_round_is_not_open_after_the_end_or_in_the_middle() -> None:
    over = round_strip([open_round(1)], "Red", "Blue", is_over=True)
    middle = round_strip([open_round(1), make_round(2)], "Red", "Blue")
    for chart in (over, middle):
        tree = check(chart)
        assert tree.findall(CELLS.format(1))[0].get("class") == ""
        assert (tree.findall(CELLS.format(1))[0].get("title") or "").startswith("Round 1: its end is not in the log")


def test_unknown_numbers_are_dashes() -> None:
    nothing = make_team(None, survivors=None)
    tree = check(round_strip([make_round(1, side=None, score=None, team1=nothing, team2=nothing)], "Red", "Blue"))
    assert texts(tree, CELLS.format(1)) == ["?won, bomb defused– alive"]
    assert texts(tree, ".//tbody/tr/th") == ["Red –", "Blue –"]
    assert tree.findall(CELLS.format(1))[0].get("class") == "won unknown"


def test_draw_and_unknown_winner_are_told_apart() -> None:
    draw = make_round(1, None, reason=RoundEndReason.DRAW)
    tree = check(round_strip([draw], "Red", "Blue", is_over=True))
    assert texts(tree, CELLS.format(1)) == ["=draw3 alive"]
    lost = round_strip([open_round(1), make_round(2)], "Red", "Blue")
    assert texts(check(lost), CELLS.format(1))[0] == "?winner unknown3 alive"


def test_incomplete_round_is_marked() -> None:
    tree = check(round_strip([make_round(1, complete=False)], "Red", "Blue"))
    assert tree.findall(CELLS.format(1))[0].get("class") == "won ct incomplete"
    assert texts(tree, ".//thead/tr[1]/th")[1] == "1*"
    assert "* log lines are missing in 1 round" in texts(tree, ".//li")


def test_halves_and_overtimes_have_names_and_gaps() -> None:
    tree = check(round_strip(make_map(31), "Red", "Blue"))
    assert texts(tree, ".//thead/tr[1]/th") == ["1st half", "2nd half", "Overtime 1", "Overtime 2"]
    assert len(tree.findall(".//thead/tr[1]/td[@class='gap']")) == 1  # no heading without a text
    gaps = [number for number, cell in enumerate(tree.findall(CELLS.format(1)), 1) if "gap" in cell.get("class", "")]
    assert gaps == [13, 25, 28, 31]


def test_only_the_last_rounds_of_an_endless_map_are_drawn() -> None:
    tree = check(round_strip(make_map(MAX_ROUNDS + 50), "Red", "Blue"))
    assert len(tree.findall(CELLS.format(1))) == MAX_ROUNDS
