"""What is bought."""

from __future__ import annotations

from random import Random

import pytest

from matchpod.core.model import Side
from matchpod.simulator.play.fights.arsenal import ITEMS, WEAPONS
from matchpod.simulator.play.fights.purchases import Mood, mood_of, price_of, shopping_list, start_pistol
from matchpod.simulator.play.player import Person, Player
from tests.unit.simulator.play.fights.battlefield import Battlefield, Fixed


def team_with(money: int, *, primary: str = "") -> list[Player]:
    team = list(Battlefield().spawn_all().cts)
    for player in team:
        player.money, player.primary = money, primary
    return team


@pytest.mark.parametrize(
    ("money", "chance", "mood"),
    [
        (800, 0.1, Mood.PISTOLS),
        (1500, 0.1, Mood.SAVE),
        (2500, 0.1, Mood.FORCE),
        (2500, 0.9, Mood.SAVE),
        (4000, 0.9, Mood.FULL),
    ],
)
def test_mood_follows_the_money(money: int, chance: float, mood: Mood) -> None:
    assert mood_of(Fixed(chance), team_with(money)) is mood


def test_weapons_kept_are_worth_money() -> None:
    assert mood_of(Fixed(0.9), team_with(1500, primary="ak47")) is Mood.FULL


def test_empty_team_is_in_no_buying_mood() -> None:
    assert mood_of(Fixed(0.5), []) is Mood.PISTOLS


@pytest.mark.parametrize("side", [Side.CT, Side.T])
@pytest.mark.parametrize("mood", list(Mood))
def test_nobody_buys_what_he_cannot_pay_or_may_not_have(side: Side, mood: Mood) -> None:
    for seed in range(200):
        dice = Random(seed)
        person = Person("x", seed, is_awper=seed % 5 == 0, is_cheater=seed % 7 == 0)
        player = Player(person, 1, team=side, money=int(dice.random() * 9000), has_kit=seed % 3 == 0)
        player.armor = 100 if seed % 4 == 0 else 0
        player.primary = "awp" if seed % 6 == 0 else ""
        names = shopping_list(dice, player, side, mood)
        assert sum(price_of(player, name) for name in names) <= player.money
        assert {WEAPONS[name].side for name in names if name in WEAPONS} <= {None, side}
        assert names.count("flashbang") <= 2
        assert not (player.primary and any(ITEMS[name].price > 1000 for name in names))


def test_helmet_alone_is_cheaper() -> None:
    player = team_with(5000)[0]
    player.armor = 100
    assert price_of(player, "vesthelm") == 350


def test_who_cannot_pay_a_helmet_takes_a_vest() -> None:
    player = team_with(900, primary="famas")[0]
    assert shopping_list(Fixed(0.99), player, Side.CT, Mood.SAVE) == ["vest"]


def test_sniper_takes_his_rifle() -> None:
    player = Player(Person("x", 7, is_awper=True), 1, team="CT", money=9000)
    assert shopping_list(Fixed(0.99), player, Side.CT, Mood.FULL)[0] == "awp"


def test_everybody_keeps_to_his_make() -> None:
    makes = {
        shopping_list(Fixed(0.5), Player(Person("x", account), 1, team="CT", money=3000), Side.CT, Mood.FULL)[0]
        for account in range(1, 9)
    }
    assert makes == {"m4a1", "m4a1_silencer"}


def test_makes_of_pistols_and_smgs_differ_by_person() -> None:
    seen: set[str] = set()
    for seed in range(3000):
        player = Player(Person("x", seed), 1, team="TERRORIST", money=3500)
        seen.update(shopping_list(Random(seed), player, Side.T, Mood.FORCE if seed % 3 else Mood.SAVE))
    assert {"cz75a", "tec9", "revolver", "deagle", "mp5sd", "mp7"} <= seen


def test_start_pistol_is_a_matter_of_side_and_taste() -> None:
    players = [Player(Person("x", account), 1, team=team) for account, team in ((1, "CT"), (4, "CT"), (1, "TERRORIST"))]
    assert [start_pistol(player) for player in players] == ["usp_silencer", "hkp2000", "glock"]


def test_nobody_buys_the_pistol_he_has() -> None:
    player = Player(Person("x", 7), 1, team="CT", money=1500, pistol="deagle")
    assert shopping_list(Fixed(0.3, 0.0, 0.9), player, Side.CT, Mood.SAVE) == []


def test_who_can_pay_no_rifle_buys_none() -> None:
    player = Player(Person("x", 7), 1, team="CT", money=700)
    assert shopping_list(Fixed(0.9), player, Side.CT, Mood.FULL) == ["vest"]
