"""The number of live matches of an organization is exact, also if several processes create matches at once."""

from __future__ import annotations

import asyncio

import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import RateLimitError
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.service.reading.match_head import ServerView
from tests.contract import databases
from tests.contract.test_matches import OTHER_OWNER, Callers, body

harness = databases.mostly_sqlite_harness


@databases.on_both
async def test_concurrent_creations_in_two_processes_do_not_exceed_the_limit(replicas: databases.Replicas) -> None:
    worlds = [Callers(db, max_live_matches=3) for db in replicas]
    created = await asyncio.gather(*(world.create() for world in worlds * 5), return_exceptions=True)
    assert sorted(type(one).__name__ for one in created) == ["RateLimitError"] * 7 + ["ServerView"] * 3
    assert await worlds[0].count("servers") == await worlds[0].count("maps") == 3


async def test_match_counts_until_it_has_an_outcome(db: Database) -> None:
    world = Callers(db, max_live_matches=1)
    for phase in (ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING):
        server_id = (await world.create()).server_id
        await world.change(server_id, phase=phase)
        with pytest.raises(RateLimitError):
            await world.create()
        await world.end(server_id, reason=CancelReason.SERVER_LOST)
    await world.matches.create(OTHER_OWNER, body(), None)
    await world.create()


async def test_loser_of_a_race_for_a_key_gets_the_last_allowed_match_of_the_winner(db: Database) -> None:
    world, won = Callers(db, max_live_matches=1), list[ServerView]()

    async def create_first() -> None:
        won.append(await world.create("once"))

    late = Callers(databases.HookedDatabase(db, before_write=databases.once(create_first)), max_live_matches=1)
    assert await late.create("once") == won[0]
    assert late.notified == []
    with pytest.raises(RateLimitError):
        await late.create("twice")
