"""Who might come to a server? Invented people, each with a name, an account, habits and a strength.

What somebody is like depends on the chance he is made of and on his account alone, not on who is made beside him; only
names give way, so that no two on a server are called the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import Random

from matchpod.simulator.play.people.nicknames import NICKNAMES
from matchpod.simulator.play.player import Person

MIN_ACCOUNT = 20_000_000
"""Accounts of the first years are rare."""

MAX_ACCOUNT = 1_900_000_000
"""Up to 2039734271 a SteamID64 begins with 7656119, which callers check; the newest accounts are near."""

MIN_SKILL, USUAL_SKILL, MAX_SKILL = 0.6, 1.0, 1.5
MIN_HEADSHOTS, MAX_HEADSHOTS = 0.25, 0.6

NETWORKS = ("203.0.113", "198.51.100")
"""The networks set aside for examples: nobody real is ever meant."""

MIN_PORT, MAX_PORT = 10_000, 65_535
"""Ports of players behind home routers, as seen: 11878 to 64956."""

KNIVES = (
    "knife", "knife", "knife", "knife_butterfly", "knife_falchion", "knife_karambit", "knife_flip", "knife_m9_bayonet",
    "bayonet", "knife_tactical", "knife_skeleton",
)  # fmt: skip
"""The plain one stands thrice: it is the most usual."""

TEAM_SIZE = 5

MAX_NAME_BYTES = 127
"""A name has 128 bytes in the game, the last of them a zero."""

_NAME_TRIES = 40
"""So often a taken name is drawn anew before a number is put behind it."""


def make_people(
    dice: Random,
    count: int,
    *,
    accounts: Sequence[int] = (),
    nicks: Mapping[int, str] | None = None,
    taken_names: Collection[str] = (),
) -> list[Person]:
    """So many people, the first of them with the given accounts and nicks; one of every five likes the AWP."""
    salt = dice.getrandbits(64)
    chosen = list(accounts[:count])
    while len(chosen) < count:
        account = dice.randint(MIN_ACCOUNT, MAX_ACCOUNT)
        if account not in chosen:
            chosen.append(account)
    names = {account: name for account, nick in (nicks or {}).items() if (name := name_in_game(nick))}
    taken = [*taken_names, *names.values()]
    people = []
    for account in chosen:
        own = Random(f"{salt}/{account}")
        if account not in names:
            names[account] = _free_name(own, taken)
            taken.append(names[account])
        people.append(_make_person(own, account, names[account]))
    return [
        person
        for start in range(0, count, TEAM_SIZE)
        for person in with_one_awper(dice, people[start : start + TEAM_SIZE])
    ]


def with_one_awper(dice: Random, team: Sequence[Person]) -> list[Person]:
    """The team with one of them, drawn by lot, as its AWPer."""
    awper = dice.randrange(len(team)) if team else 0
    return [replace(person, is_awper=number == awper) for number, person in enumerate(team)]


def name_in_game(nick: str) -> str:
    """A nick as the client sends it: without quotes and line breaks, cut to what a name can hold."""
    plain = nick.replace('"', "").replace("\n", " ").replace("\r", " ").strip()
    return plain.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _free_name(own: Random, taken: Collection[str]) -> str:
    for _ in range(_NAME_TRIES):
        name = own.choice(NICKNAMES)
        if name not in taken:
            return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"


def _make_person(own: Random, account: int, name: str) -> Person:
    address = f"{own.choice(NETWORKS)}.{own.randint(1, 254)}:{own.randint(MIN_PORT, MAX_PORT)}"
    return Person(
        name,
        account,
        skill=round(own.triangular(MIN_SKILL, MAX_SKILL, USUAL_SKILL), 3),
        headshots=round(own.uniform(MIN_HEADSHOTS, MAX_HEADSHOTS), 3),
        address=address,
        knife=own.choice(KNIVES),
    )
