"""The value of equipment."""

from __future__ import annotations

from cs2_simulator.play.fights.arsenal import ITEMS, WEAPONS, ItemKind
from matchpod.cs2.prices import PRICES, equipment_value


def test_prices_are_those_of_the_simulator() -> None:
    sold = {name: weapon.price for name, weapon in WEAPONS.items() if weapon.kind is not ItemKind.KNIFE}
    assert {name: PRICES[name] for name in sold} == sold
    assert equipment_value(["kevlar(100)"]) == ITEMS["vest"].price
    assert equipment_value(["kevlar(100)", "helmet"]) == ITEMS["vesthelm"].price
    assert equipment_value(["defuser"]) == ITEMS["defuser"].price


def test_knives_and_the_bomb_have_no_value() -> None:
    assert equipment_value(["weapon_knife_falchion", "weapon_bayonet", "weapon_c4", "C4"]) == 0


def test_worn_armor_counts_in_full() -> None:
    assert equipment_value(["weapon_knife", "weapon_glock", "kevlar(7)"]) == 850


def test_value_is_unknown_without_items_or_with_an_unknown_one() -> None:
    for items in [[], ["weapon_raygun"], ["weapon_ak47", "jetpack"], ["kevlar()"], ["kevlar"]]:
        assert equipment_value(items) is None
