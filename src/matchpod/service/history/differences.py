"""What differs between two histories of one match? One value a field, in the words of the API.

Players and detections are compared by who they are, not by where they stand. What a log cannot change (ids, the name
of the server) is not compared. A stored list that cannot be read differs as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.core.result import iso_time
from matchpod.storage.history import MapRow, MapStats, MatchHistory, SeriesRow

_FIXED: Final = frozenset({"id", "series_id", "server_id", "org_id", "server_name", "map_number"})
_NAME_OF_FIELD: Final = {"sort_ms": "sortedAt"}
_TIME_SUFFIX: Final = "_at_ms"

_Entry = Mapping[str, object]
_ENTRIES: Final = msgspec.json.Decoder(list[dict[str, object]])
_NOTHING: Final = b"[]"


class Part(StrEnum):
    """Where something differs."""

    SERIES = "series"
    MAP = "map"
    PLAYERS = "players"
    LEADERBOARD = "leaderboard"
    ANTI_CHEAT = "antiCheat"


_KEYS: Final[Mapping[Part, tuple[str, ...]]] = {
    Part.PLAYERS: ("steamId",),
    Part.LEADERBOARD: ("steamId",),
    # A match keeps one detection of a player, kind and round.
    Part.ANTI_CHEAT: ("steamId", "type", "roundNumber"),
}


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One field that differs, or (without a field) a whole that is new or gone; unset is what is not there."""

    part: Part
    map_number: int | None = None
    """None for the series."""
    steam_id: str | None = None
    name: str | None = None
    """The player's."""
    field: str | None = None
    old: object = msgspec.UNSET
    new: object = msgspec.UNSET


def compare(old: MatchHistory, new: MatchHistory) -> list[Difference]:
    """Everything that differs, map by map, then the series."""
    rows = {row.id: row for row in old.maps}
    stats = {one.map_id: one for one in old.stats}
    new_stats = {one.map_id: one for one in new.stats}
    found: list[Difference] = []
    for row in new.maps:
        before = rows.get(row.id)
        if before is None:
            found.append(Difference(part=Part.MAP, map_number=row.map_number, new=_columns(row)))
        else:
            found += _fields(_columns(before), _columns(row), Difference(part=Part.MAP, map_number=row.map_number))
            found += _statistics(stats.get(row.id), new_stats.get(row.id), row.map_number)
    return found + _series(old.series, new.series)


def _series(old: SeriesRow | None, new: SeriesRow | None) -> list[Difference]:
    whole = Difference(part=Part.SERIES)
    if new is None:
        return []
    if old is None:
        return [msgspec.structs.replace(whole, new=_columns(new))]
    return list(_fields(_columns(old), _columns(new), whole))


def _statistics(old: MapStats | None, new: MapStats | None, map_number: int) -> Iterator[Difference]:
    for part in _KEYS:
        written, after = _written(part, old), _ENTRIES.decode(_written(part, new))
        whole = Difference(part=part, map_number=map_number)
        before = _entries(written)
        if before is None:
            yield msgspec.structs.replace(whole, field="entries", old=written.decode(errors="replace"), new=after)
            continue
        yield from _listed(_by_key(before, _KEYS[part]), _by_key(after, _KEYS[part]), whole)
        if before != after and sorted(map(str, before)) == sorted(map(str, after)):
            yield msgspec.structs.replace(whole, field="order", old=_order(before), new=_order(after))


def _written(part: Part, stats: MapStats | None) -> bytes:
    if stats is None:
        return _NOTHING
    match part:
        case Part.PLAYERS:
            return stats.players
        case Part.LEADERBOARD:
            return stats.leaderboard
        case _:
            return stats.anti_cheat


def _entries(written: bytes) -> list[dict[str, object]] | None:
    """A list as it was stored; None where somebody left something else in its place."""
    try:
        return _ENTRIES.decode(written)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _listed(old: Mapping[object, _Entry], new: Mapping[object, _Entry], whole: Difference) -> Iterator[Difference]:
    """What differs between two lists; those who are in both come first, as the new list has them."""
    for key in (*new, *(key for key in old if key not in new)):
        before, after = old.get(key), new.get(key)
        one = _of_player(whole, after or before or {})
        if before is None or after is None:
            yield msgspec.structs.replace(
                one,
                old=msgspec.UNSET if before is None else before,
                new=msgspec.UNSET if after is None else after,
            )
        else:
            yield from _fields(_flat(before), _flat(after), one)


def _fields(old: _Entry, new: _Entry, whole: Difference) -> Iterator[Difference]:
    for name in (*new, *(name for name in old if name not in new)):
        before, after = old.get(name, msgspec.UNSET), new.get(name, msgspec.UNSET)
        if before != after:
            yield msgspec.structs.replace(whole, field=name, old=before, new=after)


def _of_player(whole: Difference, entry: _Entry) -> Difference:
    steam_id, name = entry.get("steamId"), entry.get("name")
    return msgspec.structs.replace(
        whole,
        steam_id=steam_id if isinstance(steam_id, str) else None,
        name=name if isinstance(name, str) else None,
    )


def _by_key(entries: Sequence[_Entry], fields: tuple[str, ...]) -> dict[object, _Entry]:
    keyed: dict[object, _Entry] = {}
    for entry in entries:
        key = tuple(str(entry.get(field)) for field in fields)
        while key in keyed:  # what an older version wrote may hold one twice
            key = (*key, "again")
        keyed[key] = entry
    return keyed


def _order(entries: Sequence[_Entry]) -> list[object]:
    return [entry.get("steamId") for entry in entries]


def _flat(entry: _Entry, before: str = "") -> dict[str, object]:
    """The entry with the members of nested objects under names like `extraStats.aces`."""
    flat: dict[str, object] = {}
    for name, value in entry.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def _columns(row: MapRow | SeriesRow) -> dict[str, object]:
    """What a log can change of a row, named and written as callers see it."""
    columns: dict[str, object] = {}
    for name, value in msgspec.structs.asdict(row).items():
        if name in _FIXED:
            continue
        if name.endswith(_TIME_SUFFIX):
            columns[_camel(name.removesuffix("_ms"))] = None if value is None else iso_time(value)
        else:
            columns[_NAME_OF_FIELD.get(name) or _camel(name.removesuffix("_s"))] = value
    return columns


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
