"""Test the choice of purchases."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.fights.arsenal import ITEMS, WEAPONS
from cs2_simulator.play.fights.purchases import BuyStrategy, choose_strategy, price_of, shopping_list
from cs2_simulator.play.player import Participant, Player
from simulator_tests.play.fights.battlefield import FixedRng


def test_empty_team_has_the_pistol_strategy() -> None:
    assert choose_strategy(FixedRng(0.5), []) is BuyStrategy.PISTOLS


@pytest.mark.parametrize("side", [Side.CT, Side.T])
@pytest.mark.parametrize("strategy", list(BuyStrategy))
def test_purchases_are_affordable_and_available_to_the_side(side: Side, strategy: BuyStrategy) -> None:
    for seed in range(50):
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
