"""Render the wall, which shows an organization's matches in groups. After a change, each fragment is rendered once."""

from __future__ import annotations

import asyncio
import hashlib
import re
from bisect import bisect_left
from collections import Counter as Counts
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.page_updates import added, inserted, removed, swapped
from matchpod.console.rendering import fragment, macro
from matchpod.core.views.attention import Urgency
from matchpod.core.views.progress import PlayerState
from matchpod.core.views.wall_groups import WallGroup
from matchpod.service.reading.wall import EndedMatch, Overview, WallCard, WallCards, WallTotals
from matchpod.service.regions.alerts import AlertKind, RegionAlert

PARTS: Final = "wall_parts.html"
TOTALS_TICKS: Final = 5
"""Interval, in ticks, at which the totals are read. They change slowly, and reading them is expensive."""

TURN: Final = 20
"""Number of cards rendered before other tasks may run. Rendering them takes a few milliseconds."""

NAMES: Final = {
    WallGroup.IN_PLAY: ("in play", "in play", "good"),
    WallGroup.WAITING: ("waiting", "waiting for players", ""),
    WallGroup.STARTING: ("starting", "starting a server", ""),
    WallGroup.QUEUED: ("queued", "waiting for a free server", ""),
    WallGroup.FAILED: ("failed", "failed, until they are acknowledged", "bad"),
    WallGroup.CANCELED: ("canceled", "canceled by hand in the last 10 minutes", ""),
    WallGroup.FINISHED: ("finished", "finished in the last 10 minutes", ""),
}
"""Short name, full name and counter style of each group."""

STRIP: Final = 8
"""Maximum number of matches in the attention strip. Further matches are shown through a link, and are marked in their
groups."""


class WallView(StrEnum):
    """The view of the wall: a table with a row per match, or cards."""

    TABLE = "table"
    CARDS = "cards"


_OPENINGS: Final = {
    WallView.TABLE: b'<div id="cards" class="match-lines" role="rowgroup">',
    WallView.CARDS: b'<div id="cards" class="cards">',
}


class WallCounter(msgspec.Struct, frozen=True):
    """The counter of a group: its number of matches, and the style of the number if it is not 0."""

    group: WallGroup
    name: str
    meaning: str
    count: int
    tone: str


class Wall:
    """The wall of an organization."""

    def __init__(
        self, overview: Overview, org_id: str, grouped_by: str = "", *, view: WallView = WallView.TABLE
    ) -> None:
        """Order the matches by state. If `grouped_by` names a label, order them by its value first."""
        self.view = view
        self._overview = overview
        self._org_id = org_id
        self._grouped_by = grouped_by
        self._ticks = 0
        self._totals: WallTotals | None = None
        self._matches: dict[str, WallCard] = {}
        self._cards: dict[str, bytes] = {}
        self._around: dict[str, bytes] = {}
        self._progress: dict[str, tuple[int, int]] = {}
        self._strip: tuple[object, bytes] = (None, b"")
        """The values from which the attention strip was rendered, and the strip."""

    @property
    def cards(self) -> Markup:
        """The rows or cards of all matches, with group headings."""
        return Markup(self._all_cards().decode())

    def part(self, name: str) -> Markup:
        """Return the fragment with this name; the cards are not among these fragments."""
        return Markup(self._around[name].decode())

    async def changes(self) -> bytes:
        found = await self._overview.cards(self._org_id, self._matches)
        if self._totals is None or self._ticks % TOTALS_TICKS == 0:
            self._totals = await self._overview.totals(self._org_id)
        if self._grouped_by:
            await self._read_progress(found.cards)
        self._ticks += 1
        changed = self._change_around(found, self._totals)
        return changed + await self._change_cards(found.cards)

    def everything(self) -> bytes:
        return b"".join(swapped(part) for part in (*self._around.values(), self._all_cards()))

    def _all_cards(self) -> bytes:
        return _OPENINGS[self.view] + b"".join(self._cards.values()) + b"</div>"

    def _change_around(self, found: WallCards, totals: WallTotals) -> bytes:
        urgent = [one for one in found.cards if one.needs_attention]
        open_ones = sum(one.claim is None for one in urgent) + sum(alert.is_urgent for alert in found.alerts)
        around = {
            "groupings": fragment(PARTS, "groupings", label_names(found.cards, self._grouped_by), self._grouped_by),
            "counters": fragment(PARTS, "counters", count_groups(found.cards)),
            "attention": fragment(PARTS, "attention", open_ones),
            "strip": self._render_strip(found.alerts, urgent, totals),
            "older": fragment(PARTS, "older", found.older_ms),
            "empty": fragment(PARTS, "empty", not found.cards),
            "beside": fragment(PARTS, "beside", totals, failing_regions(found.alerts)),
        }
        changed = [swapped(part) for name, part in around.items() if self._around.get(name) != part]
        self._around = around
        return b"".join(changed)

    async def _read_progress(self, cards: Sequence[WallCard]) -> None:
        """Read the progress of all values of the label, if the interval has passed or the values have changed."""
        values = {value for value, _ in by_label(cards, self._grouped_by) if value is not None}
        if values and (self._ticks % TOTALS_TICKS == 0 or not values <= self._progress.keys()):
            self._progress = await self._overview.label_progress(self._org_id, self._grouped_by, sorted(values))

    def _render_strip(self, alerts: Sequence[RegionAlert], urgent: Sequence[WallCard], totals: WallTotals) -> bytes:
        """Return the attention strip. If nothing in it has changed, return the same object as before."""
        ordered = sorted(urgent, key=lambda one: (one.claim is not None, -urgency(one), one.since_ms, one.server_id))
        failed = tuple(one.server_id for one in urgent if isinstance(one, EndedMatch))
        shown = (alerts, ordered[:STRIP], failed, len(ordered) - STRIP, totals.given_up)
        if self._strip[0] != shown:
            self._strip = (shown, fragment(PARTS, "strip", *shown))
        return self._strip[1]

    async def _change_cards(self, matches: Sequence[WallCard]) -> bytes:
        cards: dict[str, bytes] = {}
        rendered = 0
        for group, heading, members in self._groups(matches):
            if group:
                cards[group] = heading
            for member in members:
                key = member.server_id
                if self._matches.get(key) == member:
                    cards[key] = self._cards[key]
                    continue
                cards[key] = self._card(member)
                rendered += 1
                if rendered % TURN == 0:
                    await asyncio.sleep(0)  # let other tasks (log posts, requests) run
        changed = card_changes(self._cards, cards)
        self._matches, self._cards = {match.server_id: match for match in matches}, cards
        return changed

    def _card(self, member: WallCard) -> bytes:
        return render(member, self.view)

    def _groups(self, matches: Sequence[WallCard]) -> Iterator[tuple[str, bytes, list[WallCard]]]:
        """Yield the groups that have matches, each with its key, its heading and its matches.

        A table has no headings for states, because each row shows the match's state.
        """
        if self._grouped_by:
            for value, members in by_label(matches, self._grouped_by):
                key, counts = label_key(value), count_groups(members)
                about = (value, counts, self._progress.get(value or ""))
                yield key, fragment(PARTS, "label_heading", self.view, key, self._grouped_by, *about), members
        elif self.view is WallView.TABLE:
            yield "", b"", list(matches)
        else:
            for counter, members in _grouped(matches):
                yield f"group-{counter.group}", fragment(PARTS, "heading", counter), members


