"""Classification of weapons."""

from __future__ import annotations

import pytest

from cs2_protocol.weapons import PISTOLS, SNIPERS, UTILITY, base_name, is_knife


def test_weapon_types_do_not_overlap() -> None:
    assert not PISTOLS & SNIPERS
    assert not (PISTOLS | SNIPERS) & UTILITY


@pytest.mark.parametrize("weapon", ["knife", "knife_t", "knife_falchion", "bayonet"])
def test_knife_is_recognized_by_its_prefix(weapon: str) -> None:
    assert is_knife(weapon)
    assert base_name(weapon) == "knife"


@pytest.mark.parametrize("weapon", ["taser", "awp", ""])
def test_other_weapons_are_not_knives(weapon: str) -> None:
    assert not is_knife(weapon)


@pytest.mark.parametrize(
    ("killed_with", "attacked_with"),
    [("m4a1_silencer", "m4a1"), ("mp5sd", "mp7"), ("usp_silencer", "hkp2000"), ("cz75a", "cz75a"), ("ak47", "ak47")],
)
def test_base_name_is_the_name_in_attack_lines(killed_with: str, attacked_with: str) -> None:
    assert base_name(killed_with) == attacked_with
