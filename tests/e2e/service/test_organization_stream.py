"""Several clients read the stream of an organization during matches: each gets every event once and in order.

The benchmark of organizations' streams does the same on a larger scale.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path

from matchpod.settings.values import DATABASE_FILE
from tests.bench.organization_checks import PATH, count_ended, faults_of, stored_lines
from tests.bench.stream_matches import ended_streams
from tests.bench.stream_readers import ReaderGroup, StreamReader
from tests.e2e.service.running_service import RunningService, cvars, short_match

MATCHES = 3
READERS = 6
TIMEOUT_S = 900.0


def test_every_reader_gets_every_event_of_all_matches(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        group = ReaderGroup(service.port, service.key)
        readers = asyncio.run(read_all(service, group))
        assert group.failures == []
        assert group.broken == 0
        assert group.reconnects == READERS // 2
        assert not {"failed", "refused", "closing"} & set(ended_streams(service.call("GET", "/metrics").raw))
    lines = stored_lines(service.data_dir / DATABASE_FILE)
    assert faults_of(readers, lines) == []
    events = [json.loads(line) for line in lines]
    for number in range(MATCHES):
        types = [event["type"] for event in events if event["externalMatchId"] == f"match {number}"]
        assert types[:3] == ["match_created", "server_running", "map_live"]
        assert types[-2:] == ["map_ended", "match_ended"]
        assert set(types[3:-2]) == {"score_changed"}


async def read_all(service: RunningService, group: ReaderGroup) -> Sequence[StreamReader]:
    """Read until the matches have ended and every reader has every event; half of the readers reconnect once."""
    rng = random.Random(3)
    readers = [
        StreamReader(
            group, PATH, disconnects_after=[rng.randint(2, 9)] if number % 2 else (), reconnect_s=rng.uniform(0, 1)
        )
        for number in range(READERS)
    ]
    async with asyncio.timeout(TIMEOUT_S):
        for reader in readers:
            await reader.connect()
        for number in range(MATCHES):
            settings = short_match(customCvars=cvars(sim_seed=number + 1))
            await asyncio.to_thread(service.create, settings, externalMatchId=f"match {number}")
        while count_ended(lines := stored_lines(service.data_dir / DATABASE_FILE)) < MATCHES and not group.failures:
            await asyncio.sleep(0.5)
        while any(len(reader) < len(lines) for reader in readers) and not group.failures:
            await asyncio.sleep(0.1)
    for reader in readers:
        reader.stop()
    await asyncio.sleep(0.1)  # the connections are closed in the next turns of the event loop
    return readers
