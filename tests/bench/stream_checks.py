"""Check that stream readers received what can be polled, and compute the delays, after all matches are over."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.stream_matches import Match
from tests.bench.stream_readers import Received, StreamReader

Published = Mapping[str, Sequence[float]]
"""When each item of a map was published to its readers, by map id."""


def read_publications(file: Path) -> Published:
    """Read the publication times that the service recorded."""
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
    """Return the streams that did not end, and the differences between what readers received and what was polled."""
    by_map_stream = {map_id: Received.of(items) for map_id, items in polled.items()}
    by_server_stream = {
        map_id: Received.of([_with_map_fields(item, map_id, number) for item in polled[map_id]])
        for match in matches
        for number, map_id in enumerate(match.maps, 1)
    }
    maps_of_server = {match.server_id: match.maps for match in matches}
    faults = []
    for reader in readers:
        if not reader.is_finished:
            faults.append(f"{reader.path}: the stream did not end")
        if reader.names_maps:
            expected = {map_id: by_server_stream[map_id] for map_id in maps_of_server[reader.path.split("/")[4]]}
        else:
            expected = {"": by_map_stream[reader.path.split("/")[5]]}
        faults += _faults_of(reader, expected)
    return faults


def _faults_of(reader: StreamReader, expected: Mapping[str, Received]) -> Iterator[str]:
    for name, whole in expected.items():
        received = reader.maps.get(name.encode(), Received())
        if (received.count, received.sum) != (whole.count, whole.sum):
            yield f"{reader.path} {name}: {received.count} events received, {whole.count} polled"
    if unknown := set(reader.maps) - {name.encode() for name in expected}:
        yield f"{reader.path}: events of other maps: {unknown}"


def _with_map_fields(item: bytes, map_id: str, number: int) -> bytes:
    return b'{"mapId":"%b","mapNumber":%d,%b' % (map_id.encode(), number, item[1:])


def max_concurrent(matches: Sequence[Match], polled: Mapping[str, list[bytes]], published: Published) -> int:
    """Return the maximum number of matches that were live at the same time, by the times of map starts and ends."""
    changes: list[tuple[float, int]] = []
    for match in matches:
        times: list[float] = []
        for map_id in match.maps:
            for item, when in zip(polled[map_id], published.get(map_id, ()), strict=False):
                if item.startswith((b'{"type":"map_live"', b'{"type":"map_end"')):
                    times.append(when)
        if times:
            changes += [(min(times), 1), (max(times), -1)]
    highest = now = 0
    for _, change in sorted(changes):
        now += change
        highest = max(highest, now)
    return highest


@dataclass
class Delays:
    """Delivery delays of events that were published while the reader was connected."""

    sorted_ms: Sequence[float] = ()
    events_per_chunk: float = 0.0
    """Events per received chunk, on average."""

    @classmethod
    def of(cls, readers: Sequence[StreamReader], published: Published) -> Delays:
        """Compute the delays for all readers."""
        delays: list[float] = []
        chunks = 0
        for reader in readers:
            for name, received in reader.maps.items():
                times = published[name.decode() or reader.path.split("/")[5]]
                chunks += len(received.arrivals) // 3
                delays += _delays(received.arrivals, times)
        return cls(sorted(delays), sum(len(reader) for reader in readers) / max(1, chunks))

    def at(self, share: float) -> float:
        """Return the delay in ms that this share of the events does not exceed."""
        return self.sorted_ms[min(len(self.sorted_ms) - 1, int(share * len(self.sorted_ms)))] if self.sorted_ms else 0.0


def _delays(arrivals: Sequence[float], published: Sequence[float]) -> Iterator[float]:
    previous = 0
    for index in range(0, len(arrivals), 3):
        arrived_s, count, opened_s = arrivals[index], int(arrivals[index + 1]), arrivals[index + 2]
        for seq in range(max(previous, bisect_left(published, opened_s)), count):
            yield (arrived_s - published[seq]) * 1000
        previous = count
