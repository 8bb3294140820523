"""Render the timeline of a match as lines of text in two lists, the feed and the chat, with the newest line first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from matchpod.console.charts.round_strip import REASONS
from matchpod.console.rendering import fragment
from matchpod.console.requested_actions import field_words
from matchpod.core.match.actions import ActionState, ActionType, label_of
from matchpod.core.stored.stored_json import StoredReader, UnreadableError
from matchpod.core.views import timeline_items

KINDS: Final = {
    "fights": "kills and deaths",
    "bomb": "bomb",
    "rounds": "rounds",
    "players": "joins and leaves",
    "pauses": "pauses, restores and actions",
    "leads": "anti-cheat leads",
}
"""The kinds of lines that users can hide, with their labels."""
CHAT: Final = "chat"
"""The kind of the lines that are shown in the chat, and not in the feed."""
MAX_APART: Final = 8
"""Maximum distance, in items, between a kill and its assist. A server logs a kill and its few assists consecutively."""

_KIND_OF: Final[dict[type, str]] = {
    timeline_items.KillItem: "fights",
    timeline_items.DeathItem: "fights",
    timeline_items.AssistItem: "fights",
    timeline_items.BombPlantedItem: "bomb",
    timeline_items.BombDefusedItem: "bomb",
    timeline_items.BombExplodedItem: "bomb",
    timeline_items.ChatItem: CHAT,
    timeline_items.PlayerConnectedItem: "players",
    timeline_items.PlayerDisconnectedItem: "players",
    timeline_items.PausedItem: "pauses",
    timeline_items.UnpausedItem: "pauses",
    timeline_items.RoundRestoredItem: "pauses",
    timeline_items.AntiCheatItem: "leads",
    timeline_items.ActionItem: "pauses",
}

_ITEM: Final = StoredReader[timeline_items.TimelineItem](timeline_items.TimelineItem)

_log = logging.getLogger(__name__)


def read_items(map_id: str, found: Iterable[tuple[int, bytes]]) -> list[timeline_items.TimelineItem]:
    """Decode stored items, given as pairs of number and JSON. Items that this version cannot read are left out."""
    items: list[timeline_items.TimelineItem] = []
    skipped = 0
    for seq, line in found:
        try:
            items.append(_ITEM.read(line, seq=seq))
        except UnreadableError:
            skipped += 1
    if skipped:
        _log.warning("timeline items of another version skipped", extra={"map_id": map_id, "count": skipped})
    return items


def kind_of(item: timeline_items.TimelineItem) -> str:
    """Return the kind of the line for an item; `rounds` unless the item's type has another kind."""
    return _KIND_OF.get(type(item), "rounds")


def type_of(item: timeline_items.TimelineItem) -> str:
    return str(item.__struct_config__.tag)


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A timeline item that is shown as a line. Assists are shown in the line of their kill."""

    map_number: int
    item: timeline_items.TimelineItem
    assists: tuple[timeline_items.AssistItem, ...] = ()

    @property
    def id(self) -> str:
        """Id of the HTML element with the line."""
        return f"line-{self.map_number}-{self.item.seq}"

    @property
    def is_chat(self) -> bool:
        """True for a message that a player wrote, or that an admin wrote and that was shown to the players."""
        item = self.item
        if isinstance(item, timeline_items.ActionItem):
            return item.action == ActionType.SAY and item.state == ActionState.DONE
        return kind_of(item) == CHAT


def feed_entries(
    items: Iterable[tuple[int, timeline_items.TimelineItem]], before: Sequence[FeedEntry] = ()
) -> tuple[list[FeedEntry], list[FeedEntry]]:
    """Return the entries for new items, and those entries in `before` that changed because an assist was added.

    `items` are pairs of map number and item, in order. `before` contains the entries that precede them.
    """
    entries = list(before[-MAX_APART:])
    known, changed = len(entries), set()
    for number, item in items:
        at = _kill_of(entries, number, item) if isinstance(item, timeline_items.AssistItem) else None
        if at is None or not isinstance(item, timeline_items.AssistItem):
            entries.append(FeedEntry(map_number=number, item=item))
            continue
        entries[at] = msgspec.structs.replace(entries[at], assists=(*entries[at].assists, item))
        changed.add(at)
    return entries[known:], [entries[at] for at in sorted(changed) if at < known]


def _kill_of(entries: Sequence[FeedEntry], number: int, assist: timeline_items.AssistItem) -> int | None:
    """Return the index of the newest kill with the assist's victim and map in the last MAX_APART entries, or None."""
    for at in range(len(entries) - 1, max(-1, len(entries) - 1 - MAX_APART), -1):
        item = entries[at].item
        is_of_map = entries[at].map_number == number
        if is_of_map and isinstance(item, timeline_items.KillItem) and item.victim == assist.victim:
            return at
    return None


def feed_line(
    entry: FeedEntry,
    names: tuple[str, str],
    people: Mapping[str, str] = MappingProxyType({}),
    *,
    has_id: bool = True,
    has_rounds: bool = True,
) -> bytes:
    """Return the HTML element of an entry; `names` contains the team names, `people` the player names by id.

    With `has_id`, the element has an id, so that scripts can replace it. Without `has_rounds`, as in a deathmatch, the
    round is not shown.
    """
    item = entry.item
    words = _words(item, names, people)
    return fragment(
        "feed.html",
        "line",
        item,
        type_of(item),
        kind=kind_of(item),
        map_number=entry.map_number,
        names=names,
        words=words,
        assists=entry.assists,
        id=entry.id if has_id else "",
        is_chat=entry.is_chat,
        has_rounds=has_rounds,
    )


def _words(item: timeline_items.TimelineItem, names: tuple[str, str], people: Mapping[str, str]) -> tuple[str, ...]:
    """Return the label and the fields of an action, or why a round ended, in words; empty for other items."""
    match item:
        case timeline_items.ActionItem():
            return label_of(item.action), *field_words(item.fields, names, people)
        case timeline_items.RoundEndItem():
            return (REASONS[item.reason][0],)
        case _:
            return ()
