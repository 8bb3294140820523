"""Two processes share a database and its matches; one dies for good, and the other finishes what it had begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import NamedTuple

import pytest

from tests.contract.databases import create_postgres_schema
from tests.contract.same_result import assert_same_match
from tests.e2e.service.callback_receiver import CallbackReceiver, Received
from tests.e2e.service.event_readers import EventReaders, Followed
from tests.e2e.service.read_history import read_timelines
from tests.e2e.service.running_service import Json, RunningService, default_regions, wait_until
from tests.e2e.service.same_matches import (
    MATCHES,
    assert_nothing_is_left,
    assert_same_timelines,
    comparable,
    reference,
    rows,
)

NAMES = ("live", "leaver", "restored", "starting", "fresh", "told")
SPEED = 12
"""The matches last longer than the claims of the process that dies."""
STORY_S = 900.0


class Story(NamedTuple):
    """What came of it."""

    dead: RunningService
    heir: RunningService
    database_url: str
    servers: dict[str, str]
    drivers: dict[str, str]
    """Which process drove each match before one died: `dead` or `heir`."""
    views: dict[str, tuple[Json, Json]]
    """Each match as the two processes showed it at the same time, the one that drove it first."""
    callbacks: dict[str, list[Received]]
    followed: dict[str, Followed]
    """What was read of each match at the process that did not drive it, as long as that was there."""
    timelines: dict[str, dict[str, list[Json]]]


@pytest.fixture(scope="module")
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """All matches from their creation to their release."""
    reference()
    url = create_postgres_schema(request)
    folder = tmp_path_factory.mktemp("replicas")
    with CallbackReceiver() as receiver, _Replicas(folder, url) as (dead, heir), EventReaders() as readers:
        servers = {
            name: (dead, heir)[number % 2].create(
                MATCHES[name].at(SPEED), callbackUrl=receiver.url(f"/{name}"), externalMatchId=name
            )["serverId"]
            for number, name in enumerate(NAMES)
        }
        for server_id in servers.values():
            heir.wait_for(server_id, _has_score)
        drivers = _drivers(dead, heir, url, servers)
        followed = {
            name: readers.follow(server_id, *((heir,) if drivers[name] == "dead" else (dead, heir)))
            for name, server_id in servers.items()
        }
        views = {
            name: _views(*((dead, heir) if drivers[name] == "dead" else (heir, dead)), server_id)
            for name, server_id in servers.items()
        }
        wait_until(lambda: all(one.polled and one.pushed for one in followed.values()), "all are followed")
        dead.kill()
        for name in NAMES:
            receiver.wait_for(f"/{name}", within_s=STORY_S)
        wait_until(lambda: not heir.server_processes(), "all servers are gone")
        wait_until(lambda: not rows(heir, url, "SELECT id FROM servers WHERE phase <> 'released'"), "all is released")
        readers.finish()
        timelines = {name: read_timelines(heir, server_id) for name, server_id in servers.items()}
        sleep(1)  # for what should not come
        callbacks = {name: receiver.at(f"/{name}") for name in NAMES}
        yield Story(dead, heir, url, servers, drivers, views, callbacks, followed, timelines)


class _Replicas:
    """Two processes on one database and one data folder, each with a port of its own."""

    def __init__(self, folder: Path, database_url: str) -> None:
        regions = default_regions()
        self.dead = RunningService(folder / "one", database_url=database_url, regions=regions, data_dir=folder / "data")
        self.heir = RunningService(folder / "two", database_url=database_url, regions=regions, data_dir=folder / "data")

    def __enter__(self) -> tuple[RunningService, RunningService]:
        try:
            self.dead.start()
            self.heir.key = self.dead.key
            self.heir.start()
        except BaseException:
            self.__exit__()
            raise
        return self.dead, self.heir

    def __exit__(self, *_: object) -> None:
        self.heir.close()
        self.dead.close()


def _has_score(server: Json) -> bool:
    return _score(server) > 0


def _score(server: Json) -> int:
    match = server["match"]
    return match["score"]["team1"] + match["score"]["team2"] if match else 0


def _drivers(dead: RunningService, heir: RunningService, url: str, servers: dict[str, str]) -> dict[str, str]:
    assert dead.process is not None
    of_the_dead = f":{dead.process.pid}:"
    owned = {
        str(id_) for id_, owner in rows(heir, url, "SELECT id, lease_owner FROM servers") if of_the_dead in str(owner)
    }
    return {name: "dead" if server_id in owned else "heir" for name, server_id in servers.items()}


def _views(driver: RunningService, other: RunningService, server_id: str) -> tuple[Json, Json]:
    """Twice the same match at the same time: looked at until nothing happened between the two looks."""

    def look() -> tuple[Json, Json] | None:
        before = driver.get(server_id)["match"]
        seen = other.get(server_id)["match"]
        return (before, seen) if driver.get(server_id)["match"] == before else None

    return wait_until(look, "a moment in which nothing happens")


def test_both_drive_matches(story: Story) -> None:
    assert set(story.drivers.values()) == {"dead", "heir"}


@pytest.mark.parametrize("name", NAMES)
def test_the_process_that_does_not_drive_a_match_shows_how_it_stands(story: Story, name: str) -> None:
    driven, seen = story.views[name]
    assert sum(driven["score"].values()) > 0
    assert seen == driven


@pytest.mark.parametrize("name", NAMES)
def test_every_match_ends_as_if_nothing_had_happened(story: Story, name: str) -> None:
    assert_same_match(comparable(story.callbacks[name][0].json), reference()[name].callback)


@pytest.mark.parametrize("name", NAMES)
def test_whoever_reads_at_the_other_process_gets_every_event_once_and_in_order(story: Story, name: str) -> None:
    followed = story.followed[name]
    followed.assert_got(story.timelines[name])
    assert_same_timelines(story.timelines[name].values(), name)
    assert followed.breaks == (1 if story.drivers[name] == "heir" else 0)
    assert followed.ends == 1


def test_every_callback_is_sent_once(story: Story) -> None:
    assert {name: len(came) for name, came in story.callbacks.items()} == dict.fromkeys(NAMES, 1)


def test_the_result_is_asked_of_the_process_that_is_left(story: Story) -> None:
    for name, (callback,) in story.callbacks.items():
        match = story.heir.match(name)
        assert match["status"] == "stopped"
        assert match["result"] == callback.json["result"]


def test_matches_of_the_dead_were_picked_up_and_those_of_the_living_were_not(story: Story) -> None:
    picked_up = {entry["server_id"] for entry in story.heir.log() if entry["message"] == "match resumed"}
    assert picked_up == {story.servers[name] for name, driver in story.drivers.items() if driver == "dead"}


def test_nothing_is_left(story: Story) -> None:
    assert_nothing_is_left(story.heir, story.database_url, story.servers.values())
    assert [entry for entry in story.heir.log() if entry["level"] in ("ERROR", "CRITICAL")] == []
