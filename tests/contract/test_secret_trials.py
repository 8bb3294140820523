"""Trials of a fleet secret: however many processes try servers, only a few are lost to a wrong one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from matchpod.adapters.fleets.agones import AgonesFleet
from matchpod.adapters.fleets.agones_passwords import MAX_MISMATCHES
from matchpod.adapters.fleets.secret_trials import LocalTrials
from matchpod.ports import Database, FleetUnavailableError, SecretTrials
from matchpod.service.regions.secret_trials import StoredTrials
from matchpod.storage import secret_trials
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.agones_cluster import AgonesCluster, agones_cluster, following, order
from tests.contract.databases import Replicas
from tests.waiting import until

harness = databases.mostly_sqlite_harness

PLACES = 3
NEW = b"the secret that replaces it"
REPLICAS = 8
SENTENCE = "3 game servers in a row rejected the password that is derived from the fleet secret"


def stored(db: Database, region: str = "eu", clock: ManualClock | None = None) -> StoredTrials:
    return StoredTrials(db, clock or ManualClock(), region, new_id=partial(secrets.token_hex, 8))


@pytest.fixture(params=["database", "memory"])
def both(request: pytest.FixtureRequest, db: Database) -> Callable[[], SecretTrials]:
    """Returns the trials of one more process: in memory there is only one."""
    if request.param == "database":
        return lambda: stored(db)
    local = LocalTrials()
    return lambda: local


@databases.on_both
async def test_no_more_servers_are_tried_than_may_reject_the_secret(both: Callable[[], SecretTrials]) -> None:
    one, other = both(), both()
    begun = [await trials.begin("a", PLACES) for trials in (one, other, one, other)]
    assert begun[PLACES:] == [None]
    assert len(set(begun)) == PLACES + 1
    assert await other.begin("b", PLACES) is not None, "another secret has places of its own"

    first, second, third = map(str, begun[:PLACES])
    await one.reject("a", first)
    await other.drop("a", second)
    assert (await one.rejected("a"), await other.rejected("a"), await other.rejected("b")) == (1, 1, 0)
    again = await one.begin("a", PLACES)
    assert again is not None
    assert await one.begin("a", PLACES) is None
    await one.reject("a", again)
    await other.reject("a", third)
    assert await other.rejected("a") == PLACES
    assert await other.begin("a", PLACES) is None


@databases.on_both
async def test_a_server_that_accepts_the_secret_frees_all_places_but_those_in_use(
    both: Callable[[], SecretTrials],
) -> None:
    trials = both()
    rejected, running, accepted = [str(await trials.begin("a", PLACES)) for _ in range(PLACES)]
    await trials.reject("a", rejected)
    await trials.accept("a", accepted)
    assert await trials.rejected("a") == 0
    assert [await trials.begin("a", PLACES) is None for _ in range(PLACES)] == [False, False, True]
    await trials.accept("a", None)
    assert await trials.begin("a", PLACES) is None, "nothing was rejected meanwhile"
    await trials.reject("a", running)
    assert await trials.rejected("a") == 1


@databases.on_both
async def test_trial_of_a_process_that_died_ends_by_itself(db: Database) -> None:
    clock = ManualClock()
    trials = stored(db, clock=clock)
    dead = [await trials.begin("a", PLACES) for _ in range(PLACES)]
    clock.at_ms += secret_trials.TRIAL_MS - 1
    assert await trials.begin("a", PLACES) is None
    clock.at_ms += 1
    assert await trials.begin("a", PLACES) is not None
    await trials.reject("a", str(dead[0]))  # its place is another trial's
    assert await trials.rejected("a") == 0


async def test_secrets_replaced_long_ago_are_forgotten(db: Database) -> None:
    clock = ManualClock()
    trials, elsewhere = stored(db, clock=clock), stored(db, "us", clock)
    for each in (trials, elsewhere):
        await each.reject("old", str(await each.begin("old", PLACES)))
    clock.at_ms += secret_trials.KEPT_MS + 1
    await trials.reject("new", str(await trials.begin("new", PLACES)))
    assert (await trials.rejected("old"), await trials.rejected("new"), await elsewhere.rejected("old")) == (0, 1, 1)


@databases.on_both
async def test_places_taken_at_the_same_moment_are_not_exceeded(replicas: Replicas) -> None:
    begun = await asyncio.gather(*(stored(db).begin("a", PLACES) for db in replicas * 10))
    # Where two take the same place at the same moment, one of them looks again.
    taken = [trial for trial in begun if trial is not None]
    assert 1 <= len(taken) <= PLACES
    (db, _) = replicas
    rows = await db.read("SELECT place FROM secret_trials")
    assert len(rows) == len(taken)


async def orders(fleet: AgonesFleet, name: str, count: int) -> list[object]:
    found = await asyncio.gather(
        *(fleet.allocate(order(f"srv_{name}{number}")) for number in range(count)), return_exceptions=True
    )
    return list(found)


async def test_wrong_secret_costs_three_servers_of_all_processes_together(db: Database, tmp_path: Path) -> None:
    async with agones_cluster(tmp_path, replicas=REPLICAS, read_s=0.05) as cluster:
        fleets = [create(cluster, db) for _ in range(2)]
        async with following(fleets[0]), following(fleets[1]):
            outcomes = await asyncio.gather(*(orders(fleet, name, 4) for fleet, name in zip(fleets, "ab", strict=True)))
            assert {type(one) for found in outcomes for one in found} == {FleetUnavailableError}
            assert len(cluster.api.names("Ready")) == REPLICAS - MAX_MISMATCHES
            await until(lambda: all((fleet.fault or "").startswith(SENTENCE) for fleet in fleets))

        restarted = create(cluster, db)
        with pytest.raises(FleetUnavailableError, match=SENTENCE):
            await restarted.allocate(order("srv_later"))
        assert len(cluster.api.names("Ready")) == REPLICAS - MAX_MISMATCHES


async def test_all_processes_go_on_once_a_waiting_server_accepts_the_secret(db: Database, tmp_path: Path) -> None:
    async with agones_cluster(tmp_path, replicas=MAX_MISMATCHES, read_s=0.05) as cluster:
        fleets = [create(cluster, db) for _ in range(2)]
        async with following(fleets[0]), following(fleets[1]):
            await orders(fleets[0], "a", MAX_MISMATCHES)
            await until(lambda: all(fleet.fault is not None for fleet in fleets))
            cluster.api.game_servers.secret = NEW
            await cluster.api.scale(MAX_MISMATCHES + 2)
            await until(lambda: all(fleet.fault is None for fleet in fleets))
            for number, fleet in enumerate(fleets):
                assert await fleet.allocate(order(f"srv_fixed{number}")) is not None


def create(cluster: AgonesCluster, db: Database, secret: bytes = NEW) -> AgonesFleet:
    return cluster.create(trials=stored(db), read_secret=lambda: secret)
