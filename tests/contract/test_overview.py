"""The overview shows all open matches of an organization, the most urgent first."""

from __future__ import annotations

import pytest

from matchpod.core.progress import PublicPhase, WaitingFor
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service import overview as module
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.overview import Overview, WallMatch, count_urgent
from matchpod.service.regions import Regions
from matchpod.storage.servers import ServerRow
from tests.contract import databases
from tests.contract.test_access import ManualClock
from tests.contract.test_remote_matches import create_match, expected_state, middle, remote_matches, store
from tests.unit.service.match_log.test_fold import recorded

harness = databases.sqlite_harness
RUNNING = {"phase": ServerPhase.RUNNING, "status": ServerStatus.RUNNING}


class World:
    """Matches in a database, and the clock."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.live = LocalMatches()
        self.clock = ManualClock()
        self.number = 0

    async def create(self, **fields: object) -> ServerRow:
        self.number += 1
        unique = {
            "id": f"srv_{self.number}",
            "log_token_hash": f"log {self.number}",
            "report_token_hash": f"report {self.number}",
        }
        row = await create_match(self.db, **unique, **fields)
        self.clock.at_ms = row.created_at_ms
        return row

    async def matches(self, org_id: str) -> list[WallMatch]:
        overview = Overview(
            db=self.db,
            clock=self.clock,
            regions=Regions([], self.db),
            live=self.live,
            remote=remote_matches(self.db),
        )
        return await overview.matches(org_id)


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


async def test_match_without_a_server_shows_what_was_ordered(world: World) -> None:
    row = await world.create(phase=ServerPhase.ALLOCATING, status=ServerStatus.ALLOCATING)
    (found,) = await world.matches(row.org_id)
    assert (found.server_id, found.card.phase, found.is_followed) == (row.id, PublicPhase.ALLOCATING, True)
    assert found.card.missing == len(recorded().settings.roster)
    assert found.attention == ()


async def test_match_that_waits_for_a_server_needs_attention_after_a_minute(world: World) -> None:
    row = await world.create(phase=ServerPhase.PENDING, status=ServerStatus.PENDING, pending_until_ms=1)
    world.clock.at_ms = row.created_at_ms + 61_000
    (found,) = await world.matches(row.org_id)
    assert [reason.kind for reason in found.attention] == ["pending"]
    assert found.card.waiting_for is WaitingFor.FREE_SERVER


async def test_match_of_another_replica_is_read_from_its_log(world: World) -> None:
    row = await world.create(**RUNNING)
    entries = recorded().entries[: middle()]
    await store(world.db, entries, row.id)
    world.clock.at_ms = entries[-1].received_ms
    (found,) = await world.matches(row.org_id)
    expected = expected_state(entries)
    assert (found.card.phase, found.card.round, found.is_followed) == (expected.phase, expected.round, True)


async def test_number_of_logs_of_other_replicas_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMOTE", 1)
    rows = [await world.create(**RUNNING, match_phase=PublicPhase.LIVE) for _ in range(3)]
    found = await world.matches(rows[0].org_id)
    assert sorted(one.is_followed for one in found) == [False, False, True]
    assert all(not one.attention for one in found if not one.is_followed)


async def test_most_urgent_match_is_first_and_others_are_in_the_order_of_their_creation(world: World) -> None:
    first, second, third = [await world.create(**RUNNING) for _ in range(3)]
    for row in (first, second, third):
        match = LocalMatch(row.id, Fold.begin(row, 1.0), 0)
        world.live.add(match)
    silent = world.live.get(third.id)
    assert silent is not None
    silent.fold.heard_ms = world.clock.at_ms - 20_000
    found = await world.matches(first.org_id)
    assert [one.server_id for one in found] == [third.id, first.id, second.id]
    assert [reason.kind for reason in found[0].attention] == ["silence"]
    assert count_urgent(found) == 1


async def test_other_organizations_and_ended_matches_are_not_shown(world: World) -> None:
    row = await world.create(phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED)
    assert await world.matches(row.org_id) == []
    await world.create(**RUNNING)
    assert await world.matches("org_other") == []
