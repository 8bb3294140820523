"""Damage between enemies."""

from __future__ import annotations

import pytest

from matchpod.console.charts.matrices import damage_pairs
from matchpod.console.charts.parts import MAX_PLAYERS
from matchpod.core.views.timeline_items import Person
from tests.unit.console.charts.chart_input import ANN, BEN, HOSTILE_NAMES, check, make_player, make_round, texts

PLAYERS = make_player(ANN), make_player(BEN)
A, B = (one.steam_id for one in PLAYERS)


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


def test_player_without_a_name_has_their_id() -> None:
    assert texts(check(damage_pairs([make_round(damage_pairs=((A, B, 5),))], "Red", "Blue")), ".//tbody//bdi") == [A, B]


def test_table_of_a_crowd_is_limited() -> None:
    pairs = tuple((str(number), "0", number) for number in range(1, MAX_PLAYERS + 2))
    tree = check(damage_pairs([make_round(damage_pairs=((("0", "1", 900)), *pairs))], "Red", "Blue"))
    assert len(tree.findall(".//tbody/tr")) == MAX_PLAYERS
    assert texts(tree, "p") == ["2 players with less damage not shown or counted."]


def test_nothing_is_drawn_without_damage() -> None:
    assert texts(check(damage_pairs([make_round()], "Red", "Blue")), "p") == ["No damage yet."]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name: str) -> None:
    players = (make_player(Person(steam_id=A, name=name, team=ANN.team)), PLAYERS[1])
    check(damage_pairs([make_round(players=players, damage_pairs=((A, B, 5),))], name, name))
