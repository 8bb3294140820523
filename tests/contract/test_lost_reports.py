"""The service dies between the last log post of a match and the plugin's report of the last round."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from matchpod.ports import Database
from matchpod.service.ingest.posts import Ingest, Receipt
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import Process, callback_fields, open_world, play_undisturbed
from tests.contract.same_result import assert_same_match

harness = databases.sqlite_harness

SEED = 5
LAST_ROUND = b'"score":3,'
"""A team has won three of four rounds: the map is decided."""


class _DyingIngest:
    """Its process dies after the last log post is stored; the plugin's report of the last round finds it dead."""

    def __init__(self, ingest: Ingest, process: Process) -> None:
        self._ingest = ingest
        self._process = process
        self.match_file = ingest.match_file
        self.store_shots = ingest.store_shots
        self.is_over = asyncio.Event()

    async def store_log(self, token: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        status = await self._ingest.store_log(token, headers, body)
        if b"Game Over" in body:
            self._process.db.is_dead = True
            self.is_over.set()
        return status

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        if LAST_ROUND in body:
            await self.is_over.wait()
        return await self._ingest.store_report(token, body)


async def test_mvp_of_the_last_round_is_unknown_if_its_report_is_lost(db: Database) -> None:
    expected = await play_undisturbed(db, SEED)
    async with open_world(db) as world:
        dead = world.start("dead")
        ingest = world.region.ingest_at(dead.base)
        assert ingest is not None
        dying = _DyingIngest(ingest, dead)
        world.region.add_ingest(dead.base, cast(Ingest, dying))
        await world.create(seed=SEED)
        await dying.is_over.wait()
        await dead.kill()
        world.clock.ahead_ms += LEASE_MS
        world.start("successor")
        found: dict[str, Any] = callback_fields(await world.outcome())
        assert_same_match(found, expected)
        (played,) = found["result"]["maps"]
        unknown = [player["team"] for player in played["players"] if not player["mvpsComplete"]]
        assert unknown in (["team1"] * 2, ["team2"] * 2), "only the two players who won the last round"
