"""Test weapons, items and their names."""

from __future__ import annotations

import pytest

from cs2_protocol.game import Side
from cs2_simulator.play.fights.arsenal import INFERNO, ITEMS, WEAPONS, ItemKind, pick_up_name, weapon_named


@pytest.mark.parametrize(
    ("name", "cause", "bought", "picked"),
    [
        ("m4a1_silencer", "purchase: weapon_m4a1_silencer", "m4a1_silencer", "m4a1"),
        ("mp5sd", "purchase: weapon_mp5sd", "mp5sd", "mp7"),
        ("revolver", "purchase: weapon_revolver", "revolver", "deagle"),
        ("incgrenade", "purchase: weapon_incgrenade", "incgrenade", "incgrenade"),
        ("vesthelm", "purchase: item_assaultsuit", "item_assaultsuit", "vesthelm"),
        ("vest", "purchase: item_kevlar", "item_kevlar", "vest"),
        ("defuser", "purchase: item_defuser", "item_defuser", "defuser"),
    ],
)
def test_item_names_are_those_of_a_real_log(name: str, cause: str, bought: str, picked: str) -> None:
    item = ITEMS[name]
    assert (item.cause, item.bought, item.picked) == (cause, bought, picked)


@pytest.mark.parametrize(
    ("name", "price"), [("awp", 4750), ("ak47", 2700), ("m4a1", 2900), ("deagle", 700), ("decoy", 50)]
)
def test_prices_are_those_of_a_real_log(name: str, price: int) -> None:
    assert ITEMS[name].price == price


def test_attacked_lines_name_the_base_model() -> None:
    assert WEAPONS["usp_silencer"].logged == "hkp2000"


def test_any_knife_skin_is_a_knife() -> None:
    knife = weapon_named("knife_butterfly")
    assert (knife.kind, knife.logged, knife.reward) == (ItemKind.KNIFE, "knife", 1500)


def test_fire_is_found_by_the_name_inferno() -> None:
    assert weapon_named("inferno") is INFERNO


def test_pick_up_lines_name_the_base_model() -> None:
    assert (pick_up_name("usp_silencer"), pick_up_name("knife_t"), pick_up_name("c4")) == ("hkp2000", "knife", "c4")


def test_rifles_are_limited_to_a_side_but_the_awp_is_not() -> None:
    assert (WEAPONS["ak47"].side, WEAPONS["m4a1"].side, WEAPONS["awp"].side) == (Side.T, Side.CT, None)
