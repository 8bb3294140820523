"""Servers of a host that stalls, and one that hangs while others go on."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.server_loss import LossLimits
from matchpod.core.views.attention import SILENT_MS, Situation, attention_of
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database
from matchpod.service.runner import liveness
from tests.contract import databases
from tests.contract.driven_matches import open_world

harness = databases.sqlite_harness

NAMES = ("srv_1", "srv_2", "srv_3")
LIMITS = LossLimits(silence_ms=5_000)
STALL_S = LIMITS.silence_ms / 1000 + 3
"""Longer than one server may be silent, and shorter than several may."""


@pytest.fixture(autouse=True)
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.2)


async def test_matches_go_on_after_a_stall_of_their_host(db: Database) -> None:
    async with open_world(db) as world:
        silent = world.start().deps.regions.silent
        silent.limits = LIMITS
        for name in NAMES:
            await world.create(name, scenario="no_show")
            await world.until_phase(ServerPhase.RUNNING, name)
        for name in NAMES:
            await world.until_driven(name)
            world.region.running[name].is_frozen = True
        await asyncio.sleep(STALL_S)
        assert silent.count("eu") == len(NAMES)
        assert "several fell silent together" in (silent.notice("eu") or "")
        for name in NAMES:
            world.region.running[name].is_frozen = False

        async def are_heard() -> bool:
            return silent.count("eu") == 0

        await world.until(are_heard, "all servers are heard again")
        assert silent.notice("eu") is None
        assert [(await world.row(name)).phase for name in NAMES] == [ServerPhase.RUNNING] * len(NAMES)


async def test_server_that_hangs_alone_is_lost(db: Database) -> None:
    async with open_world(db) as world:
        world.start().deps.regions.silent.limits = LIMITS
        for name in NAMES:
            await world.create(name, scenario="no_show")
            await world.until_phase(ServerPhase.RUNNING, name)
        world.region.running["srv_2"].is_frozen = True
        assert (await world.outcome("srv_2")).reason == CancelReason.SERVER_LOST
        assert [(await world.row(name)).phase for name in ("srv_1", "srv_3")] == [ServerPhase.RUNNING] * 2


async def test_people_are_warned_of_a_silent_server_while_its_console_is_still_asked(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "ASK_S", 120.0)
    async with open_world(db) as world:
        silent = world.start().deps.regions.silent
        await world.create("srv_1", scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, "srv_1")
        await world.until_driven("srv_1")
        world.region.running["srv_1"].answers_late = True
        world.region.running["srv_1"].is_frozen = True

        async def is_warned() -> bool:
            since_ms = silent.since_ms("srv_1")
            return since_ms is not None and world.clock.now_ms() - since_ms >= SILENT_MS

        await world.until(is_warned, "the server is reported as silent", within_s=60)
        row = await world.row("srv_1")
        assert row.phase is ServerPhase.RUNNING
        warned = attention_of(
            Situation(now_ms=world.clock.now_ms(), phase=PublicPhase.LIVE, silent_ms=silent.since_ms("srv_1"))
        )
        assert [reason.kind for reason in warned] == ["silence"]
        world.region.running["srv_1"].is_frozen = False

        async def is_heard() -> bool:
            return silent.since_ms("srv_1") is None

        await world.until(is_heard, "the server is heard again")
