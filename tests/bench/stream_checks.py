"""Did readers of streams get what can be polled, and how long after it was stored? Worked out when all is over."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.stream_matches import Match
from tests.bench.stream_readers import StreamReader, Told

Published = Mapping[str, Sequence[float]]
"""When each item of a map was handed to its readers, by the id of the map."""


def read_notes(file: Path) -> Published:
    """What a watched service wrote down."""
    published: dict[str, array[float]] = {}
    for line in file.read_text().splitlines():
        when, map_id, first_seq, count = line.split()
        times = published.setdefault(map_id, array("d"))
        if len(times) + 1 == int(first_seq):
            times.extend([float(when)] * int(count))
    return published


def differences(
    readers: Sequence[StreamReader], matches: Sequence[Match], polled: Mapping[str, list[bytes]]
) -> list[str]:
    """What is wrong with what readers got; nothing, when all is well."""
    alone = {map_id: Told.of(items) for map_id, items in polled.items()}
    among = {
        map_id: Told.of([_named(item, map_id, number) for item in polled[map_id]])
        for match in matches
        for number, map_id in enumerate(match.maps, 1)
    }
    of_server = {match.server_id: match.maps for match in matches}
    faults = []
    for reader in readers:
        if not reader.is_over:
            faults.append(f"{reader.path} did not come to its end")
        if reader.names_maps:
            expected = {map_id: among[map_id] for map_id in of_server[reader.path.split("/")[4]]}
        else:
            expected = {"": alone[reader.path.split("/")[5]]}
        faults += _faults_of(reader, expected)
    return faults


def _faults_of(reader: StreamReader, expected: Mapping[str, Told]) -> Iterator[str]:
    for name, whole in expected.items():
        told = reader.maps.get(name.encode(), Told())
        if (told.count, told.sum) != (whole.count, whole.sum):
            yield f"{reader.path} {name} told {told.count} events; {whole.count} were polled"
    if unknown := set(reader.maps) - {name.encode() for name in expected}:
        yield f"{reader.path} told of {unknown}"


def _named(item: bytes, map_id: str, number: int) -> bytes:
    return b'{"mapId":"%b","mapNumber":%d,%b' % (map_id.encode(), number, item[1:])


def most_at_once(matches: Sequence[Match], polled: Mapping[str, list[bytes]], published: Published) -> int:
    """The most matches that were live at the same time, by when their first and last maps were told to begin and end."""
    changes: list[tuple[float, int]] = []
    for match in matches:
        times: list[float] = []
        for map_id in match.maps:
            for item, when in zip(polled[map_id], published.get(map_id, ()), strict=False):
                if item.startswith((b'{"type":"map_live"', b'{"type":"map_end"')):
                    times.append(when)
        if times:
            changes += [(min(times), 1), (max(times), -1)]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


@dataclass
class Delays:
    """How long events were under way, of those that were published while their reader's connection was open."""

    sorted_ms: Sequence[float] = ()
    events_a_piece: float = 0.0
    """How many came together."""

    @classmethod
    def of(cls, readers: Sequence[StreamReader], published: Published) -> Delays:
        """Of all events that all readers got."""
        delays: list[float] = []
        pieces = 0
        for reader in readers:
            for name, told in reader.maps.items():
                times = published[name.decode() or reader.path.split("/")[5]]
                pieces += len(told.arrivals) // 3
                delays += _delays(told.arrivals, times)
        return cls(sorted(delays), sum(len(reader) for reader in readers) / max(1, pieces))

    def at(self, share: float) -> float:
        """The delay that this share of the events does not exceed, in ms."""
        return self.sorted_ms[min(len(self.sorted_ms) - 1, int(share * len(self.sorted_ms)))] if self.sorted_ms else 0.0


def _delays(arrivals: Sequence[float], published: Sequence[float]) -> Iterator[float]:
    had = 0
    for index in range(0, len(arrivals), 3):
        came_s, count, opened_s = arrivals[index], int(arrivals[index + 1]), arrivals[index + 2]
        for seq in range(max(had, bisect_left(published, opened_s)), count):
            yield (came_s - published[seq]) * 1000
        had = count
