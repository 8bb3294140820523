"""How a team bought, by money and equipment."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.stats.buy_types import MOST_CARRIED, BuyType, buy_type

values = st.lists(st.integers(0, MOST_CARRIED), min_size=1, max_size=5)


def test_buy_type_depends_on_the_mean_equipment() -> None:
    for money, equipment, expected in [
        ((800, 800), (850, 200), BuyType.PISTOL),
        ((800, 800), (1800, 300), BuyType.ECO),  # guns from before: no pistol round
        ((800, 1001), (200, 200), BuyType.ECO),
        ((5000, 5000), (200, 3799), BuyType.ECO),
        ((2000, 2000), (200, 3800), BuyType.FORCE),
        ((9000, 9000), (3999, 4000), BuyType.FORCE),
        ((9000, 0), (2500, 5500), BuyType.FULL),
        ((800, 800), (4000, 4000), BuyType.FULL),
    ]:
        assert buy_type(money, equipment) is expected


def test_buy_type_is_unknown_if_a_number_is() -> None:
    assert buy_type((800, None), (200, 200)) is None
    assert buy_type((800, 800), (200, None)) is None
    assert buy_type((9000, 9000), (None, None)) is None
    assert buy_type((), ()) is None


def test_buy_type_is_known_if_every_possible_value_of_the_unknown_player_gives_it() -> None:
    for equipment, expected in [
        ((5000, 5000, 5000, 5000, None), BuyType.FULL),
        ((5000, 5000, 5000, 4999, None), None),
        ((2500, 2500, 2500, 2500, None), BuyType.FORCE),
        ((2500, 2500, 2500, 2499, None), None),
        ((2500, 2500, 2500, 20_000 - 7500 - MOST_CARRIED, None), None),
        ((2500, 2500, 2500, 19_999 - 7500 - MOST_CARRIED, None), BuyType.FORCE),
        ((200, 200, 200, 10_000 - 600 - MOST_CARRIED, None), None),
        ((200, 200, 200, 9_999 - 600 - MOST_CARRIED, None), BuyType.ECO),
        ((8000, 8000, 4000, None, None), BuyType.FULL),
    ]:
        assert buy_type((3000,) * 5, equipment) is expected, equipment


def test_possible_values_end_at_what_the_team_can_carry() -> None:
    money, equipment = (800,) * 5, (850, 650, 200, 200, None)
    assert buy_type(money, equipment) is None
    assert buy_type(money, equipment, most_of_team=5000) is BuyType.PISTOL
    assert buy_type(money, equipment, most_of_team=5001) is None
    assert buy_type(money, equipment, most_of_team=1800) is None, "it carries more than that: items were free"


@given(st.data(), values)
def test_unknown_value_leaves_the_buy_type_or_none(data: st.DataObject, equipment: list[int]) -> None:
    money = data.draw(st.lists(st.integers(0, 3000), min_size=len(equipment), max_size=len(equipment)))
    whole = buy_type(money, equipment)
    for hidden in itertools.product((False, True), repeat=len(equipment)):
        shown = [None if is_hidden else value for is_hidden, value in zip(hidden, equipment, strict=True)]
        assert buy_type(money, shown) in (whole, None)
        assert buy_type(money, shown, most_of_team=sum(equipment)) in (whole, None)
