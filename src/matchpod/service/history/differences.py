"""Compare two histories of a match field by field, with the field names of the API.

The entries of lists, such as players and detections, are matched by key fields, not by position. Fields that do not
depend on the log (ids, the server name) are not compared. A stored list that cannot be decoded is reported as a single
difference.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.service.row_views import time_text
from matchpod.storage.history import MapRounds, MapRow, MatchHistory, SeriesRow

_NOT_COMPARED: Final = frozenset({"id", "series_id", "server_id", "org_id", "server_name", "map_number"})
_API_NAMES: Final = {"sort_ms": "sortedAt", "is_complete": "complete", "is_needed": "needed"}
_TIME_SUFFIX: Final = "_at_ms"

_Entry = Mapping[str, object]
_ENTRIES: Final = msgspec.json.Decoder(list[_Entry])


class DifferencePart(StrEnum):
    """The part of a history in which a difference was found."""

    SERIES = "series"
    MAP = "map"
    PLAYERS = "players"
    LEADERBOARD = "leaderboard"
    ANTI_CHEAT = "antiCheat"
    ROUNDS = "rounds"


_LISTS: Final[Mapping[DifferencePart, tuple[str, tuple[str, ...]]]] = {
    DifferencePart.PLAYERS: ("players", ("steamId",)),
    DifferencePart.LEADERBOARD: ("leaderboard", ("steamId",)),
    # A map has at most one detection per player, type and round.
    DifferencePart.ANTI_CHEAT: ("anti_cheat", ("steamId", "type", "roundNumber")),
}
"""The compared lists of a map's statistics: the name of the column, and the key fields by which entries are matched."""


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A field that differs or, if `field` is None, a list entry that was added or removed. A missing value is UNSET."""

    part: DifferencePart
    map_number: int | None = None
    """The number of the map; None for a difference in the series."""
    steam_id: str | None = None
    name: str | None = None
    """The name of the player."""
    field: str | None = None
    old: object = msgspec.UNSET
    new: object = msgspec.UNSET


def compare(old: MatchHistory, new: MatchHistory) -> list[Difference]:
    """Return all differences: first those of each map, then those of the series."""
    before, found = _parts(old), list[Difference]()
    for (part, number), after in _parts(new).items():
        if part in (DifferencePart.MAP, DifferencePart.SERIES) or (DifferencePart.MAP, number) in before:
            found += _compare(before.get((part, number), []), after, Difference(part=part, map_number=number))
    return found


def _parts(history: MatchHistory) -> dict[tuple[DifferencePart, int | None], list[_Entry] | bytes | None]:
    """Return the entries of each part of a history, by part and map number.

    A part is None if it is not stored, and bytes if its list cannot be decoded.
    """
    stats, rounds = {row.map_id: row for row in history.stats}, {row.map_id: row for row in history.rounds}
    parts: dict[tuple[DifferencePart, int | None], list[_Entry] | bytes | None] = {}
    for row in history.maps:
        parts[DifferencePart.MAP, row.map_number] = [_columns(row)]
        for part, (column, _) in _LISTS.items():
            stored = getattr(stats[row.id], column) if row.id in stats else b"[]"
            parts[part, row.map_number] = stored if (read := _decode(stored)) is None else read
        parts[DifferencePart.ROUNDS, row.map_number] = _rounds(rounds.get(row.id))
    if history.series is not None:
        parts[DifferencePart.SERIES, None] = [_columns(history.series)]
    return parts


def _rounds(stored: MapRounds | None) -> list[_Entry] | None:
    """Return a single entry with a field per round of the map; None if no rounds are stored or they are damaged."""
    try:
        rounds = None if stored is None else _decode(stored.unpack())
    except zlib.error:
        return None
    return None if rounds is None else [{str(entry.get("number")): entry for entry in rounds}]


def _decode(stored: bytes) -> list[_Entry] | None:
    """Decode a stored list; None if it is damaged."""
    try:
        return _ENTRIES.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _compare(
    old: list[_Entry] | bytes | None, new: list[_Entry] | bytes | None, template: Difference
) -> Iterator[Difference]:
    """Yield the differences of a part, in the order of the new list; removed entries come last."""
    if old is None:
        if isinstance(new, list):
            yield msgspec.structs.replace(template, field="count", old=None, new=len(new[0]))
        return
    if isinstance(old, bytes):
        yield msgspec.structs.replace(template, field="entries", old=old.decode(errors="replace"), new=new)
        return
    assert not isinstance(new, bytes), "what was just computed can be decoded"
    after = [{}] if new is None else new
    _, fields = _LISTS.get(template.part, ("", ()))
    stored, computed = _by_key(old, fields), _by_key(after, fields)
    for key in (*computed, *(key for key in stored if key not in computed)):
        changed = _with_player(template, computed.get(key) or stored.get(key) or {})
        if key in stored and key in computed:
            yield from _fields(_flatten(stored[key]), _flatten(computed[key]), changed)
        else:
            before_after = {"old": stored.get(key, msgspec.UNSET), "new": computed.get(key, msgspec.UNSET)}
            yield msgspec.structs.replace(changed, **before_after)
    if old != after and sorted(map(str, old)) == sorted(map(str, after)):
        yield msgspec.structs.replace(template, field="order", old=_order(old), new=_order(after))


def _fields(old: _Entry, new: _Entry, template: Difference) -> Iterator[Difference]:
    for name in (*new, *(name for name in old if name not in new)):
        before, after = old.get(name, msgspec.UNSET), new.get(name, msgspec.UNSET)
        if before != after:
            yield msgspec.structs.replace(template, field=name, old=before, new=after)


def _with_player(template: Difference, entry: _Entry) -> Difference:
    steam_id, name = entry.get("steamId"), entry.get("name")
    return msgspec.structs.replace(
        template,
        steam_id=steam_id if isinstance(steam_id, str) else None,
        name=name if isinstance(name, str) else None,
    )


def _by_key(entries: Sequence[_Entry], fields: tuple[str, ...]) -> dict[object, _Entry]:
    keyed: dict[object, _Entry] = {}
    for entry in entries:
        key = tuple(str(entry.get(field)) for field in fields)
        while key in keyed:  # older versions may have stored an entry twice
            key = (*key, "again")
        keyed[key] = entry
    return keyed


def _order(entries: Sequence[_Entry]) -> list[object]:
    return [entry.get("steamId") for entry in entries]


def _flatten(entry: _Entry, prefix: str = "") -> dict[str, object]:
    """Return the entry with nested objects flattened: their fields get names such as `extraStats.aces`."""
    flat: dict[str, object] = {}
    for name, value in entry.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _columns(row: MapRow | SeriesRow) -> dict[str, object]:
    """Return the columns of a row that are compared, named and formatted as in the API."""
    columns: dict[str, object] = {}
    for name, value in msgspec.structs.asdict(row).items():
        if name in _NOT_COMPARED:
            continue
        if isinstance(value, bytes):
            columns[_camel(name)] = msgspec.json.decode(value)
        elif name.endswith(_TIME_SUFFIX):
            columns[_camel(name.removesuffix("_ms"))] = time_text(value)
        else:
            columns[_API_NAMES.get(name) or _camel(name.removesuffix("_s"))] = value
    return columns


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
