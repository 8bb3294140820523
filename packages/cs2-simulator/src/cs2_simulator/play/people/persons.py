"""Invent people, each with a name, an account, a skill and habits.

The properties of a person depend only on the random stream and the account, not on the other people created. The name
is an exception: it must be unique on a server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import Random

from cs2_simulator.play.people.nicknames import NICKNAMES
from cs2_simulator.play.player import Participant

MIN_ACCOUNT = 20_000_000
"""Lowest generated account number. Lower numbers are from the first years of Steam, and rare."""

MAX_ACCOUNT = 1_900_000_000
"""Highest generated account number. Callers require that a SteamID64 begins with 7656119, which is true up to account
2039734271. The newest real accounts are close to that number."""

MIN_SKILL, USUAL_SKILL, MAX_SKILL = 0.6, 1.0, 1.5
MIN_HEADSHOTS, MAX_HEADSHOTS = 0.25, 0.6

NETWORKS = ("203.0.113", "198.51.100")
"""Networks reserved for documentation, so that no address of a real person is used."""

MIN_PORT, MAX_PORT = 10_000, 65_535
"""Range of client ports. In real logs, the ports of players behind home routers are from 11878 to 64956."""

KNIVES = (
    "knife", "knife", "knife", "knife_butterfly", "knife_falchion", "knife_karambit", "knife_flip", "knife_m9_bayonet",
    "bayonet", "knife_tactical", "knife_skeleton",
)  # fmt: skip
"""Names of knives. The plain knife is listed three times, because it is the most common."""

TEAM_SIZE = 5

MAX_NAME_BYTES = 127
"""Maximum length of a name in bytes. The game's buffer has 128 bytes, including the terminating zero."""

_NAME_TRIES = 40
"""Number of random names that are tried. If all of them are used, a number is appended."""


def make_people(
    rng: Random,
    count: int,
    *,
    accounts: Sequence[int] = (),
    nicks: Mapping[int, str] | None = None,
    taken_names: Collection[str] = (),
) -> list[Participant]:
    """Create `count` people, first those of `accounts` with their `nicks`. One of each TEAM_SIZE people is an AWPer."""
    salt = rng.getrandbits(64)
    chosen = list(accounts[:count])
    while len(chosen) < count:
        account = rng.randint(MIN_ACCOUNT, MAX_ACCOUNT)
        if account not in chosen:
            chosen.append(account)
    names = {account: name for account, nick in (nicks or {}).items() if (name := name_in_game(nick))}
    taken = [*taken_names, *names.values()]
    people = []
    for account in chosen:
        person_rng = Random(f"{salt}/{account}")
        if account not in names:
            names[account] = _free_name(person_rng, taken)
            taken.append(names[account])
        people.append(_make_person(person_rng, account, names[account]))
    return [
        person
        for start in range(0, count, TEAM_SIZE)
        for person in with_one_awper(rng, people[start : start + TEAM_SIZE])
    ]


def with_one_awper(rng: Random, team: Sequence[Participant]) -> list[Participant]:
    """Return the team with exactly one AWPer, chosen at random."""
    awper = rng.randrange(len(team)) if team else 0
    return [replace(person, is_awper=number == awper) for number, person in enumerate(team)]


def name_in_game(nick: str) -> str:
    """Return a nickname as the game client sends it: without quotes and line breaks, cut to the maximum length."""
    plain = nick.replace('"', "").replace("\n", " ").replace("\r", " ").strip()
    return plain.encode()[:MAX_NAME_BYTES].decode(errors="ignore")


def _free_name(rng: Random, taken: Collection[str]) -> str:
    for _ in range(_NAME_TRIES):
        name = rng.choice(NICKNAMES)
        if name not in taken:
            return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"


def _make_person(rng: Random, account: int, name: str) -> Participant:
    address = f"{rng.choice(NETWORKS)}.{rng.randint(1, 254)}:{rng.randint(MIN_PORT, MAX_PORT)}"
    return Participant(
        name,
        account,
        skill=round(rng.triangular(MIN_SKILL, MAX_SKILL, USUAL_SKILL), 3),
        headshots=round(rng.uniform(MIN_HEADSHOTS, MAX_HEADSHOTS), 3),
        address=address,
        knife=rng.choice(KNIVES),
    )
