"""Build rounds, kills and players for the tests of charts, and check what a chart must never contain."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from markupsafe import Markup

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core.stats.buy_types import BuyType
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.round_shapes import (
    StoredDamagePair,
    StoredFirstKill,
    StoredRound,
    StoredRoundPlayer,
    StoredRoundTeam,
)
from matchpod.core.views.timeline_items import KillItem, Person

ANN = Person(steam_id="76561198000000001", name="Ann", team=Team.TEAM1)
BEN = Person(steam_id="76561198000000002", name="Ben", team=Team.TEAM2)
CID = Person(steam_id="76561198000000003", name="Cid", team=Team.TEAM1)
BOT = Person(steam_id=None, name="Kao", team=Team.TEAM2)
UNLISTED = Person(steam_id=None, name="", team=None)
HOSTILE_NAMES = (
    "<img src=x onerror=alert(1)>",
    "\"><script>alert('x')</script>",
    "\u202eevil\u2066 \u2069name",
    "x" * 256,
    "{{7*7}} {0} {name} %s",
    "",
    "\x00\x08\ud800\ufffe",
)
START = "2026-03-14T20:00:00.000Z"
SVG = {"": "", "svg": "http://www.w3.org/2000/svg"}
_FORBIDDEN = re.compile(r"[\u202a-\u202e\u2066-\u2069\x00-\x08\ud800-\udfff]")


def make_team(
    side: Side | None, *, survivors: int | None = 3, value: int | None = 21000, buy: BuyType | None = BuyType.FULL
) -> StoredRoundTeam:
    return StoredRoundTeam(side=side, survivors=survivors, equipment_value=value, buy_type=buy)


def make_player(person: Person) -> StoredRoundPlayer:
    return StoredRoundPlayer(steam_id=person.steam_id or "", name=person.name, team=person.team)


def make_round(
    number: int = 1,
    winner: Team | None = Team.TEAM1,
    *,
    side: Side | None = Side.CT,
    reason: RoundEndReason | None = RoundEndReason.BOMB_DEFUSED,
    score: tuple[int, int] | None = (1, 0),
    complete: bool = True,
    first_kill: tuple[Person, Person] | None = None,
    players: tuple[StoredRoundPlayer, ...] = (),
    damage_pairs: tuple[tuple[str, str | None, int], ...] = (),
    team1: StoredRoundTeam | None = None,
    team2: StoredRoundTeam | None = None,
) -> StoredRound:
    other = None if side is None else side.other
    first = first_kill and StoredFirstKill(killer=first_kill[0], victim=first_kill[1])
    return StoredRound(
        number=number,
        complete=complete,
        winner=winner,
        winner_side=None if winner is None else side if winner is Team.TEAM1 else other,
        reason=reason,
        score=None if score is None else Score(*score),
        first_kill=first,
        team1=team1 or make_team(side),
        team2=team2 or make_team(other, survivors=0, value=9000, buy=BuyType.ECO),
        players=players,
        damage_pairs=tuple(
            StoredDamagePair(attacker_steam_id=attacker, victim_steam_id=victim, damage=damage)
            for attacker, victim, damage in damage_pairs
        ),
    )


def make_map(count: int, *, half: int = 12) -> tuple[StoredRound, ...]:
    """Return the rounds of an even map: the teams win in turn, so every overtime follows a tie."""
    rounds: list[StoredRound] = []
    team1 = team2 = 0
    for number in range(1, count + 1):
        is_first = number % 2 == 1
        team1, team2 = team1 + is_first, team2 + (not is_first)
        overtime_round = number - 2 * half
        swaps = (number - 1) // half if overtime_round <= 0 else 1 + (overtime_round + 2) // 6
        side = Side.CT if swaps % 2 == 0 else Side.T
        rounds.append(make_round(number, Team.TEAM1 if is_first else Team.TEAM2, side=side, score=(team1, team2)))
    return tuple(rounds)


def open_round(number: int = 1, side: Side = Side.CT) -> StoredRound:
    return make_round(number, None, side=side, reason=None, score=None)


def kill(killer: Person, victim: Person, *, round_number: int | None = 1, team_kill: bool = False) -> KillItem:
    return KillItem(
        seq=1,
        timestamp=START,
        round_number=round_number,
        killer=killer,
        victim=victim,
        weapon="ak47",
        team_kill=team_kill,
        headshot=False,
        wallbang=False,
        through_smoke=False,
        attacker_blind=False,
        noscope=False,
        in_air=False,
        distance=None,
    )


def check(chart: Markup) -> ElementTree.Element:
    """Return a chart as a tree, after the checks that every chart must pass: well-formed, and allowed by the policy."""
    assert isinstance(chart, Markup)
    assert not _FORBIDDEN.search(chart)
    chart.encode()
    tree = ElementTree.fromstring(chart)
    for element in tree.iter():
        name = element.tag.rpartition("}")[2]
        assert name not in {"script", "style", "img", "foreignObject"}
        assert not {key for key in element.attrib if key in {"style", "fill", "stroke"} or key.startswith("on")}
        assert element.get("href", "?").startswith("?")
        if name == "svg" and element.get("aria-hidden") is None:
            assert element.get("role") == "img"
            assert element.get("aria-label")
        if element.get("class") == "scroll":
            assert (element.get("tabindex"), element.get("role")) == ("0", "group")
            assert element.get("aria-label")
    assert any(element.tag == "table" or "chart-empty" in element.get("class", "") for element in tree.iter())
    return tree


def texts(tree: ElementTree.Element, path: str) -> list[str]:
    """Return the text of the elements at an XPath, without the tags inside; SVG needs no namespace."""
    found = tree.findall(path, SVG)
    return [" ".join("".join(element.itertext()).split()) for element in found]
