"""Test the choice of purchases."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.fights.arsenal import ITEMS, WEAPONS
from cs2_simulator.play.fights.purchases import BuyStrategy, choose_strategy, price_of, shopping_list, start_pistol
from cs2_simulator.play.player import Participant, Player
from simulator_tests.play.fights.battlefield import Battlefield, FixedRng


def team_with(money: int, *, primary: str = "") -> list[Player]:
    team = list(Battlefield().spawn_all().cts)
    for player in team:
        player.money, player.primary = money, primary
    return team


@pytest.mark.parametrize(
    ("money", "chance", "strategy"),
    [
        (800, 0.1, BuyStrategy.PISTOLS),
        (1500, 0.1, BuyStrategy.SAVE),
        (2500, 0.1, BuyStrategy.FORCE),
        (2500, 0.9, BuyStrategy.SAVE),
        (4000, 0.9, BuyStrategy.FULL),
    ],
)
def test_strategy_depends_on_money(money: int, chance: float, strategy: BuyStrategy) -> None:
    assert choose_strategy(FixedRng(chance), team_with(money)) is strategy


def test_kept_weapons_count_as_money() -> None:
    assert choose_strategy(FixedRng(0.9), team_with(1500, primary="ak47")) is BuyStrategy.FULL


def test_empty_team_has_the_pistol_strategy() -> None:
    assert choose_strategy(FixedRng(0.5), []) is BuyStrategy.PISTOLS


@pytest.mark.parametrize("side", [Side.CT, Side.T])
@pytest.mark.parametrize("strategy", list(BuyStrategy))
def test_purchases_are_affordable_and_available_to_the_side(side: Side, strategy: BuyStrategy) -> None:
    for seed in range(200):
        rng = Random(seed)
        person = Participant("x", seed, is_awper=seed % 5 == 0, is_cheater=seed % 7 == 0)
        player = Player(person, 1, team=side, money=int(rng.random() * 9000), has_kit=seed % 3 == 0)
        player.armor = 100 if seed % 4 == 0 else 0
        player.primary = "awp" if seed % 6 == 0 else ""
        names = shopping_list(rng, player, side, strategy)
        assert sum(price_of(player, name) for name in names) <= player.money
        assert {WEAPONS[name].side for name in names if name in WEAPONS} <= {None, side}
        assert names.count("flashbang") <= 2
        assert not (player.primary and any(ITEMS[name].price > 1000 for name in names))


def test_helmet_costs_less_with_full_armor() -> None:
    player = team_with(5000)[0]
    player.armor = 100
    assert price_of(player, "vesthelm") == 350


def test_vest_is_bought_if_the_helmet_is_too_expensive() -> None:
    player = team_with(900, primary="famas")[0]
    assert shopping_list(FixedRng(0.99), player, Side.CT, BuyStrategy.SAVE) == ["vest"]


def test_awper_buys_the_awp() -> None:
    player = Player(Participant("x", 7, is_awper=True), 1, team="CT", money=9000)
    assert shopping_list(FixedRng(0.99), player, Side.CT, BuyStrategy.FULL)[0] == "awp"


def test_players_prefer_different_m4_variants() -> None:
    players = [Player(Participant("x", account), 1, team="CT", money=3000) for account in range(1, 9)]
    variants = {shopping_list(FixedRng(0.5), player, Side.CT, BuyStrategy.FULL)[0] for player in players}
    assert variants == {"m4a1", "m4a1_silencer"}


def test_players_prefer_different_pistol_and_smg_variants() -> None:
    bought: set[str] = set()
    for seed in range(3000):
        player = Player(Participant("x", seed), 1, team="TERRORIST", money=3500)
        bought.update(shopping_list(Random(seed), player, Side.T, BuyStrategy.FORCE if seed % 3 else BuyStrategy.SAVE))
    assert {"cz75a", "tec9", "revolver", "deagle", "mp5sd", "mp7"} <= bought


def test_start_pistol_depends_on_side_and_account() -> None:
    players = [
        Player(Participant("x", account), 1, team=team) for account, team in ((1, "CT"), (4, "CT"), (1, "TERRORIST"))
    ]
    assert [start_pistol(player) for player in players] == ["usp_silencer", "hkp2000", "glock"]


def test_owned_pistol_is_not_bought_again() -> None:
    player = Player(Participant("x", 7), 1, team="CT", money=1500, pistol="deagle")
    assert shopping_list(FixedRng(0.3, 0.0, 0.9), player, Side.CT, BuyStrategy.SAVE) == []


def test_no_rifle_is_bought_if_unaffordable() -> None:
    player = Player(Participant("x", 7), 1, team="CT", money=700)
    assert shopping_list(FixedRng(0.9), player, Side.CT, BuyStrategy.FULL) == ["vest"]
