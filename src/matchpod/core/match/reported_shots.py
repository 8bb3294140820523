"""Decide which map a plugin's count of shots belongs to, because the map number in a report may be wrong.

A plugin may report the number of the next map as soon as a map is decided, or still report the number of the previous
map. Counts are used only if they cannot belong to another map; otherwise the shots of that map stay unknown.
"""

# RULES
# - The counts of earlier maps no longer change, nor do those of a finished last map, except for its last round.
#   A report that contradicts these counts belongs to another map.
# - A map that is not live yet has no shots. A report that names such a map may belong to the current map.
#   It does if it repeats counts of the current map and ends with the current map's last round.
# - A report that names the live map, but has a round that the map has not reached, may belong to the previous map.
#   It does if the last round of that map has no count yet, and the report repeats its counts and ends with that round.
#   If the last round of the previous map has a count, the report is ahead of the log and belongs to the live map.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cs2_protocol.game import PlayerId
from matchpod.core.events import ShotsCounted
from matchpod.core.match.played_map import MapStatus, PlayedMap

Counts = Mapping[int, dict[PlayerId, tuple[int, int]]]
"""Per round and player: (shots fired, shots hit). An empty dict means that the round has not been counted yet."""


class ReportedShots(msgspec.Struct, omit_defaults=True):
    """The state that is needed to assign the shot reports of a match to its maps."""

    has_counter: bool = False
    """True once a plugin has reported that it counts shots."""
    newest: dict[int, int] = {}
    """Highest sequence number of the reports, per map number."""
    final_map: int | None = None
    """Number of the map whose newest report was its final report."""
    misplaced: int = 0
    """Number of reports that were ignored because their map is uncertain. Reports without counts are not included."""

    def read(
        self,
        maps: Sequence[PlayedMap],
        counts: Counts,
        *,
        at_ms: int,
        map_number: int,
        sequence: int | None = None,
        is_final: bool = False,
    ) -> list[ShotsCounted]:
        """Return the new counts of a report as events of the map they belong to; empty if the map is uncertain."""
        self.has_counter = True
        counted = {number: players for number, players in counts.items() if players}
        played = _map_of(maps, map_number, counted)
        if played is None:
            self.misplaced += bool(counted)
            return []
        if sequence is not None:
            if sequence <= self.newest.get(played.number, -1):
                return []  # repeated, or overtaken by a later report
            self.newest[played.number] = sequence
        if is_final or self.final_map == played.number:
            self.final_map = played.number if is_final else None
        if played.status is not MapStatus.LIVE:
            counts = {number: players for number, players in counted.items() if number not in _settled(maps, played)}
        elif sequence is not None:  # rounds missing from the report were removed by a restored backup
            counts = {number: {} for number in played.ledger.shots} | dict(counts)
        is_newest = sequence is not None
        return [ShotsCounted(at_ms, played.number, number, counts[number], is_newest=is_newest) for number in counts]

    def awaits_last_round(self, played: PlayedMap) -> bool:
        """True if a plugin counts shots, and may still report the last round of a map that is over."""
        return self.has_counter and self.final_map != played.number and not _has_last_count(played)


def _map_of(maps: Sequence[PlayedMap], named: int, counted: Counts) -> PlayedMap | None:
    current = maps[-1]
    if named > current.number:
        return current if named == current.number + 1 and _continues(current, counted) else None
    played = maps[named - 1]
    if played.status is MapStatus.UPCOMING:
        return None
    if played.status is MapStatus.LIVE:
        before = maps[-2] if len(maps) > 1 else None
        if before is None or _has_last_count(before) or max(counted, default=0) <= _last_round(current):
            return current
        return before if _continues(before, counted) else None
    settled = _settled(maps, played)
    if not _agrees(settled, counted):
        return None
    may_be_current = played is not current and not settled.keys() & counted and max(counted, default=0) > 0
    return None if may_be_current and max(counted) <= _last_round(current) else played


def _continues(played: PlayedMap, counted: Counts) -> bool:
    """True if a report repeats counts of earlier rounds of this map and ends with its last round."""
    last = _last_round(played)
    known = {number: shots for number, shots in _known(played).items() if number < last and number in counted}
    has_shots = any(fired for shots in known.values() for fired, _ in shots.values())
    return has_shots and max(counted) == last and _agrees(known, counted)


def _settled(maps: Sequence[PlayedMap], played: PlayedMap) -> Counts:
    """Return those counts of a finished map that can no longer change."""
    last = _last_round(played) if played is maps[-1] else None
    return {number: shots for number, shots in _known(played).items() if number != last}


def _agrees(known: Counts, counted: Counts) -> bool:
    # A report may list more players, because players who are not on the roster are not stored.
    return all(shots.items() <= counted[number].items() for number, shots in known.items() if number in counted)


def _known(played: PlayedMap) -> Counts:
    counted = ((number, shots) for number, shots in played.ledger.shots.items() if shots)
    return {number: {who: (count.fired, count.hit) for who, count in shots.items()} for number, shots in counted}


def _has_last_count(played: PlayedMap) -> bool:
    last = _last_round(played)
    return not last or bool(played.ledger.shots.get(last))


def _last_round(played: PlayedMap) -> int:
    """Return the number of the latest round in the log; 0 if the log has no round."""
    records = played.ledger.records()
    return records[-1].number if records else 0