def failing_regions(alerts: Sequence[RegionAlert]) -> set[str]:
    """Return the regions whose alerts say that servers fail to start. Servers in these regions may still be free."""
    return {alert.region for alert in alerts if alert.kind in (AlertKind.TRIES, AlertKind.FAILED)}


def render(card: WallCard, view: WallView) -> bytes:
    """Render a match as a row of the table or as a card."""
    if isinstance(card, EndedMatch):
        return fragment(PARTS, "ended_line" if view is WallView.TABLE else "ended_card", card)
    if view is WallView.CARDS:
        return fragment(PARTS, "card", card)
    players = tuple(
        (one.state, one.team, "" if one.state is PlayerState.CONNECTED else one.name or one.steam_id)
        for one in card.progress.roster
    )
    return fragment(PARTS, "line", card, _dots(players, card.is_followed))


@lru_cache(maxsize=2048)
def _dots(players: tuple[tuple[PlayerState, Team | None, str], ...], is_followed: bool) -> Markup:
    """Render the dots for players. Only absent players have a name here, so most matches share a cached result."""
    return macro(PARTS, "dots_of_teams", players, is_followed)


def urgency(card: WallCard) -> int:
    """Return how urgently a person should look at a match."""
    return int(Urgency.NOW) if isinstance(card, EndedMatch) else card.urgency


def card_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """Return the changes that turn one list of cards into another: removals, new contents, insertions and moves."""
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
            card = after[key]
            moved.append(added(card, to="cards") if next_kept is None else inserted(card, before=f"card-{next_kept}"))
    return b"".join(changed + moved[::-1])


def _kept(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the longest sequence of keys that both lists have in the same order (longest increasing subsequence)."""
    places = {key: place for place, key in enumerate(old)}
    ends: list[int] = []
    """The lowest place at which a run of each length can end."""
    chain: dict[int, int | None] = {}
    """By place, the previous place of its run; None for the first place."""
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


def count_groups(cards: Sequence[WallCard]) -> list[WallCounter]:
    """Return a counter for every group, in the order of the wall."""
    counts = Counts(card.group for card in cards)
    return [WallCounter(group, name, meaning, counts[group], tone) for group, (name, meaning, tone) in NAMES.items()]


def label_names(cards: Sequence[WallCard], grouped_by: str = "") -> list[str]:
    """Return the names of all labels of these matches, and the label by which the wall is grouped."""
    names = {label.name for card in cards for label in card.shown_labels}
    return sorted({*names, grouped_by} - {""}, key=lambda name: (name.casefold(), name))


def by_label(cards: Sequence[WallCard], name: str) -> list[tuple[str | None, list[WallCard]]]:
    """Return the matches grouped by the value of a label, in natural order; matches without the label come last."""
    groups: defaultdict[str | None, list[WallCard]] = defaultdict(list)
    for card in cards:
        groups[next((label.value for label in card.shown_labels if label.name == name), None)].append(card)
    return sorted(groups.items(), key=lambda group: (group[0] is None, _natural(group[0] or ""), group[0] or ""))


def label_key(value: str | None) -> str:
    """Return a key for a label value that can be part of an element id: label values may contain any characters."""
    return "label" if value is None else f"label-{hashlib.sha256(value.encode()).hexdigest()[:16]}"


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key by which `table 9` comes before `table 10`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text.casefold())
    return [(len(part.lstrip("0")), part.lstrip("0")) if part[0] in "0123456789" else (0, part) for part in parts]


def _grouped(cards: Sequence[WallCard]) -> Iterator[tuple[WallCounter, list[WallCard]]]:
    """Yield each group that has matches, with its matches in their current order."""
    counters = {counter.group: counter for counter in count_groups(cards)}
    for group, members in groupby(cards, lambda card: card.group):
        yield counters[group], list(members)
