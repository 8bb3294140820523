"""Who killed or damaged whom."""

from __future__ import annotations

from matchpod.console.charts.matrices import counted_kills, damage_pairs, kill_matrix
from matchpod.console.charts.parts import MAX_PLAYERS
from matchpod.core.views.timeline_items import MapLiveItem, Person, RoundRestoredItem
from tests.unit.console.charts.chart_input import (
    ANN,
    BEN,
    BOT,
    CID,
    START,
    UNLISTED,
    check,
    kill,
    make_player,
    make_round,
    texts,
)

LIVE = MapLiveItem(seq=1, timestamp=START, round_number=None, map_name="de_nuke", team1_side=None, score=None)
PLAYERS = make_player(ANN), make_player(BEN)
A, B = (one.steam_id for one in PLAYERS)


def rows_of(*kills: tuple[Person, Person]) -> list[list[str]]:
    tree = check(kill_matrix([kill(*pair) for pair in kills], "Red", "Blue"))
    return [texts(row, "*") for row in tree.findall(".//tbody/tr")]


def test_rows_are_killers_and_columns_victims() -> None:
    tree = check(kill_matrix([kill(ANN, BEN), kill(ANN, BEN), kill(BEN, CID)], "Red", "Blue"))
    assert texts(tree, ".//thead/tr[1]/th") == ["Red", "Blue"]
    assert texts(tree, ".//thead/tr[2]/th") == ["Killer", "Ann", "Cid", "Ben", "Kills"]
    rows = [texts(row, "*") for row in tree.findall(".//tbody/tr")]
    assert rows == [["Ann", "", "", "2", "2"], ["Cid", "", "", "0", "0"], ["Ben", "0", "1", "", "1"]]
    assert texts(tree, ".//tfoot/tr/*") == ["Was killed", "0", "1", "2", "3"]


def test_team_kills_are_marked_and_not_counted() -> None:
    tree = check(kill_matrix([kill(ANN, CID, team_kill=True), kill(ANN, BEN)], "Red", "Blue"))
    assert texts(tree, ".//tbody[1]/tr[1]/*") == ["Ann", "", "1 TK", "1", "1"]
    assert texts(tree, "p") == ["TK: team kills, not in the totals."]


def test_bots_and_unlisted_players_have_a_row() -> None:
    assert [row[0] for row in rows_of((BOT, ANN), (UNLISTED, ANN))] == ["Ann", "Kao (bot)", "unlisted players"]


def test_kills_of_dropped_rounds_do_not_count() -> None:
    restored = RoundRestoredItem(seq=1, timestamp=START, round_number=1, rounds_kept=1, score=None)
    kills = [kill(ANN, BEN, round_number=number) for number in (1, 2, 2)]
    assert counted_kills([LIVE, kills[0], kills[1], restored, kills[2]]) == [kills[0], kills[2]]


def test_kills_before_a_restart_do_not_count() -> None:
    assert counted_kills([LIVE, kill(ANN, BEN), LIVE]) == []


def test_table_of_a_crowd_is_limited() -> None:
    crowd = [Person(steam_id=str(number), name=f"P{number}", team=None) for number in range(MAX_PLAYERS + 2)]
    tree = check(kill_matrix([kill(one, crowd[0]) for one in crowd[1:]], None, None))
    assert len(tree.findall(".//tbody/tr")) == MAX_PLAYERS
    assert texts(tree, "p") == ["2 players with fewer fights not shown or counted."]
    assert texts(tree, ".//tfoot/tr/td")[-1] == str(MAX_PLAYERS - 1)


def test_damage_is_summed_over_rounds() -> None:
    rounds = [make_round(number, players=PLAYERS, damage_pairs=((A, B, 60), (B, A, 27))) for number in (1, 2)]
    tree = check(damage_pairs(rounds, "Red", "Blue"))
    assert [texts(row, "*") for row in tree.findall(".//tbody/tr")] == [
        ["Ann", "", "120", "120"],
        ["Ben", "54", "", "54"],
    ]
    assert texts(tree, ".//tfoot/tr/*") == ["Taken", "54", "120", "174"]
    assert [cell.get("class") for cell in tree.findall(".//tbody/tr/td[1]")] == ["mate first", "heat3 first"]


def test_bots_and_unlisted_players_share_a_column() -> None:
    tree = check(damage_pairs([make_round(players=PLAYERS, damage_pairs=((A, None, 50),))], "Red", "Blue"))
    assert texts(tree, ".//thead/tr[2]/th") == ["Attacker", "Ann", "Ben", "bots, unlisted", "Dealt"]
    assert texts(tree, ".//tbody[1]/tr[1]/*") == ["Ann", "", "0", "50", "50"]


def test_damage_of_a_crowd_is_limited() -> None:
    pairs = tuple((str(number), "0", number) for number in range(1, MAX_PLAYERS + 2))
    tree = check(damage_pairs([make_round(damage_pairs=((("0", "1", 900)), *pairs))], "Red", "Blue"))
    assert len(tree.findall(".//tbody/tr")) == MAX_PLAYERS
    assert texts(tree, "p") == ["2 players with less damage not shown or counted."]
