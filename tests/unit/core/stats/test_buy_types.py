"""How a team bought, by money and equipment."""

from __future__ import annotations

from matchpod.core.stats.buy_types import BuyType, buy_type


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
    assert buy_type((), ()) is None
