"""Many clients read the streams of concurrent matches: each one gets every event, in order, despite stalled clients.

The benchmark of streams does the same on a larger scale.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest

from tests.bench.stream_checks import differences
from tests.bench.stream_matches import Match, Timeline, ended_streams, game_settings, with_simulator_cvars
from tests.bench.stream_readers import ReaderGroup, StalledClient, StreamReader
from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.e2e.service.running_service import PATIENT_SPEED, RunningService, static_region, wait_until
from tests.effort import sized

MATCHES = 8
READERS = sized(30, 400)
STALLED = 3
ROUNDS = 10
LONG_ROUNDS = 28
"""Sets the length of the first match, a deathmatch, so that it has the most events."""
STALL_AFTER = 400
"""Events of the first match before the stalled clients connect: their backlog then exceeds the socket buffers."""
QUIET_S = 120
"""Simulated time until players join; most readers are connected by then."""
TIMEOUT_S = 1800.0
"""Timeout for all matches, on a busy machine."""
PAGE_SIZE = 1000


@pytest.mark.soak
def test_every_reader_gets_every_event_once_and_in_order(tmp_path: Path) -> None:
    with ExitStack() as stack:
        farm = stack.enter_context(SimulatorProcess("--farm", str(MATCHES)))
        regions = static_region("farm", [farm.address, *other_addresses(farm)], PASSWORD, speed=PATIENT_SPEED)
        service = stack.enter_context(RunningService(tmp_path, regions=regions))
        matches = [create(service, number) for number in range(MATCHES)]
        group = ReaderGroup(service.port, service.key)

        def connect_stalled_clients() -> None:
            for _ in range(STALLED):
                stack.enter_context(closing(StalledClient(group, matches[0].paths()[0])))

        readers = asyncio.run(read_all(group, matches, connect_stalled_clients))
        assert group.failures == []
        polled = {map_id: poll(service, map_id) for match in matches for map_id in match.maps}
        assert differences(readers, matches, polled) == []
        assert group.broken == 0
        assert group.reconnects > READERS // 4
        assert group.events > READERS * 50
        wait_until(lambda: endings(service).get("slow") == STALLED, lambda: f"closed streams: {endings(service)}")
        assert not {"failed", "refused", "closing"} & set(endings(service))
        service.wait_until_released(*(match.server_id for match in matches))
        assert [entry for entry in service.log() if entry["level"] == "ERROR"] == []


def create(service: RunningService, number: int) -> Match:
    """Create one of the matches."""
    settings = game_settings(number, ROUNDS if number else LONG_ROUNDS)
    created = service.create(with_simulator_cvars(settings, number, quiet_s=QUIET_S), region="farm")
    return Match.of(created, settings)


async def read_all(
    group: ReaderGroup, matches: Sequence[Match], connect_stalled_clients: Callable[[], None]
) -> list[StreamReader]:
    """Read all matches and maps until every stream is complete; half of the readers disconnect and reconnect.

    Call `connect_stalled_clients` when the first reader has received many events.
    """
    rng = random.Random(7)
    paths = [path for match in matches for path in match.paths()]
    readers = [
        StreamReader(
            group,
            paths[number % len(paths)],
            disconnects_after=rng.sample(range(1, 120), 3) if number % 2 else (),
            reconnect_s=rng.uniform(0, 1.5),
        )
        for number in range(READERS)
    ]
    async with asyncio.timeout(TIMEOUT_S):
        for reader in readers:
            await reader.connect()
        while len(readers[0]) < STALL_AFTER and not group.failures:
            await asyncio.sleep(0.1)
        connect_stalled_clients()
        while group.finished < READERS and not group.failures:
            await asyncio.sleep(0.1)
    return readers


def poll(service: RunningService, map_id: str) -> list[bytes]:
    """Return the timeline of a map, with undecoded items."""
    items: list[bytes] = []
    while True:
        path = f"/api/v1/cs2/matches/{map_id}/events?afterSeq={len(items)}&limit={PAGE_SIZE}"
        page = msgspec.json.decode(service.call("GET", path).raw, type=Timeline).items
        items += map(bytes, page)
        if len(page) < PAGE_SIZE:
            return items


def endings(service: RunningService) -> dict[str, int]:
    """Return the number of ended streams by reason."""
    return ended_streams(service.call("GET", "/metrics").raw)


def other_addresses(farm: SimulatorProcess) -> list[str]:
    """Return the addresses of the other servers of a farm, from its output."""
    assert farm.process.stdout is not None
    lines = [farm.process.stdout.readline() for _ in range(MATCHES - 1)]
    return [line.split()[2] for line in lines]
