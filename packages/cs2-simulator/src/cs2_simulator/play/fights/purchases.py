"""Choose what a player buys, depending on money, side and the team's strategy: save, force buy or full buy."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from random import Random

from cs2_protocol.game import Side
from cs2_simulator.play.fights.arsenal import ITEMS, MAX_ARMOR, MAX_GRENADES
from cs2_simulator.play.player import Player

PISTOL_ROUND_MONEY = 1000
_FULL_BUY_MONEY = 3700
_ECO_MONEY = 1900
_FORCE_SHARE = 0.5
_HELMET_PRICE = 350
"""Price of the helmet alone, if the player already has full armor."""


class BuyStrategy(StrEnum):
    PISTOLS = "pistols"
    SAVE = "save"
    FORCE = "force"
    FULL = "full"


_RIFLES = {
    Side.CT: (("aug", 3300, 0.08), ("m4a1", 2900, 1.0), ("famas", 1950, 0.85), ("mp9", 1250, 1.0)),
    Side.T: (("sg556", 3000, 0.08), ("ak47", 2700, 1.0), ("galilar", 1800, 0.9), ("mac10", 1050, 1.0)),
}
"""The guns of a side, best first: name, price, and the probability that a player who has the money buys it."""

_CHEAP_GUNS = ("mp7", "p90", "nova", "ssg08", "ump45", "xm1014", "negev")
_BETTER_PISTOLS = {
    Side.CT: ("deagle", "p250", "fiveseven", "elite", "deagle"),
    Side.T: ("deagle", "p250", "tec9", "elite", "deagle"),
}
_FIRE_GRENADES = {Side.CT: "incgrenade", Side.T: "molotov"}


def choose_strategy(rng: Random, team: Sequence[Player]) -> BuyStrategy:
    wealth = [player.money + (2500 if player.primary else 0) for player in team]
    if max(wealth, default=0) <= PISTOL_ROUND_MONEY:
        return BuyStrategy.PISTOLS
    mean = sum(wealth) / len(wealth)
    if mean >= _FULL_BUY_MONEY:
        return BuyStrategy.FULL
    chance = rng.random()
    return BuyStrategy.FORCE if mean > _ECO_MONEY and chance < _FORCE_SHARE else BuyStrategy.SAVE


def price_of(player: Player, name: str) -> int:
    if name == "vesthelm" and player.armor == MAX_ARMOR and not player.has_helmet:
        return _HELMET_PRICE
    return ITEMS[name].price


def shopping_list(rng: Random, player: Player, side: Side, strategy: BuyStrategy) -> list[str]:
    """Return the items that a player buys, in order. The player has the money for all of them."""
    basket = _Basket(rng, player, side)
    if strategy is BuyStrategy.PISTOLS:
        basket.choose_for_pistols()
    elif strategy is BuyStrategy.SAVE:
        basket.choose_for_saving()
    else:
        basket.choose_gun(is_forced=strategy is BuyStrategy.FORCE)
        basket.choose_gear()
    return basket.names


class _Basket:
    def __init__(self, rng: Random, player: Player, side: Side) -> None:
        self.names: list[str] = []
        self._roll = rng.random
        self._player = player
        self._side = side
        self._money = player.money
        self._grenades = list(player.grenades)

    def choose_for_pistols(self) -> None:
        chance = self._roll()
        if chance < 0.45:
            self._add("vest")
        elif chance < 0.75:
            self._add_pistol()
        elif chance < 0.85 and self._side is Side.CT:
            self._add_kit()
        self._add_grenades(2)

    def choose_for_saving(self) -> None:
        if self._player.primary:
            self._add_armor()
        elif self._roll() < 0.35:
            self._add_pistol()
        if self._roll() < 0.2:
            self._add_grenades(1)

    def choose_gun(self, *, is_forced: bool) -> None:
        if self._player.primary:
            return
        person = self._player.person
        if person.is_awper and self._money >= 4750 + 650:
            self._add("awp")
        elif person.is_cheater and self._roll() < 0.35:
            self._add("ssg08")  # kills with one headshot
        elif is_forced and self._roll() < 0.5:
            self._add(_preferred_variant(self._player, _CHEAP_GUNS[int(self._roll() * len(_CHEAP_GUNS))]))
        else:
            self._add_rifle()

    def choose_gear(self) -> None:
        self._add_armor()
        if self._side is Side.CT and self._roll() < 0.4:
            self._add_kit()
        self._add_grenades(4)
        if self._roll() < 0.12:
            self._add_pistol()
        if self._roll() < 0.08 and not self._player.has_taser:
            self._add("taser")

    def _add(self, name: str) -> bool:
        price = price_of(self._player, name)
        if price > self._money:
            return False
        self._money -= price
        self.names.append(name)
        return True

    def _add_rifle(self) -> None:
        for name, price, share in _RIFLES[self._side]:
            if self._money >= price and self._roll() < share and self._add(_preferred_variant(self._player, name)):
                return

    def _add_pistol(self) -> None:
        choice = _BETTER_PISTOLS[self._side]
        name = "deagle" if self._player.person.is_cheater else choice[int(self._roll() * len(choice))]
        if name != self._player.pistol:
            self._add(_preferred_variant(self._player, name))

    def _add_armor(self) -> None:
        player = self._player
        if player.armor > 60 and player.has_helmet:
            return
        if not self._add("vesthelm") and player.armor < 60:
            self._add("vest")

    def _add_kit(self) -> None:
        if not self._player.has_kit:
            self._add("defuser")

    def _add_grenades(self, limit: int) -> None:
        names = ("hegrenade", _FIRE_GRENADES[self._side], "flashbang", "smokegrenade", "flashbang", "decoy")
        shares = (0.55, 0.42, 0.19, 0.16, 0.05, 0.05)
        for name, share in zip(names, shares, strict=True):
            most = 2 if name == "flashbang" else 1
            if self._roll() >= share or len(self._grenades) >= MAX_GRENADES or self._grenades.count(name) >= most:
                continue
            if limit and self._add(name):
                limit -= 1
                self._grenades.append(name)


def _preferred_variant(player: Player, name: str) -> str:
    """Return the variant of a weapon that this player always uses, if the game offers two variants."""
    account = player.person.account
    if name == "m4a1" and account % 3:
        return "m4a1_silencer"
    if name in ("fiveseven", "tec9") and account % 5 == 0:
        return "cz75a"
    if name == "deagle" and account % 31 == 0:
        return "revolver"
    if name == "mp7" and account % 2:
        return "mp5sd"
    return name


def start_pistol(player: Player) -> str:
    if player.team == Side.T:
        return "glock"
    return "usp_silencer" if player.person.account % 4 else "hkp2000"
