"""The overview shows all open matches of an organization, the most urgent first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.core.rulings import RuledWinner, Ruling
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.servers.server_loss import Silence
from matchpod.core.views.progress import PublicPhase
from matchpod.core.views.wall_groups import WallGroup
from matchpod.ports import Database, Statement
from matchpod.service.access.audit import Audit
from matchpod.service.acknowledgements import Acknowledgements
from matchpod.service.end_match import end_match
from matchpod.service.match_claims import MatchClaims
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.reading.wall import CLAIMED_MS, ENDED_MS, PROGRESS_MS, EndedMatch, Overview, WallCard, WallMatch
from matchpod.service.regions.regions import Regions
from matchpod.service.regions.silence import SilentServers
from matchpod.storage import server_labels
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_audited_acts import PERSON
from tests.contract.test_remote_matches import create_match, remote_matches
from tests.unit.service.match_log.test_fold import recorded

harness = databases.mostly_sqlite_harness
DAY_MS = 24 * 60 * 60 * 1000
RUNNING = {"phase": ServerPhase.RUNNING, "status": ServerStatus.RUNNING}


class World:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.live = LocalMatches()
        self.clock = ManualClock(START_MS)
        self.silent = SilentServers()
        self.number = 0
        self.limits: dict[str, Any] = {}

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

    def fall_silent(self, row: ServerRow) -> None:
        silence = Silence(region=row.region, host="", since_ms=self.clock.at_ms - 20_000)
        self.silent.report(row.id, silence)

    def overview(self) -> Overview:
        return Overview(
            db=self.db,
            clock=self.clock,
            regions=Regions([], self.db, self.silent),
            live=self.live,
            remote=remote_matches(self.db),
            **self.limits,
        )

    async def matches(self, org_id: str) -> list[WallMatch]:
        return [one for one in (await self.overview().cards(org_id)).cards if isinstance(one, WallMatch)]

    async def end(self, row: ServerRow, reason: CancelReason | None = None, *, is_released: bool = True) -> None:
        result = b"{}" if reason is None else None
        outcome = Outcome(at_ms=self.clock.at_ms, reason=reason)
        await self.db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"msg_{row.id}"))
        if is_released:
            await self.release(row)

    async def release(self, row: ServerRow) -> None:
        await self.db.write([Statement("UPDATE servers SET phase = 'released' WHERE id = :id", {"id": row.id})])

    async def ended(self, known: Mapping[str, WallCard] = MappingProxyType({})) -> list[EndedMatch]:
        found = (await self.overview().cards("org_1", known)).cards
        return [one for one in found if isinstance(one, EndedMatch)]


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


async def test_match_without_a_server_shows_what_was_ordered(world: World) -> None:
    row = await world.create(phase=ServerPhase.ALLOCATING, status=ServerStatus.ALLOCATING)
    (found,) = await world.matches(row.org_id)
    assert (found.server_id, found.progress.phase, found.is_followed) == (row.id, PublicPhase.ALLOCATING, True)
    assert len(found.progress.missing) == len(recorded().settings.roster)
    assert found.attention == ()


QUEUED = {"phase": ServerPhase.PENDING, "status": ServerStatus.PENDING, "pending_until_ms": 1}


async def test_matches_that_wait_for_a_server_are_one_alert_of_their_region_after_a_minute(world: World) -> None:
    rows = [await world.create(**QUEUED) for _ in range(3)]
    other = await world.create(**QUEUED, region="other")
    young = await world.create(**{**QUEUED, "created_at_ms": rows[0].created_at_ms + 50_000})
    world.clock.at_ms = rows[0].created_at_ms + 59_000
    assert (await world.overview().cards("org_1")).alerts == ()
    world.clock.at_ms += 2_000
    found = await world.overview().cards("org_1")
    assert {one.group for one in found.cards} == {WallGroup.QUEUED}
    assert [one.attention for one in await world.matches("org_1")] == [()] * 5
    assert [(one.region, one.kind, one.count, one.since_ms) for one in found.alerts] == [
        (rows[0].region, "pending", 4, rows[0].created_at_ms),
        ("other", "pending", 1, other.created_at_ms),
    ]
    assert young.id in {one.server_id for one in found.cards}


async def test_second_tries_are_one_alert_if_several_matches_of_a_region_need_them(world: World) -> None:
    starting = {"phase": ServerPhase.ALLOCATING, "status": ServerStatus.ALLOCATING, "tries": 1}
    await world.create(**starting)
    found = await world.overview().cards("org_1")
    assert ([one.needs_attention for one in found.cards], found.alerts) == ([True], ())
    await world.create(**starting)
    found = await world.overview().cards("org_1")
    assert [one.group for one in found.cards] == [WallGroup.STARTING] * 2
    assert not any(one.needs_attention for one in found.cards)
    assert [(one.kind, one.count) for one in found.alerts] == [("tries", 2)]


async def test_number_of_logs_of_other_replicas_is_limited(world: World) -> None:
    world.limits = {"max_remote": 1}
    rows = [await world.create(**RUNNING, match_phase=PublicPhase.LIVE) for _ in range(3)]
    found = await world.matches(rows[0].org_id)
    assert sorted(one.is_followed for one in found) == [False, False, True]
    assert all(not one.attention for one in found if not one.is_followed)
    for row in rows:
        world.silent.set_remote({one.id: Silence(region="eu", host="", since_ms=0) for one in rows}, row.created_at_ms)
    kinds = [reason.kind for one in await world.matches(rows[0].org_id) for reason in one.attention]
    assert kinds == ["silence"] * 3, "it is known without their logs"


async def test_matches_stay_in_the_order_of_their_creation_also_if_one_needs_attention(world: World) -> None:
    first, second, third = [await world.create(**RUNNING) for _ in range(3)]
    for row in (first, second, third):
        match = LocalMatch(row.id, Fold.begin(row, 1.0), 0)
        world.live.add(match)
    world.fall_silent(third)
    found = await world.matches(first.org_id)
    assert [one.server_id for one in found] == [first.id, second.id, third.id]
    assert [reason.kind for reason in found[2].attention] == ["silence"]
    assert [one.needs_attention for one in found] == [False, False, True]
    assert {one.group for one in found} == {WallGroup.WAITING}


async def test_match_that_failed_stays_until_it_is_acknowledged(world: World) -> None:
    rows = [await world.create(**RUNNING) for _ in range(3)]
    for row, reason in zip(rows, (CancelReason.SERVER_LOST, CancelReason.CANCELED_BY_USER), strict=False):
        await world.end(row, reason)
    lost, canceled = await world.ended()
    assert (lost.server_id, lost.group, lost.error) == (
        rows[0].id,
        WallGroup.FAILED,
        "The server stopped responding, or its process ended.",
    )
    assert (canceled.server_id, canceled.group) == (rows[1].id, WallGroup.CANCELED)
    world.clock.at_ms += ENDED_MS
    assert [one.server_id for one in await world.ended()] == [lost.server_id, canceled.server_id]
    world.clock.at_ms += 30 * DAY_MS
    assert [one.server_id for one in await world.ended()] == [lost.server_id]
    assert lost.players == recorded().settings.roster
    audit = Audit(db=world.db, clock=world.clock)
    service = Acknowledgements(db=world.db, clock=world.clock, audit=audit)
    assert (await service.acknowledge(PERSON, [lost.server_id])).count == 1
    assert await world.ended() == []
    assert [one.server_id for one in await world.matches("org_1")] == [rows[2].id]


async def test_finished_match_stays_for_ten_minutes(world: World) -> None:
    row = await world.create(**RUNNING)
    await world.end(row)
    (found,) = await world.ended()
    assert (found.server_id, found.group) == (row.id, WallGroup.FINISHED)
    world.clock.at_ms += ENDED_MS
    assert len(await world.ended()) == 1
    world.clock.at_ms += 1
    assert await world.ended() == []


async def test_ended_match_is_read_again_until_its_server_is_released(world: World) -> None:
    row = await world.create(**RUNNING)
    await world.end(row, CancelReason.SERVER_LOST, is_released=False)
    (ending,) = await world.ended()
    await world.release(row)
    (released,) = await world.ended({row.id: ending})
    assert (ending.is_final, released.is_final) == (False, True)
    await world.db.write([Statement("UPDATE servers SET region = 'moved'")])
    assert await world.ended({row.id: released}) == [released]
    ruling = Ruling(id="rul_1", winner=RuledWinner.TEAM2, reason=None, by=None, ruled_at="2026-01-02T03:04:05.000Z")
    given = {"ruling": msgspec.json.encode(ruling)}
    await world.db.write([Statement("UPDATE servers SET ruling = :ruling", given)])
    (ruled,) = await world.ended({row.id: released})
    assert (ruled.region, ruled.ruling) == ("moved", ruling)
    assert await world.ended({row.id: ruled}) == [ruled]


@databases.on_both
async def test_claim_is_at_its_match_for_half_a_day_in_all_processes(world: World) -> None:
    opened, failed = [await world.create(**RUNNING) for _ in range(2)]
    await world.end(failed, CancelReason.SERVER_LOST)
    known = {one.server_id: one for one in (await world.overview().cards("org_1")).cards}
    claims = MatchClaims(db=world.db, clock=world.clock, audit=Audit(db=world.db, clock=world.clock))
    for row in (opened, failed):
        await claims.claim(PERSON, row.id, name="Ada", note="on the phone")

    async def claimed() -> list[str]:
        found = (await world.overview().cards("org_1", known)).cards
        return [one.server_id for one in found if one.claim is not None and one.claim.name == "Ada"]

    assert await claimed() == [opened.id, failed.id]
    await claims.release(PERSON, failed.id)
    assert await claimed() == [opened.id]
    world.clock.at_ms += CLAIMED_MS + 1
    assert await claimed() == []


async def test_number_of_matches_that_ended_is_limited_in_each_group(world: World) -> None:
    world.limits = {"max_ended": 2}
    first = await world.create(**RUNNING)
    await world.end(first, CancelReason.CANCELED_BY_USER)
    for number in range(3):
        assert (await world.overview().cards("org_1")).older_ms is None
        row = await world.create(**RUNNING)
        world.clock.at_ms += number
        await world.end(row, CancelReason.SERVER_LOST)
    found = await world.overview().cards("org_1")
    assert [one.server_id for one in found.cards] == ["srv_4", "srv_3", "srv_1"]
    assert found.older_ms == found.cards[1].since_ms


@databases.on_both
async def test_progress_of_a_label_leaves_out_what_was_canceled_by_hand_and_what_is_old(world: World) -> None:
    async def labeled(value: str, age_ms: int = 0, **ended: CancelReason | None) -> None:
        row = await world.create(**RUNNING)
        labels = server_labels.insert(row.org_id, row.id, row.created_at_ms - age_ms, {"round": value})
        await world.db.write(labels)
        if ended:
            await world.end(row, ended["reason"])

    await labeled("1", reason=None)
    await labeled("1", reason=CancelReason.SERVER_LOST)
    await labeled("1", reason=CancelReason.CANCELED_BY_USER)
    await labeled("1")
    await labeled("1", age_ms=PROGRESS_MS + 1)
    await labeled("2")
    found = await world.overview().label_progress("org_1", "round", ["1", "2", "3"])
    assert found == {"1": (2, 3), "2": (0, 1), "3": (0, 0)}
    assert await world.overview().label_progress("org_2", "round", ["1"]) == {"1": (0, 0)}
