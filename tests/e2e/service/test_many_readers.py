"""Many read at once what is played at once: everybody gets every event, in order, whatever the others do.

The benchmark of streams is the same with more of everything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from tests.bench.stream_checks import differences
from tests.bench.stream_matches import Match, Timeline, ended_streams, game_settings, with_simulator_cvars
from tests.bench.stream_readers import ReaderGroup, StalledClient, StreamReader
from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.e2e.service.running_service import PATIENT, RunningService, static_region, wait_until
from tests.effort import times

MATCHES = 8
READERS = times(80)
SLEEPERS = 3
ROUNDS = 10
LONG_ROUNDS = 28
"""Of the first match, a deathmatch, in which most happens."""
SLEEP_AFTER = 400
"""Events of the first match, when those come who never read: more than the system keeps for them is sent at once."""
QUIET_S = 120
"""Simulated, until people come: most readers are there by then."""
WHOLE_S = 1800.0
"""For all matches, on a busy machine."""
READ_AT_ONCE = 1000


def test_everybody_gets_every_event_once_and_in_order(tmp_path: Path) -> None:
    with ExitStack() as held:
        farm = held.enter_context(SimulatorProcess("--farm", str(MATCHES)))
        regions = static_region("farm", [farm.address, *other_addresses(farm)], PASSWORD, speed=PATIENT)
        service = held.enter_context(RunningService(tmp_path, regions=regions))
        matches = [create(service, number) for number in range(MATCHES)]
        group = ReaderGroup(service.port, service.key)

        def sleep() -> None:
            for _ in range(SLEEPERS):
                held.enter_context(closing(StalledClient(group, matches[0].paths()[0])))

        readers = asyncio.run(read_all(group, matches, sleep))
        assert group.failures == []
        polled = {map_id: poll(service, map_id) for match in matches for map_id in match.maps}
        assert differences(readers, matches, polled) == []
        assert group.broken == 0
        assert group.reconnects > READERS // 4
        assert group.events > READERS * 50
        wait_until(lambda: endings(service).get("slow") == SLEEPERS, lambda: f"cut off: {endings(service)}")
        assert not {"failed", "refused", "closing"} & set(endings(service))
        service.wait_until_released(*(match.server_id for match in matches))
        assert [entry for entry in service.log() if entry["level"] == "ERROR"] == []


def create(service: RunningService, number: int) -> Match:
    """One of the matches."""
    settings = game_settings(number, ROUNDS if number else LONG_ROUNDS)
    made = service.create(with_simulator_cvars(settings, number, quiet_s=QUIET_S), region="farm")
    return Match.of(made, settings)


async def read_all(group: ReaderGroup, matches: Sequence[Match], sleep: Callable[[], None]) -> list[StreamReader]:
    """Readers of all matches and all their maps, half of whom come and go, until all were told that it is over.

    `sleep` is done when the first one was told a lot.
    """
    chance = random.Random(7)
    paths = [path for match in matches for path in match.paths()]
    readers = [
        StreamReader(
            group,
            paths[number % len(paths)],
            disconnects_after=chance.sample(range(1, 120), 3) if number % 2 else (),
            reconnect_s=chance.uniform(0, 1.5),
        )
        for number in range(READERS)
    ]
    async with asyncio.timeout(WHOLE_S):
        for reader in readers:
            await reader.connect()
        while len(readers[0]) < SLEEP_AFTER and not group.failures:
            await asyncio.sleep(0.1)
        sleep()
        while group.finished < READERS and not group.failures:
            await asyncio.sleep(0.1)
    return readers


def poll(service: RunningService, map_id: str) -> list[bytes]:
    """The timeline of a map, each item as it stands there."""
    items: list[bytes] = []
    while True:
        path = f"/api/v1/cs2/matches/{map_id}/events?afterSeq={len(items)}&limit={READ_AT_ONCE}"
        page = msgspec.json.decode(service.call("GET", path).raw, type=Timeline).items
        items += map(bytes, page)
        if len(page) < READ_AT_ONCE:
            return items


def endings(service: RunningService) -> dict[str, int]:
    """How many streams ended, by why."""
    return ended_streams(service.call("GET", "/metrics").raw)


def other_addresses(farm: SimulatorProcess) -> list[str]:
    """Where the other servers of a farm listen, as it says."""
    assert farm.process.stdout is not None
    lines = [farm.process.stdout.readline() for _ in range(MATCHES - 1)]
    return [line.split()[2] for line in lines]
