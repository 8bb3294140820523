"""Matches without a result are found until they are acknowledged; who did it and when is stored and recorded."""

from __future__ import annotations

import pytest

from matchpod.core.effects import BY_HAND, CancelReason
from matchpod.core.errors import ForbiddenError, InvalidParamsError
from matchpod.core.outcome import Outcome
from matchpod.ports import Database, Statement
from matchpod.service.access.audit import Audit
from matchpod.service.acknowledgements import UNDO_MS, Acknowledged, Acknowledgements
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.reading.match_details import AcknowledgedBy, acknowledged_by
from matchpod.storage import acknowledgements, api_keys
from matchpod.storage.api_keys import ApiKey
from matchpod.storage.schema import MIGRATIONS
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.test_access import START_MS
from tests.contract.test_audited_acts import PERSON, PROGRAM
from tests.contract.test_storage_open_matches import end
from tests.contract.test_storage_servers import create, server

harness = databases.mostly_sqlite_harness

NOW_MS = 1_800_000_000_000
MEMBER = Principal(org_id="org_1", key_id="key_2", role=Role.MEMBER, scopes=frozenset(Scope))


class World:
    """Matches that ended one after the other, a millisecond apart."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock(START_MS)
        self.audit = Audit(db=db, clock=self.clock)
        self.acknowledgements = Acknowledgements(db=db, clock=self.clock, audit=self.audit)

    async def end_matches(self, *reasons: CancelReason | None, org_id: str = "org_1") -> list[str]:
        """End a match with each reason; return the ids of their servers."""
        rows: list[ServerRow] = []
        for number, reason in enumerate(reasons):
            rows.append(server(f"srv_{org_id}_{number}", org_id=org_id))
            await create(self.db, rows[-1])
            await end(self.db, rows[-1], Outcome(at_ms=NOW_MS + number, reason=reason))
        return [row.id for row in rows]

    async def left(self, org_id: str = "org_1") -> list[str]:
        return await acknowledgements.unacknowledged_ids(self.db, org_id, limit=9)

    async def canceled(self, org_id: str = "org_1", since_ms: int = 0) -> list[str]:
        return await acknowledgements.canceled_ids(self.db, org_id, since_ms, limit=9)

    async def acts(self) -> list[tuple[str, str, str, str]]:
        items = await self.audit.page("org_1")
        return sorted((item.actor, item.action, item.target, item.detail) for item in items)


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


@databases.on_both
async def test_matches_without_a_result_are_found_the_last_first(world: World) -> None:
    reasons = (CancelReason.SERVER_LOST, None, CancelReason.CANCELED_BY_USER, CancelReason.NO_PLAYERS_JOINED)
    lost, _, canceled, empty = await world.end_matches(*reasons)
    await world.end_matches(CancelReason.SERVER_LOST, org_id="org_2")
    await create(world.db, server("srv_open"))
    assert await world.left() == [empty, lost]
    assert await world.canceled() == await world.canceled(since_ms=NOW_MS + 2) == [canceled]
    assert await world.canceled(since_ms=NOW_MS + 3) == []
    assert await acknowledgements.unacknowledged_ids(world.db, "org_1", limit=1) == [empty]


async def test_reasons_by_hand_are_those_of_the_index(world: World) -> None:
    """The conditions of the indexes are in a migration, which is never changed."""
    for reason in CancelReason:
        await world.end_matches(reason, org_id=reason)
        assert len(await (world.canceled if reason in BY_HAND else world.left)(reason)) == 1
    (statement,) = (sql for sql in MIGRATION if "servers_canceled" in sql)
    assert f"reason IN ({', '.join(repr(str(reason)) for reason in BY_HAND)})" in statement


async def test_acknowledged_matches_are_gone_and_say_who_was_first(world: World) -> None:
    *ids, left = await world.end_matches(*[CancelReason.SERVER_LOST] * 4)
    await world.db.write([api_keys.insert(key("key_1", "ada"))])
    world.clock.at_ms = NOW_MS + 77
    assert await world.acknowledgements.acknowledge(PERSON, ids[:2]) == Acknowledged(2, NOW_MS + 77)
    with_link = Principal(org_id="org_1", key_id="ses_2", role=Role.OWNER, scopes=frozenset(Scope), session_id="ses_2")
    assert (await world.acknowledgements.acknowledge(with_link, ids[2:])).count == 1
    world.clock.at_ms += 1
    assert (await world.acknowledgements.acknowledge(PROGRAM, ids)).count == 0
    assert await world.left() == [left]
    found = [await acknowledged_by(world.db, one) for one in (*ids, left)]
    assert found == [*(AcknowledgedBy(at_ms=NOW_MS + 77, who=who) for who in ("ada", "ada", "a link")), None]
    assert await world.acts() == [
        ("ses_1", "match_acknowledged", ids[0], ""),
        ("ses_1", "match_acknowledged", ids[1], ""),
        ("ses_2", "match_acknowledged", ids[2], ""),
    ]


async def test_all_that_ended_before_a_time_are_acknowledged_but_none_that_ended_later(world: World) -> None:
    ids = await world.end_matches(*[CancelReason.SERVER_LOST] * 4)
    await create(world.db, by_hand := server("srv_by_hand"))
    await end(world.db, by_hand, Outcome(at_ms=NOW_MS, reason=CancelReason.CANCELED_BY_USER))
    assert (await world.acknowledgements.acknowledge_older(PERSON, NOW_MS + 2)).count == 2
    assert await world.left() == ids[:1:-1]
    assert await world.canceled() == ["srv_by_hand"]
    assert await world.acts() == [
        ("ses_1", "match_acknowledged", "", "all that failed before 2027-01-15T08:00:00.002Z")
    ]


@databases.on_both
async def test_acknowledgement_can_be_undone_for_ten_seconds_by_the_same_person(world: World) -> None:
    *ids, earlier, other = await world.end_matches(*[CancelReason.SERVER_LOST] * 4)
    await world.acknowledgements.acknowledge(PERSON, [earlier])
    world.clock.at_ms += 1
    done = await world.acknowledgements.acknowledge(PERSON, ids)
    another = Principal(org_id="org_1", key_id="key_9", role=Role.OWNER, scopes=frozenset(Scope))
    await world.acknowledgements.acknowledge(another, [other])
    world.clock.at_ms += UNDO_MS
    assert await world.acknowledgements.undo(PERSON, done.at_ms) == 2
    assert await world.left() == ids[::-1]
    assert await acknowledged_by(world.db, ids[0]) is None
    assert await world.acknowledgements.undo(PERSON, done.at_ms) == 0
    assert [act[:2] for act in await world.acts()].count(("ses_1", "acknowledgement_undone")) == 1
    world.clock.at_ms += UNDO_MS
    with pytest.raises(InvalidParamsError):
        await world.acknowledgements.undo(PERSON, done.at_ms)
    with pytest.raises(ForbiddenError):
        await world.acknowledgements.undo(MEMBER, world.clock.at_ms)


@databases.on_both
async def test_open_finished_unknown_and_other_matches_are_left_alone(world: World) -> None:
    (finished,) = await world.end_matches(None)
    (other,) = await world.end_matches(CancelReason.SERVER_LOST, org_id="org_2")
    await create(world.db, server("srv_open"))
    assert (await world.acknowledgements.acknowledge(PERSON, [finished, other, "srv_open", "srv_no"])).count == 0
    assert (await world.acknowledgements.acknowledge_older(PERSON, NOW_MS + 9)).count == 0
    assert await world.left("org_2") == [other]
    assert await world.acts() == []


async def test_members_may_not_acknowledge(world: World) -> None:
    (lost,) = await world.end_matches(CancelReason.SERVER_LOST)
    with pytest.raises(ForbiddenError):
        await world.acknowledgements.acknowledge(MEMBER, [lost])
    with pytest.raises(ForbiddenError):
        await world.acknowledgements.acknowledge_older(MEMBER, NOW_MS + 9)
    assert await world.left() == [lost]


@databases.on_both
async def test_matches_that_ended_before_the_migration_are_not_shown(harness: databases.Harness) -> None:
    """As an upgrade finds them: the columns and the index are removed, and the migration is applied again."""
    async with harness.open_migrated() as db:
        world = World(db)
        ended, finished = await world.end_matches(CancelReason.SERVER_LOST, None)
        await db.write(
            [
                Statement("DROP INDEX servers_failed"),
                Statement("DROP INDEX servers_canceled"),
                Statement("DROP INDEX servers_acknowledged"),
                Statement("ALTER TABLE servers DROP COLUMN acknowledged_at_ms"),
                Statement("ALTER TABLE servers DROP COLUMN acknowledged_by"),
                *map(Statement, MIGRATION),
            ]
        )
        assert await world.left() == []
        assert await acknowledged_by(db, ended) == AcknowledgedBy(at_ms=NOW_MS, who="")
        assert await acknowledged_by(db, finished) is None
        (later,) = await world.end_matches(CancelReason.SERVER_LOST, org_id="org_3")
        assert await world.left("org_3") == [later]


MIGRATION = next(statements for statements in MIGRATIONS if any("acknowledged_by" in sql for sql in statements))


def key(key_id: str, name: str) -> ApiKey:
    return ApiKey(
        id=key_id,
        org_id="org_1",
        name=name,
        prefix="mp_",
        key_hash=key_id,
        role=Role.OWNER.value,
        scopes=(),
        created_at_ms=1,
    )
