"""The wall: all open matches of an organization, as fragments that are rendered once per change."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from matchpod.console.broadcasts import added, inserted, removed, swapped
from matchpod.console.rendering import fragment
from matchpod.core.progress import PublicPhase
from matchpod.service.overview import Overview, WallMatch, WallTotals, count_urgent

PARTS: Final = "wall_parts.html"
TOTALS_TICKS: Final = 5
"""Totals are read every fifth time: they change slowly, and cost more to read."""

TURN: Final = 20
"""Cards that are rendered in one go, within a few milliseconds."""

_PREPARING: Final = (PublicPhase.ALLOCATING,)
_WAITING: Final = (PublicPhase.WAITING_FOR_PLAYERS,)


class Wall:
    """What the wall of an organization shows."""

    def __init__(self, overview: Overview, org_id: str) -> None:
        self._overview = overview
        self._org_id = org_id
        self._ticks = 0
        self._totals: WallTotals | None = None
        self._matches: dict[str, WallMatch] = {}
        self._cards: dict[str, bytes] = {}
        self._around: dict[str, bytes] = {}

    @property
    def cards(self) -> Markup:
        """The cards of all matches."""
        return Markup(b"".join(self._cards.values()).decode())

    def part(self, name: str) -> Markup:
        """A fragment beside the cards."""
        return Markup(self._around[name].decode())

    async def changes(self) -> bytes:
        """Read again, and return what has changed."""
        matches = await self._overview.matches(self._org_id)
        if self._totals is None or self._ticks % TOTALS_TICKS == 0:
            self._totals = await self._overview.totals(self._org_id)
        self._ticks += 1
        changed = self._change_around(matches, self._totals)
        return changed + await self._change_cards({one.server_id: one for one in matches})

    def everything(self) -> bytes:
        """Return all fragments."""
        cards = b'<div id="cards" class="cards">' + b"".join(self._cards.values()) + b"</div>"
        return b"".join(swapped(one) for one in (*self._around.values(), cards))

    def _change_around(self, matches: Sequence[WallMatch], totals: WallTotals) -> bytes:
        around = {
            "counters": fragment(PARTS, "counters", counts_of(matches, totals)),
            "attention": fragment(PARTS, "attention", count_urgent(matches)),
            "empty": fragment(PARTS, "empty", not matches),
            "beside": fragment(PARTS, "beside", totals),
        }
        changed = [swapped(one) for name, one in around.items() if self._around.get(name) != one]
        self._around = around
        return b"".join(changed)

    async def _change_cards(self, matches: dict[str, WallMatch]) -> bytes:
        cards: dict[str, bytes] = {}
        rendered = 0
        for key, one in matches.items():
            if self._matches.get(key) == one:
                cards[key] = self._cards[key]
                continue
            cards[key] = fragment(PARTS, "card", one)
            rendered += 1
            if rendered % TURN == 0:
                await asyncio.sleep(0)  # log posts and callers go first
        changed = card_changes(self._cards, cards)
        self._matches, self._cards = matches, cards
        return changed


def card_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """Return what turns one list of cards into another: removals, other content, and insertions; some of these move."""
    old, new = list(before), list(after)
    if old == new:
        return b"".join(swapped(card) for key, card in after.items() if before[key] != card)
    kept = _kept(old, new)
    stays = set(kept)
    changed = [removed(f"card-{key}") for key in old if key not in after]
    changed += [swapped(after[key]) for key in kept if before[key] != after[key]]
    next_kept: str | None = None
    moved: list[bytes] = []
    for key in reversed(new):
        if key in stays:
            next_kept = key
        else:
            moved.append(_placed(after[key], next_kept))
    return b"".join(changed + moved[::-1])


def _kept(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the most keys that are in both lists in the same order: the longest run of rising places."""
    places = {key: place for place, key in enumerate(old)}
    ends: list[int] = []
    """The lowest place at which a run of each length can end."""
    chain: dict[int, int | None] = {}
    """The place before each place in its run."""
    for place in (places[key] for key in new if key in places):
        length = bisect_left(ends, place)
        chain[place] = ends[length - 1] if length else None
        ends[length : length + 1] = [place]
    kept: list[str] = []
    at = ends[-1] if ends else None
    while at is not None:
        kept.append(old[at])
        at = chain[at]
    return kept[::-1]


def _placed(card: bytes, before: str | None) -> bytes:
    return added(card, to="cards") if before is None else inserted(card, before=f"card-{before}")


def counts_of(matches: Sequence[WallMatch], totals: WallTotals) -> list[tuple[str, int, str]]:
    """Return the counters: name, number, and how it is drawn if it is not 0."""
    phases = [one.card.phase for one in matches]
    waiting, preparing = sum(one in _WAITING for one in phases), sum(one in _PREPARING for one in phases)
    return [
        ("need attention", count_urgent(matches), "bad"),
        ("in play", len(phases) - waiting - preparing, "good"),
        ("waiting for players", waiting, ""),
        ("getting a server", preparing, ""),
        ("ended in the last hour", totals.ended.ended, ""),
        ("failed in the last hour", totals.ended.failed, "bad"),
    ]
