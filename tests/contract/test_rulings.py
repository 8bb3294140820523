"""All rulings on a match are kept, one counts, and rulings that are made at once follow each other."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import NotFoundError
from matchpod.core.outcome import Outcome
from matchpod.core.rulings import RuledWinner, RulingRequest
from matchpod.ports import Database
from matchpod.storage import acknowledgements, organization_events, rulings
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.databases import Replicas
from tests.contract.parts import Parts
from tests.contract.test_audited_acts import PROGRAM
from tests.contract.test_storage_open_matches import NOW_MS, end
from tests.contract.test_storage_servers import create, server

harness = databases.harness

VOID = RulingRequest(winner=RuledWinner.NONE)
TEAM1 = RulingRequest(winner=RuledWinner.TEAM1, reason="no-show", by="Eva")


class World(Parts):
    """One process, and a match that was canceled."""

    def __init__(self, db: Database) -> None:
        super().__init__(db, clock=ManualClock(NOW_MS))

    async def end_match(self, reason: CancelReason | None = CancelReason.INCOMPLETE_ROSTER) -> None:
        await create(self.db, server())
        await end(self.db, server(), Outcome(at_ms=NOW_MS, reason=reason))

    async def rule(self, request: RulingRequest) -> str:
        self.clock.at_ms += 1
        return (await self.rulings.make(await self.row(), request, actor="ses_1", key_id="key_1")).id

    async def counts(self) -> str | None:
        stored = (await self.row()).ruling
        return None if stored is None else str(msgspec.json.decode(stored)["id"])


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


async def test_all_rulings_are_kept_with_who_made_and_withdrew_them(world: World) -> None:
    await world.end_match()
    first, second = await world.rule(TEAM1), await world.rule(VOID)
    assert await world.counts() == second
    await world.rulings.end(await world.row(), actor="ses_2", key_id="key_2")
    assert await world.counts() is None
    newest, oldest = await rulings.of_server(world.db, "srv_1")
    assert (newest.id, newest.winner, newest.reason, newest.person) == (second, "none", None, None)
    assert (newest.ruled_by, newest.withdrawn_by, newest.withdrawn_at_ms) == ("key_1", "key_2", world.clock.at_ms)
    assert (oldest.id, oldest.winner, oldest.reason, oldest.person) == (first, "team1", "no-show", "Eva")
    assert oldest.withdrawn_at_ms is None


async def test_ruling_acknowledges_a_match_without_a_result(world: World) -> None:
    await world.end_match()
    await world.rule(VOID)
    found = await acknowledgements.of_server(world.db, "srv_1")
    assert found is not None
    assert (found.acknowledged_at_ms, found.acknowledged_by) == (NOW_MS + 1, "key_1")
    await world.rule(TEAM1)
    assert await acknowledgements.of_server(world.db, "srv_1") == found


async def test_match_with_a_result_needs_no_acknowledgement(world: World) -> None:
    await world.end_match(None)
    await world.rule(VOID)
    assert await acknowledgements.of_server(world.db, "srv_1") is None


async def test_rulings_at_once_are_all_kept_and_the_last_one_counts(world: World, replicas: Replicas) -> None:
    await world.end_match()
    others = [World(db) for db in replicas]
    made = await asyncio.gather(*(one.rule(request) for one in others for request in (TEAM1, VOID)))
    assert {row.id for row in await rulings.of_server(world.db, "srv_1")} == set(made)
    events = await organization_events.read_after(world.db, "org_1", 0, limit=9)
    assert [seq for seq, _ in events] == [1, 2, 3, 4, 5]
    last = msgspec.json.decode(events[-1][1])["ruling"]["id"]
    assert await world.counts() == last


async def test_only_one_of_two_withdrawals_succeeds(world: World, replicas: Replicas) -> None:
    await world.end_match()
    await world.rule(VOID)
    row = await world.row()
    ends = (World(db).rulings.end(row, actor="ses_1", key_id="key_1") for db in replicas)
    done = await asyncio.gather(*ends, return_exceptions=True)
    assert [type(one) for one in done if one is not None] == [NotFoundError]
    assert await world.counts() is None


async def test_replaced_ruling_is_not_withdrawn_in_place_of_the_new_one(world: World) -> None:
    await world.end_match()
    await world.rule(VOID)
    seen = await world.row()
    second = await world.rule(TEAM1)
    with pytest.raises(NotFoundError):
        await world.rulings.end(seen, actor="ses_1", key_id="key_1")
    assert await world.counts() == second


async def test_same_key_at_once_makes_one_ruling(world: World, replicas: Replicas) -> None:
    await world.end_match()
    body = msgspec.json.encode({"winner": "team1"})
    made = await asyncio.gather(*(World(db).rulings.rule(PROGRAM, "srv_1", body, "k") for db in (*replicas, *replicas)))
    assert len({ruling.id for ruling, _ in made}) == 1
    assert len(await rulings.of_server(world.db, "srv_1")) == 1
