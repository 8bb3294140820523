"""Servers of a host that stalls, and one that hangs while others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.server_loss import SILENCE_MS, LossLimits
from matchpod.ports import Statement
from matchpod.service.match_log.live import LocalMatch
from matchpod.service.regions.silence import SilentServers
from matchpod.service.runner.intervals import Intervals
from tests.contract import databases
from tests.contract.world import Process, World

harness = databases.sqlite_harness

NAMES = ("srv_1", "srv_2", "srv_3")
LIMITS = LossLimits(silence_ms=5_000)
STALL_MS = LIMITS.silence_ms + 3_000
"""Longer than one server may be silent, and shorter than several may."""
QUICK = Intervals(probe_s=0.05)
STEP_MS = 100
"""How much faster time passes than on the wall: less than a delay that is excused."""


async def start_servers(world: World, limits: LossLimits = LIMITS) -> SilentServers:
    silent = world.start(intervals=QUICK).deps.regions.silent
    silent.limits = limits
    for name in NAMES:
        await world.create(name, scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, name)
        await world.until_driven(name)
    return silent


def has_posted(live: LocalMatch, since_ms: int) -> bool:
    return (live.fold.heard_ms or 0) >= since_ms


async def pass_time(world: World, milliseconds: int) -> None:
    over_ms = world.clock.now_ms() + milliseconds
    await world.until(lambda: world.clock.now_ms() >= over_ms, "the time has passed", step_ms=STEP_MS)


async def test_server_in_a_pause_is_not_lost_before_the_others_of_its_host_are_asked(world: World) -> None:
    """It was quiet when its host stalled, so it alone has been silent for long when it does not answer."""
    world.speed = 1.0
    silent = await start_servers(world, LossLimits(silence_ms=30_000))
    world.region.running["srv_1"].is_paused = True
    await pass_time(world, 8_000)
    played_ms = world.clock.now_ms()
    for name in NAMES[1:]:
        live = await world.until_driven(name)
        world.region.running[name].execute("echo")  # it is logged
        await world.until(partial(has_posted, live, played_ms), "its post has arrived")
    for name in NAMES:
        world.region.running[name].is_frozen = True
    await world.until(lambda: silent.count("eu") == len(NAMES), "all are asked", step_ms=STEP_MS)
    since_ms = [silent.since_ms(name) or 0 for name in NAMES]
    assert min(since_ms[1:]) - since_ms[0] > 5_000
    await pass_time(world, 25_000)
    assert [(await world.row(name)).phase for name in NAMES] == [ServerPhase.RUNNING] * len(NAMES)


class Heartbeats:
    def __init__(self, processes: Sequence[Process]) -> None:
        self._sent = [0] * len(processes)
        for number, process in enumerate(processes):
            process.db.before_write = partial(self._count, number)

    async def _count(self, number: int, statements: Sequence[Statement]) -> None:
        self._sent[number] += "INSERT INTO heartbeats" in statements[0].sql

    async def pass_time(self, world: World, milliseconds: int) -> None:
        """Set the clock forward step by step; in each, all processes learn which servers of the others are silent."""
        over_ms = world.clock.now_ms() + milliseconds
        while world.clock.now_ms() < over_ms:
            world.clock.at_ms += 5 * STEP_MS
            # The second one is sent after the step, and the third one when that was answered in all processes.
            await world.until(partial(self._have_sent, tuple(self._sent), 3), "heartbeats were sent")

    def _have_sent(self, before: Sequence[int], count: int) -> bool:
        return all(sent >= earlier + count for sent, earlier in zip(self._sent, before, strict=True))


@pytest.mark.parametrize("harness", ["postgres"], indirect=True)
async def test_matches_of_several_processes_go_on_after_a_stall_of_their_host(world: World) -> None:
    world.speed = 1.0
    quick = Intervals(probe_s=0.05, beat_s=0.02, renew_s=0.2)
    processes = [world.start(name, intervals=quick, max_matches=1) for name in ("one", "two")]
    names = NAMES[:2]
    for name in names:
        await world.create(name, scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, name)
    await world.until(lambda: [len(one.live) for one in processes] == [1, 1], "each process drives one match")
    heartbeats = Heartbeats(processes)
    for name in names:
        world.region.running[name].is_frozen = True
    await heartbeats.pass_time(world, 2 * SILENCE_MS)
    assert [(await world.row(name)).phase for name in names] == [ServerPhase.RUNNING] * 2
    assert [one.deps.regions.silent.count("eu") for one in processes] == [1, 1]
    assert None not in [one.deps.regions.silent.since_ms(name) for one in processes for name in names]
    world.region.running["srv_1"].is_frozen = False
    await world.until(lambda: sum(one.deps.regions.silent.count("eu") for one in processes) == 1, "one is heard")
    await heartbeats.pass_time(world, 5_000)
    assert [one.deps.regions.silent.since_ms("srv_1") for one in processes] == [None, None]
    assert (await world.row("srv_2")).phase is ServerPhase.RUNNING, "it is not lost because the other one is back"
    await heartbeats.pass_time(world, SILENCE_MS)
    assert (await world.outcome("srv_2")).reason == CancelReason.SERVER_LOST
    assert ((await world.row("srv_2")).error or "").endswith(", together with 1 other")
    assert (await world.row("srv_1")).phase is ServerPhase.RUNNING


async def test_no_server_is_silent_while_the_database_does_not_answer(world: World) -> None:
    """Log posts cannot be stored meanwhile, but consoles answer."""
    silent = await start_servers(world)
    began_ms, answers = world.clock.now_ms(), asyncio.Event()

    async def wait(_: object) -> None:
        await answers.wait()

    database = world.processes[0].db
    database.before_read = database.before_write = wait
    counts = set[int]()

    def is_over() -> bool:
        counts.add(silent.count("eu"))
        return world.clock.now_ms() >= began_ms + 2 * STALL_MS

    await world.until(is_over, "the outage is over", step_ms=STEP_MS)
    assert counts == {0}
    answers.set()
    assert [(await world.row(name)).phase for name in NAMES] == [ServerPhase.RUNNING] * len(NAMES)
    for name in NAMES:
        live = await world.until_driven(name)
        await world.until(partial(has_posted, live, began_ms), "its posts arrive again", step_ms=STEP_MS)
    assert [(await world.row(name)).phase for name in NAMES] == [ServerPhase.RUNNING] * len(NAMES)


async def test_people_are_warned_of_a_silent_server_while_its_console_is_still_asked(world: World) -> None:
    silent = world.start(intervals=Intervals(ask_s=120.0)).deps.regions.silent
    await world.create(scenario="no_show")
    await world.until_phase(ServerPhase.RUNNING)
    await world.until_driven()
    server = world.region.running["srv_1"]
    server.answers_late = server.is_frozen = True

    await world.until(lambda: silent.since_ms("srv_1") is not None, "the server is reported as silent", within_s=60)
    assert (await world.row()).phase is ServerPhase.RUNNING
    server.is_frozen = False
    await world.until(lambda: silent.since_ms("srv_1") is None, "the server is heard again")
