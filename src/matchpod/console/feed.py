"""The feed of a match: its timeline as lines of text, newest first."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from matchpod.console.rendering import fragment
from matchpod.console.requested_actions import field_words
from matchpod.core.match.actions import label_of
from matchpod.core.stored.stored_json import StoredReader, UnreadableError
from matchpod.core.views import timeline_items

KINDS: Final = {
    "fights": "kills and deaths",
    "bomb": "bomb",
    "rounds": "rounds",
    "chat": "chat",
    "players": "joins and leaves",
    "pauses": "pauses, restores and actions",
    "leads": "anti-cheat leads",
}
"""The kinds of lines that can be hidden, with their labels."""

_KIND_OF: Final[dict[type, str]] = {
    timeline_items.KillItem: "fights",
    timeline_items.DeathItem: "fights",
    timeline_items.AssistItem: "fights",
    timeline_items.BombPlantedItem: "bomb",
    timeline_items.BombDefusedItem: "bomb",
    timeline_items.BombExplodedItem: "bomb",
    timeline_items.ChatItem: "chat",
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
    """Decode stored items, given as numbers and JSON. Those of types that this version does not know are left out."""
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
    """Return the kind of an item; a round is the most common one."""
    return _KIND_OF.get(type(item), "rounds")


def type_of(item: timeline_items.TimelineItem) -> str:
    return str(item.__struct_config__.tag)


def feed_line(
    item: timeline_items.TimelineItem,
    map_number: int,
    names: tuple[str, str],
    people: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return an item as an element of the feed; `names` are those of the teams, `people` those of players by id."""
    words = _action_words(item, names, people) if isinstance(item, timeline_items.ActionItem) else ()
    kind, tag = kind_of(item), type_of(item)
    return fragment("feed.html", "line", item, tag, kind=kind, map_number=map_number, names=names, words=words)


def _action_words(
    item: timeline_items.ActionItem, names: tuple[str, str], people: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what an action is called, and its fields in words."""
    return label_of(item.action), *field_words(item.fields, names, people)
