"""The alarm "nothing heard" at the speed of real games, on the replica that drives a match and on another one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate, cycle, islice

import pytest
from msgspec.structs import replace

from cs2_protocol.console_commands import LOG_LISTENERS
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.attention import attention_of
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database
from matchpod.service.reading.match_details import situation_of
from matchpod.service.regions.silence import SilentServers
from matchpod.service.runner.intervals import Intervals
from tests.contract import databases
from tests.contract.single_steps import FakeLine, SingleStep, open_step
from tests.contract.test_remote_matches import expected_fold
from tests.unit.service.match_log.test_fold import recorded

harness = databases.sqlite_harness

REAL_TIME = Intervals(probe_s=0.0)
MINUTES = 10
ALARM_S = range(10, 15)
"""After how many seconds without a sign of life people are warned (docs/server-states.md)."""
SHARED_S = 2
"""How much later other replicas know it."""
GAPS_S = (10, 1, 14, 2, 30, 1, 1, 19, 25)
"""Seconds between posts of a server in play, as in real logs."""


def nothing(_: int) -> bool:
    return False


class Walls:
    """What people see of a match on the replica that drives it, and on another one."""

    def __init__(self, step: SingleStep, *, is_live: bool) -> None:
        step.region = replace(step.region, speed=1.0)
        step.deps = replace(step.deps, intervals=REAL_TIME)
        if is_live:
            entries = recorded().entries
            step.fold = expected_fold(entries[: len(entries) // 2])
        self._step = step
        self._row = replace(step.lease.row, phase=ServerPhase.RUNNING, status=ServerStatus.RUNNING)
        self._silent = (step.deps.regions.silent, SilentServers())
        self._probe = step.probe()

    @property
    def phase(self) -> PublicPhase:
        return self._step.fold.progress().phase

    async def follow(self, seconds: int, posts: Callable[[int], bool]) -> tuple[list[int], list[int]]:
        """Let time pass; return at which seconds each wall showed the alarm. A server also logs what it is asked."""
        probing = asyncio.create_task(self._probe.run())
        shown: tuple[list[int], list[int]] = ([], [])
        asked = 0
        for second in range(1, seconds + 1):
            self._step.pass_time(1_000)
            if posts(second) or len(self._step.line.commands) > asked:
                self._post()
            asked = len(self._step.line.commands)
            for _ in range(20):  # more than a probe needs
                await asyncio.sleep(0)
            now_ms = self._step.clock.at_ms
            self._silent[1].set_remote(self._silent[0].shared(now_ms), now_ms)
            for seconds_shown, silent in zip(shown, self._silent, strict=True):
                if self._has_alarm(silent):
                    seconds_shown.append(second)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        return shown

    def _post(self) -> None:
        self._step.fold.heard_ms = self._step.clock.at_ms
        self._probe.log_received(self._step.clock.at_ms)

    def _has_alarm(self, silent: SilentServers) -> bool:
        progress, now_ms = self._step.fold.progress(), self._step.clock.at_ms
        situation = situation_of(self._row, progress, now_ms, silent_ms=silent.since_ms("srv_1"))
        return any(reason.kind == "silence" for reason in attention_of(situation))


async def test_server_that_waits_for_players_raises_no_alarm(db: Database) -> None:
    async with open_step(db) as step:
        walls = Walls(step, is_live=False)
        assert walls.phase is PublicPhase.WAITING_FOR_PLAYERS
        assert await walls.follow(MINUTES * 60, nothing) == ([], [])
        assert LOG_LISTENERS in step.line.commands, "its log alone says nothing"
        assert step.lost == []


async def test_server_in_play_with_gaps_in_its_log_raises_no_alarm(db: Database) -> None:
    async with open_step(db) as step:
        walls = Walls(step, is_live=True)
        assert walls.phase is PublicPhase.LIVE
        times = set(islice(accumulate(cycle(GAPS_S)), MINUTES * 60))
        assert await walls.follow(MINUTES * 60, times.__contains__) == ([], [])


@pytest.mark.parametrize("is_live", [False, True])
async def test_silent_server_raises_the_alarm_on_all_replicas_in_time(db: Database, is_live: bool) -> None:
    async with open_step(db, FakeLine(failures=1_000)) as step:
        own, other = await Walls(step, is_live=is_live).follow(29, nothing)
        assert own[0] in ALARM_S
        assert own[0] <= other[0] <= own[0] + SHARED_S
        assert own == list(range(own[0], 30)), "until it is heard again or lost"


async def test_server_that_loads_a_map_raises_the_alarm_only_if_that_takes_long(db: Database) -> None:
    async with open_step(db, FakeLine(failures=1_000)) as step:
        walls = Walls(step, is_live=True)
        step.fold.match.presence.map_change_at_ms = step.fold.reader.match_ms(step.clock.at_ms)
        own, other = await walls.follow(60, nothing)
        assert own[0] in range(30, 34)
        assert own[0] <= other[0] <= own[0] + SHARED_S
        assert step.lost == []


async def test_alarm_ends_with_the_next_sign_of_life(db: Database) -> None:
    async with open_step(db, FakeLine(failures=1_000)) as step:
        own, other = await Walls(step, is_live=True).follow(36, lambda second: second == 27)
        assert own == list(range(own[0], 27))
        assert other[-1] <= own[-1] + SHARED_S
        assert step.lost == []
