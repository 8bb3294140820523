"""Test the names of weapons in the log."""

from __future__ import annotations

from cs2_simulator.play.fights.arsenal import INFERNO, WEAPONS, ItemKind, pick_up_name, weapon_named


def test_attacked_lines_name_the_base_model() -> None:
    assert WEAPONS["usp_silencer"].logged == "hkp2000"


def test_any_knife_skin_is_a_knife() -> None:
    knife = weapon_named("knife_butterfly")
    assert (knife.kind, knife.logged, knife.reward) == (ItemKind.KNIFE, "knife", 1500)


def test_fire_is_found_by_the_name_inferno() -> None:
    assert weapon_named("inferno") is INFERNO


def test_pick_up_lines_name_the_base_model() -> None:
    assert (pick_up_name("usp_silencer"), pick_up_name("knife_t"), pick_up_name("c4")) == ("hkp2000", "knife", "c4")
