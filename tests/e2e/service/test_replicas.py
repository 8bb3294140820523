"""Two replicas share a database; one is killed, and the other finishes all matches."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from tests.contract.databases import create_postgres_schema
from tests.contract.same_result import assert_same_match
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.event_readers import EventReaders, FollowedMatch
from tests.e2e.service.game_server import execute
from tests.e2e.service.read_history import read_timelines
from tests.e2e.service.reference_matches import (
    MATCHES,
    Reference,
    assert_nothing_is_left,
    comparable,
    read_rows,
)
from tests.e2e.service.running_service import Json, RunningService, has_score, two_replicas, wait_until
from tests.e2e.service.test_metrics import Samples, read_samples
from tests.effort import sized

NAMES = ("fresh", "restored")
SPEED = sized(80, 12)
"""Speed of the matches after the kill; until then it is 1, so that they are live. In `make test` games wait until their
log is acknowledged; otherwise they must last longer than the leases of the killed replica."""
CALLBACK_S = 900.0
RUNNING = 'matchpod_servers{scope="database",region="sandbox",status="running"}'


class ReplicaRun(NamedTuple):
    """What was recorded about all matches."""

    killed: RunningService
    survivor: RunningService
    database_url: str
    servers: dict[str, str]
    drivers: dict[str, str]
    """Which replica drove each match before one was killed: `killed` or `survivor`."""
    views: dict[str, tuple[Json, Json]]
    """The live views of each match at the same time: of the replica that drove it, then of the other."""
    samples: tuple[Samples, Samples]
    """The metrics of both replicas, when both had counted all matches."""
    callbacks: dict[str, list[Received]]
    followed: dict[str, FollowedMatch]
    """What was read from the replica that did not drive the match, or from the survivor once that one was killed."""
    timelines: dict[str, dict[str, list[Json]]]


@pytest.fixture(scope="module")
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, reference: Reference
) -> Iterator[ReplicaRun]:
    """Play all matches from creation to release."""
    url = create_postgres_schema(request)
    folder = tmp_path_factory.mktemp("replicas")
    with (
        ThreadPoolExecutor(1) as executor,
        CallbackReceiver() as receiver,
        two_replicas(folder, url) as (killed, survivor),
        EventReaders() as readers,
    ):
        executor.submit(lambda: reference.matches)
        servers = {
            name: (killed, survivor)[number % 2].create(
                MATCHES[name].settings_at(SPEED), callbackUrl=receiver.url(f"/{name}"), externalMatchId=name
            )["serverId"]
            for number, name in enumerate(NAMES)
        }
        for server_id in servers.values():
            execute(survivor.wait_for(server_id, has_score), "sim_speed 1")
        drivers = _drivers(killed, survivor, url, servers)
        followed = {
            name: readers.follow(server_id, *((survivor,) if drivers[name] == "killed" else (killed, survivor)))
            for name, server_id in servers.items()
        }
        views = {
            name: _views(*((killed, survivor) if drivers[name] == "killed" else (survivor, killed)), server_id)
            for name, server_id in servers.items()
        }
        wait_until(lambda: all(one.polled and one.pushed for one in followed.values()), "all readers have items")
        samples = wait_until(lambda: _samples(killed, survivor), "both replicas report the same of what they share")
        killed.kill()
        for name, driver in drivers.items():
            if driver == "survivor":  # resuming a match sets its own speed
                execute(survivor.get(servers[name]), f"sim_speed {SPEED}")
        for name in NAMES:
            receiver.wait_for(f"/{name}", within_s=CALLBACK_S)
        wait_until(lambda: not survivor.server_processes(), "all game servers have ended")
        wait_until(
            lambda: not read_rows(survivor, url, "SELECT id FROM servers WHERE phase <> 'released'"),
            "all matches are released",
        )
        readers.finish()
        timelines = {name: read_timelines(survivor, server_id) for name, server_id in servers.items()}
        due = "SELECT id FROM callbacks WHERE next_at_ms IS NOT NULL"
        wait_until(lambda: not read_rows(survivor, url, due), "no callback is due")
        callbacks = {name: receiver.at(f"/{name}") for name in NAMES}
        yield ReplicaRun(killed, survivor, url, servers, drivers, views, samples, callbacks, followed, timelines)


def _drivers(killed: RunningService, survivor: RunningService, url: str, servers: dict[str, str]) -> dict[str, str]:
    assert killed.process is not None
    owner_mark = f":{killed.process.pid}:"
    owned = {
        str(id_)
        for id_, owner in read_rows(survivor, url, "SELECT id, lease_owner FROM servers")
        if owner_mark in str(owner)
    }
    return {name: "killed" if server_id in owned else "survivor" for name, server_id in servers.items()}


def _views(driver: RunningService, other: RunningService, server_id: str) -> tuple[Json, Json]:
    """Read the live view of a match at both replicas; repeat until it did not change in between."""

    def poll() -> tuple[Json, Json] | None:
        before = driver.get(server_id)["match"]
        shown = other.get(server_id)["match"]
        return (before, shown) if driver.get(server_id)["match"] == before else None

    return wait_until(poll, "two reads without a change in between")


def _samples(killed: RunningService, survivor: RunningService) -> tuple[Samples, Samples] | None:
    """Read the metrics of both replicas; None unless those that are about all replicas are the same."""
    both = read_samples(killed), read_samples(survivor)
    is_counted = all(one.get(RUNNING) == len(NAMES) for one in both)
    shared = [{series: number for series, number in one.items() if 'scope="' in series} for one in both]
    return both if is_counted and shared[0] == shared[1] else None


def test_both_replicas_drive_matches(run: ReplicaRun) -> None:
    assert set(run.drivers.values()) == {"killed", "survivor"}


def test_sums_over_replicas_are_right(run: ReplicaRun) -> None:
    for series in ("matchpod_matches_followed", 'matchpod_matches_created_total{region="sandbox"}'):
        assert sum(one[series] for one in run.samples) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_other_replica_shows_the_same_live_view(run: ReplicaRun, name: str) -> None:
    driven, shown = run.views[name]
    assert sum(driven["score"].values()) > 0
    assert shown == driven


@pytest.mark.parametrize("name", NAMES)
def test_result_equals_that_of_an_uninterrupted_match(run: ReplicaRun, reference: Reference, name: str) -> None:
    assert_same_match(comparable(run.callbacks[name][0].json), reference.matches[name].callback)


@pytest.mark.parametrize("name", NAMES)
def test_readers_at_the_other_replica_get_every_event_once_and_in_order(
    run: ReplicaRun, reference: Reference, name: str
) -> None:
    followed = run.followed[name]
    followed.assert_received(run.timelines[name])
    reference.assert_same_timelines(run.timelines[name].values(), name)
    assert followed.breaks == (1 if run.drivers[name] == "survivor" else 0)
    assert followed.ends == 1


def test_every_callback_is_sent_once(run: ReplicaRun) -> None:
    assert {name: len(received) for name, received in run.callbacks.items()} == dict.fromkeys(NAMES, 1)


def test_surviving_replica_returns_the_results(run: ReplicaRun) -> None:
    for name, (callback,) in run.callbacks.items():
        match = run.survivor.match(name)
        assert match["status"] == "stopped"
        assert match["result"] == callback.json["result"]


def test_only_the_matches_of_the_killed_replica_were_resumed(run: ReplicaRun) -> None:
    resumed = {entry["server_id"] for entry in run.survivor.log() if entry["message"] == "match resumed"}
    assert resumed == {run.servers[name] for name, driver in run.drivers.items() if driver == "killed"}


def test_every_match_ends_once_and_leaves_no_slot_or_server(run: ReplicaRun) -> None:
    assert_nothing_is_left(run.survivor, run.database_url, run.servers.values())
    assert [entry for entry in run.survivor.log() if entry["level"] in ("ERROR", "CRITICAL")] == []
