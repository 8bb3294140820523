"""List the differences between two histories of a match, field by field, with the field names of the API.

Players and detections are matched by key, not by position. Fields that do not depend on the log (ids, the server name)
are not compared. A stored list that cannot be decoded is reported as one difference.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.service.common.row_views import time_text
from matchpod.storage.history import MapRounds, MapRow, MapStats, MatchHistory, SeriesRow

_NOT_COMPARED: Final = frozenset({"id", "series_id", "server_id", "org_id", "server_name", "map_number"})
_API_NAMES: Final = {"sort_ms": "sortedAt", "is_complete": "complete", "is_needed": "needed"}
_TIME_SUFFIX: Final = "_at_ms"

_Entry = Mapping[str, object]
_ENTRIES: Final = msgspec.json.Decoder(list[dict[str, object]])


class DifferencePart(StrEnum):
    """The part of a history that differs."""

    SERIES = "series"
    MAP = "map"
    PLAYERS = "players"
    LEADERBOARD = "leaderboard"
    ANTI_CHEAT = "antiCheat"
    ROUNDS = "rounds"


_KEYS: Final[Mapping[DifferencePart, tuple[str, ...]]] = {
    DifferencePart.PLAYERS: ("steamId",),
    DifferencePart.LEADERBOARD: ("steamId",),
    # A map has at most one detection per player, type and round.
    DifferencePart.ANTI_CHEAT: ("steamId", "type", "roundNumber"),
}


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A field that differs or, if `field` is None, an entry that was added or removed; a missing value is unset."""

    part: DifferencePart
    map_number: int | None = None
    """None if the series differs."""
    steam_id: str | None = None
    name: str | None = None
    """The name of the player."""
    field: str | None = None
    old: object = msgspec.UNSET
    new: object = msgspec.UNSET


def compare(old: MatchHistory, new: MatchHistory) -> list[Difference]:
    """All differences, map by map, then those of the series."""
    rows = {row.id: row for row in old.maps}
    stats = {one.map_id: one for one in old.stats}
    new_stats = {one.map_id: one for one in new.stats}
    rounds = {one.map_id: one for one in old.rounds}
    new_rounds = {one.map_id: one for one in new.rounds}
    found: list[Difference] = []
    for row in new.maps:
        before = rows.get(row.id)
        if before is None:
            found.append(Difference(part=DifferencePart.MAP, map_number=row.map_number, new=_columns(row)))
        else:
            found += _fields(
                _columns(before), _columns(row), Difference(part=DifferencePart.MAP, map_number=row.map_number)
            )
            found += _statistics(stats.get(row.id), new_stats.get(row.id), row.map_number)
            found += _rounds(rounds.get(row.id), new_rounds.get(row.id), row.map_number)
    return found + _series(old.series, new.series)


def _series(old: SeriesRow | None, new: SeriesRow | None) -> list[Difference]:
    template = Difference(part=DifferencePart.SERIES)
    if new is None:
        return []
    if old is None:
        return [msgspec.structs.replace(template, new=_columns(new))]
    return list(_fields(_columns(old), _columns(new), template))


def _statistics(old: MapStats | None, new: MapStats | None, map_number: int) -> Iterator[Difference]:
    for part in _KEYS:
        stored, after = _encoded(part, old), _ENTRIES.decode(_encoded(part, new))
        template = Difference(part=part, map_number=map_number)
        before = _decode(stored)
        if before is None:
            yield msgspec.structs.replace(template, field="entries", old=stored.decode(errors="replace"), new=after)
            continue
        yield from _compare_entries(_by_key(before, _KEYS[part]), _by_key(after, _KEYS[part]), template)
        if before != after and sorted(map(str, before)) == sorted(map(str, after)):
            yield msgspec.structs.replace(template, field="order", old=_order(before), new=_order(after))


def _rounds(old: MapRounds | None, new: MapRounds | None, map_number: int) -> Iterator[Difference]:
    """The differences between the rounds of a map, named such as `3.winner`; if none were stored, only their number."""
    template = Difference(part=DifferencePart.ROUNDS, map_number=map_number)
    after = [] if new is None else _ENTRIES.decode(new.unpack())
    before = None if old is None else _unpack(old)
    if before is None:
        if new is not None:
            yield msgspec.structs.replace(template, field="count", old=None, new=len(after))
        return
    yield from _fields(_flatten(_by_number(before)), _flatten(_by_number(after)), template)


def _by_number(rounds: Sequence[_Entry]) -> _Entry:
    return {str(one.get("number")): one for one in rounds}


def _unpack(stored: MapRounds) -> list[dict[str, object]] | None:
    """Decode stored rounds; None if they are damaged."""
    try:
        return _decode(stored.unpack())
    except zlib.error:
        return None


def _encoded(part: DifferencePart, stats: MapStats | None) -> bytes:
    if stats is None:
        return b"[]"
    lists = {
        DifferencePart.PLAYERS: stats.players,
        DifferencePart.LEADERBOARD: stats.leaderboard,
        DifferencePart.ANTI_CHEAT: stats.anti_cheat,
    }
    return lists[part]


def _decode(stored: bytes) -> list[dict[str, object]] | None:
    """Decode a stored list; None if it is damaged."""
    try:
        return _ENTRIES.decode(stored)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _compare_entries(
    old: Mapping[object, _Entry], new: Mapping[object, _Entry], template: Difference
) -> Iterator[Difference]:
    """The differences between two lists, in the order of the new list; removed entries come last."""
    for key in (*new, *(key for key in old if key not in new)):
        before, after = old.get(key), new.get(key)
        one = _with_player(template, after or before or {})
        if before is None or after is None:
            yield msgspec.structs.replace(one, old=old.get(key, msgspec.UNSET), new=new.get(key, msgspec.UNSET))
        else:
            yield from _fields(_flatten(before), _flatten(after), one)


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
    """The entry with the members of nested objects under names such as `extraStats.aces`."""
    flat: dict[str, object] = {}
    for name, value in entry.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _columns(row: MapRow | SeriesRow) -> dict[str, object]:
    """The compared columns of a row, named and formatted as in the API."""
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
