"""Check that the readers of an organization's stream received every stored event once and in order."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.stream_readers import Received, StreamReader

PATH = "/api/v1/stream?lastEventId=0"
"""The whole stream; the header of a client that reconnects is used instead of the query."""


def stored_lines(database: Path) -> list[bytes]:
    """Return all events of the only organization, from the database of a service."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT seq, line FROM organization_events ORDER BY org_id, seq").fetchall()
    if [seq for seq, _ in found] != list(range(1, len(found) + 1)):
        raise ValueError("the numbers of the events have gaps")
    return [line for _, line in found]


def count_ended(lines: Sequence[bytes]) -> int:
    """Return the number of ended matches."""
    return sum(line.startswith(b'{"type":"match_ended"') for line in lines)


def faults_of(readers: Sequence[StreamReader], lines: Sequence[bytes]) -> list[str]:
    """Return what readers received differently; each reader has checked that its ids are 1, 2, 3, …."""
    whole = Received.of(lines)
    return [
        f"reader {number}: {received.count} events received, {whole.count} stored"
        for number, reader in enumerate(readers)
        for received in [reader.maps.get(b"", Received())]
        if (received.count, received.sum) != (whole.count, whole.sum)
    ]


def creation_delays(
    readers: Sequence[StreamReader], lines: Sequence[bytes], created: Mapping[str, float]
) -> array[float]:
    """Return the seconds from the response to a creation to the arrival of its event, sorted, for connected readers.

    `created` has the times of the responses by server id. An event may arrive before the response.
    """
    delays: array[float] = array("d")
    events = [json.loads(line) for line in lines]
    seqs = {seq: created[event["serverId"]] for seq, event in enumerate(events, 1) if event["type"] == "match_created"}
    for reader in readers:
        arrivals = reader.maps[b""].arrivals
        counts = arrivals[1::3]
        for seq, created_s in seqs.items():
            index = 3 * bisect_left(counts, seq)
            arrived_s, opened_s = arrivals[index], arrivals[index + 2]
            if opened_s < created_s:
                delays.append(max(0.0, arrived_s - created_s))
    return array("d", sorted(delays))
