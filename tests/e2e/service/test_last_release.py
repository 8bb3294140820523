"""A process of the last release and one of this version share a database, and drive each other's matches.

Each takes over a live match of the other, although it cannot read the other's snapshot: it reads the log.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx
import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import execute
from tests.e2e.service.reference_matches import read_rows
from tests.e2e.service.running_service import (
    Json,
    RunningService,
    cvars,
    default_regions,
    has_score,
    short_match,
    wait_until,
)
from tests.last_release import NoHistoryError, extract

NAMES = ("of-the-last-release", "of-this-version")
SETTINGS = short_match(maxRounds=24, customCvars=cvars(speed=50, sim_lockstep=1))
"""Slow enough to be live when the other process takes the match over, which sets this speed again."""
LABELS = {"event": "upgrade"}
"""Of the match of this version, which the last release drives for a while."""
CALLBACK_S = RESUME_S = 120.0
USUAL = (b"event: match_created", b"event: server_running", b"event: match_ended")


class Both(NamedTuple):
    """A process of each version."""

    old: RunningService
    new: RunningService
    url: str


@pytest.fixture
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    """Provide a process of the last release that runs, and one of this version that does not run yet."""
    try:
        sources = extract(tmp_path / "last-release")
    except NoHistoryError as exc:
        pytest.skip(str(exc))
    url, regions, data = create_postgres_schema(request), default_regions(), tmp_path / "data"

    def service(name: str, sources: dict[str, str] | None = None) -> RunningService:
        settings = {"stop_grace_s": "0"}  # there is no proxy
        return RunningService(
            tmp_path / name, database_url=url, regions=regions, data_dir=data, settings=settings, sources=sources
        )

    old, new = service("old", sources), service("new")
    try:
        old.start()
        new.key = old.key
        yield Both(old, new, url)
    finally:
        new.close()
        old.close()


def wait_until_resumed(service: RunningService, server_id: str) -> None:
    def is_resumed() -> bool:
        return any(one["message"] == "match resumed" and one["server_id"] == server_id for one in service.log())

    wait_until(is_resumed, f"{server_id} is resumed", within_s=RESUME_S)
    execute(service.wait_for(server_id, has_score, within_s=RESUME_S), "sim_speed 1")


@contextmanager
def frozen(service: RunningService) -> Iterator[None]:
    """Freeze a service meanwhile, for less time than its leases last."""
    assert service.process is not None
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_two_versions_drive_matches_of_one_database_and_take_them_over(both: Both) -> None:
    old, new, url = both
    with CallbackReceiver() as receiver:

        def create(service: RunningService, name: str, settings: Json = SETTINGS) -> str:
            created = service.create(settings, callbackUrl=receiver.url(f"/{name}"), externalMatchId=name)
            return str(created["serverId"])

        def slow_down(service: RunningService, server_id: str) -> None:
            execute(service.wait_for(server_id, has_score), "sim_speed 1")

        ids = [create(old, NAMES[0])]
        slow_down(old, ids[0])
        new.start()
        unowned = "SELECT id FROM servers WHERE lease_owner IS NULL"
        with frozen(old):  # so that it does not acquire the second match too
            ids.append(create(new, NAMES[1], {**SETTINGS, "labels": LABELS}))
            wait_until(lambda: not read_rows(new, url, unowned), "the second match is acquired")
        slow_down(new, ids[1])
        owners = {str(owner) for (owner,) in read_rows(new, url, "SELECT lease_owner FROM servers")}
        assert len(owners) == 2, "each process drives the match that was created through it"
        # The last release does not know actions: one is under way until this version drives the match.
        for server_id in ids:
            asked = new.call("POST", f"/api/v1/servers/{server_id}/actions", {"type": "say", "text": "Upgrade"})
            assert asked.status == 202, asked.raw
        assert new.terminate()[0] == 0
        wait_until_resumed(old, ids[1])
        new.start()
        assert old.terminate()[0] == 0
        for server_id in ids:
            wait_until_resumed(new, server_id)
            execute(new.get(server_id), "sim_speed 300")
        for name in NAMES:
            receiver.wait_for(f"/{name}", within_s=CALLBACK_S)
        rest = "SELECT id FROM servers WHERE phase <> 'released'"
        wait_until(lambda: not read_rows(new, url, rest), "all matches are released", within_s=RESUME_S)
        assert [len(receiver.at(f"/{name}")) for name in NAMES] == [1, 1]
        assert [receiver.at(f"/{name}")[0].json.get("labels") for name in NAMES] == [None, LABELS]
        actions = [new.call("GET", f"/api/v1/servers/{server_id}/actions").json["items"] for server_id in ids]
        assert [len(items) for items in actions] == [1, 1]
        assert all(items[0]["state"] in ("done", "failed") for items in actions)
        listed = new.call("GET", "/api/v1/servers?label=event:upgrade").json["items"]
        assert [one["serverId"] for one in listed] == ids[1:]
    # Commands of the last release open the migrated database, and read what this version has stored.
    assert all(new.match(name)["result"]["winner"] is not None for name in NAMES)
    done = old.run("recompute", "--all")
    assert (done.returncode, "not recomputed" in done.stderr) == (0, False), done


@pytest.mark.soak
def test_last_release_reads_matches_that_this_version_has_ruled(both: Both) -> None:
    old, new, _ = both
    new.start()
    server_id = old.create(SETTINGS, externalMatchId="cup-1")["serverId"]
    old.cancel(server_id)
    before = old.match("cup-1")
    ruled = new.call("POST", f"/api/v1/servers/{server_id}/ruling", {"winner": "team1"})
    assert ruled.status == 201, ruled.raw
    assert old.match("cup-1") == before
    assert old.get(server_id)["reason"] == "canceled_by_user"
    with closing(HTTPConnection("127.0.0.1", old.port, timeout=CALLBACK_S)) as connection:
        connection.request("GET", "/api/v1/stream?lastEventId=0", headers={"Authorization": f"Bearer {old.key}"})
        events = (line.strip() for line in connection.getresponse() if line.startswith(b"event: "))
        assert next(event for event in events if event not in USUAL) == b"event: ruling"


@pytest.mark.soak
@pytest.mark.parametrize(("role", "is_known"), [("owner", True), ("caster", False)])
def test_people_with_a_role_have_no_rights_in_the_last_release(both: Both, role: str, *, is_known: bool) -> None:
    old, new, _ = both
    new.start()

    def link() -> str:
        done = new.run("console", "--org", "demo", "--name", "Ann", "--role", role)
        assert done.returncode == 0, done.stderr
        return urlsplit(done.stdout.strip()).path

    def send(service: RunningService, method: str, path: str, **headers: str) -> httpx.Response:
        url = f"http://127.0.0.1:{service.port}{path}"
        form = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
        return httpx.request(method, url, headers={**form, **headers})

    assert send(old, "POST", link()).status_code == (303 if is_known else 401)
    opened = send(new, "POST", link())
    assert opened.status_code == 303
    cookie = opened.headers["set-cookie"].partition(";")[0]
    assert send(new, "GET", "/console/matches", Cookie=cookie).status_code == 200
    answer = send(old, "GET", "/console/matches", Cookie=cookie)
    assert (answer.status_code, answer.headers.get("location", "")[:14]) == (
        (200, "") if is_known else (303, "/console/login")
    )
