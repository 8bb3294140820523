"""What does a player buy? By his money, his side and what his team is up to: save, force or buy everything."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from random import Random

from matchpod.core.model import Side
from matchpod.simulator.play.fights.arsenal import ITEMS, MAX_ARMOR, MAX_GRENADES
from matchpod.simulator.play.player import Player

PISTOL_ROUND_MONEY = 1000
_FULL_BUY_MONEY = 3700
_ECO_MONEY = 1900
_FORCE_SHARE = 0.5
_HELMET_PRICE = 350
"""For who has whole armour and no helmet."""


class Mood(StrEnum):
    """What a team is up to in a round."""

    PISTOLS = "pistols"
    SAVE = "save"
    FORCE = "force"
    FULL = "full"


_RIFLES = {
    Side.CT: (("aug", 3300, 0.08), ("m4a1", 2900, 1.0), ("famas", 1950, 0.85), ("mp9", 1250, 1.0)),
    Side.T: (("sg556", 3000, 0.08), ("ak47", 2700, 1.0), ("galilar", 1800, 0.9), ("mac10", 1050, 1.0)),
}
"""What a side would have, best first: its price, and how often it is taken by who can pay it."""

_CHEAP_GUNS = ("mp7", "p90", "nova", "ssg08", "ump45", "xm1014", "negev")
_FINE_PISTOLS = {
    Side.CT: ("deagle", "p250", "fiveseven", "elite", "deagle"),
    Side.T: ("deagle", "p250", "tec9", "elite", "deagle"),
}
_FIRES = {Side.CT: "incgrenade", Side.T: "molotov"}


def mood_of(dice: Random, team: Sequence[Player]) -> Mood:
    """What a team decides to do, by the money and weapons of all."""
    wealth = [player.money + (2500 if player.primary else 0) for player in team]
    if max(wealth, default=0) <= PISTOL_ROUND_MONEY:
        return Mood.PISTOLS
    mean = sum(wealth) / len(wealth)
    if mean >= _FULL_BUY_MONEY:
        return Mood.FULL
    chance = dice.random()
    return Mood.FORCE if mean > _ECO_MONEY and chance < _FORCE_SHARE else Mood.SAVE


def price_of(player: Player, name: str) -> int:
    """What it costs him."""
    if name == "vesthelm" and player.armor == MAX_ARMOR and not player.has_helmet:
        return _HELMET_PRICE
    return ITEMS[name].price


def shopping_list(dice: Random, player: Player, side: Side, mood: Mood) -> list[str]:
    """What he will buy, in this order; he can pay all of it."""
    basket = _Basket(dice, player, side)
    if mood is Mood.PISTOLS:
        basket.choose_for_pistols()
    elif mood is Mood.SAVE:
        basket.choose_for_saving()
    else:
        basket.choose_gun(is_forced=mood is Mood.FORCE)
        basket.choose_gear()
    return basket.names


class _Basket:
    def __init__(self, dice: Random, player: Player, side: Side) -> None:
        self.names: list[str] = []
        self._roll = dice.random
        self._player = player
        self._side = side
        self._money = player.money
        self._grenades = list(player.grenades)

    def choose_for_pistols(self) -> None:
        chance = self._roll()
        if chance < 0.45:
            self._take("vest")
        elif chance < 0.75:
            self._take_pistol()
        elif chance < 0.85 and self._side is Side.CT:
            self._take_kit()
        self._take_grenades(2)

    def choose_for_saving(self) -> None:
        if self._player.primary:
            self._take_armor()
        elif self._roll() < 0.35:
            self._take_pistol()
        if self._roll() < 0.2:
            self._take_grenades(1)

    def choose_gun(self, *, is_forced: bool) -> None:
        if self._player.primary:
            return
        person = self._player.person
        if person.is_awper and self._money >= 4750 + 650:
            self._take("awp")
        elif person.is_cheater and self._roll() < 0.35:
            self._take("ssg08")  # one bullet a head suits him
        elif is_forced and self._roll() < 0.5:
            self._take(_own_make(self._player, _CHEAP_GUNS[int(self._roll() * len(_CHEAP_GUNS))]))
        else:
            self._take_rifle()

    def choose_gear(self) -> None:
        self._take_armor()
        if self._side is Side.CT and self._roll() < 0.4:
            self._take_kit()
        self._take_grenades(4)
        if self._roll() < 0.12:
            self._take_pistol()
        if self._roll() < 0.08 and not self._player.has_taser:
            self._take("taser")

    def _take(self, name: str) -> bool:
        price = price_of(self._player, name)
        if price > self._money:
            return False
        self._money -= price
        self.names.append(name)
        return True

    def _take_rifle(self) -> None:
        for name, price, share in _RIFLES[self._side]:
            if self._money >= price and self._roll() < share and self._take(_own_make(self._player, name)):
                return

    def _take_pistol(self) -> None:
        choice = _FINE_PISTOLS[self._side]
        name = "deagle" if self._player.person.is_cheater else choice[int(self._roll() * len(choice))]
        if name != self._player.pistol:
            self._take(_own_make(self._player, name))

    def _take_armor(self) -> None:
        player = self._player
        if player.armor > 60 and player.has_helmet:
            return
        if not self._take("vesthelm") and player.armor < 60:
            self._take("vest")

    def _take_kit(self) -> None:
        if not self._player.has_kit:
            self._take("defuser")

    def _take_grenades(self, most: int) -> None:
        wishes = ("hegrenade", _FIRES[self._side], "flashbang", "smokegrenade", "flashbang", "decoy")
        shares = (0.55, 0.42, 0.28, 0.16, 0.08, 0.05)
        for name, share in zip(wishes, shares, strict=True):
            limit = 2 if name == "flashbang" else 1
            if self._roll() >= share or len(self._grenades) >= MAX_GRENADES or self._grenades.count(name) >= limit:
                continue
            if most and self._take(name):
                most -= 1
                self._grenades.append(name)


def _own_make(player: Player, name: str) -> str:
    """Everybody has chosen once which of two alike weapons he plays with."""
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
    """The pistol he comes to life with."""
    if player.team == Side.T:
        return "glock"
    return "usp_silencer" if player.person.account % 4 else "hkp2000"
