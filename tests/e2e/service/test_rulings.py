"""A no-show cancels itself and is ruled: by API and command, live and replayed in the stream, without a callback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.contract.databases import create_postgres_schema
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import CALL_S, Json, RunningService, cvars, short_match, wait_until

LATE = short_match(customCvars=cvars(scenario="incomplete_roster"))


@pytest.fixture(params=[pytest.param("sqlite", marks=pytest.mark.soak), "postgres"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningService]:
    url = None if request.param == "sqlite" else create_postgres_schema(request)
    with RunningService(tmp_path, database_url=url) as running:
        yield running


@contextmanager
def stream(service: RunningService, last_id: str) -> Iterator[list[Json]]:
    """Read the events of the organization after a position into the list."""
    events: list[Json] = []
    with closing(HTTPConnection("127.0.0.1", service.port, timeout=CALL_S)) as connection:
        headers = {"Authorization": f"Bearer {service.key}", "Last-Event-ID": last_id}
        connection.request("GET", "/api/v1/stream", headers=headers)
        sock, response = connection.sock, connection.getresponse()

        def read() -> None:
            for line in response:
                if line.startswith(b"data: "):
                    events.append(json.loads(line[6:]))

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        yield events
        sock.shutdown(socket.SHUT_RDWR)
        reader.join(CALL_S)


def rulings_in(events: list[Json]) -> list[str | None]:
    return [event["ruling"] and event["ruling"]["winner"] for event in events if event["type"] == "ruling"]


def test_no_show_that_canceled_itself_is_ruled(service: RunningService) -> None:
    with CallbackReceiver() as receiver:
        created = service.create(LATE, region="hasty", externalMatchId="cup-1", callbackUrl=receiver.url("/cup-1"))
        path = f"/api/v1/servers/{created['serverId']}/ruling"
        assert service.call("POST", path, {"winner": "team1"}).json["error"] == "MATCH_NOT_ENDED"
        (callback,) = receiver.wait_for("/cup-1")
        assert (callback.json["eventType"], callback.json["reason"]) == ("match_canceled", "incomplete_roster")
        before = service.match("cup-1")
        with stream(service, "0") as live:
            ruling = service.call("POST", path, {"winner": "team1", "reason": "no-show", "by": "Eva"})
            assert ruling.status == 201
            wait_until(lambda: rulings_in(live) == ["team1"], "the ruling is in the stream")
            assert service.match("cup-1") == {**before, "ruling": ruling.json}
            done = service.run("match", "rule", created["serverId"], "--winner", "none")
            assert done.returncode == 0, done.stderr
            wait_until(lambda: rulings_in(live) == ["team1", "none"], "the ruling of the command is in the stream")
            assert service.call("DELETE", path).status == 200
            wait_until(lambda: rulings_in(live) == ["team1", "none", None], "the withdrawal is in the stream")
        assert service.match("cup-1") == before
        service.call("POST", path, {"winner": "team1"})
        service.terminate()
        service.start()
        assert service.match("cup-1")["ruling"]["winner"] == "team1"
        with stream(service, "0") as replayed:
            wait_until(lambda: len(rulings_in(replayed)) == 4, "all rulings are replayed")
            assert rulings_in(replayed) == ["team1", "none", None, "team1"]
        service.wait_until_released(created["serverId"])
        assert [one.id for one in receiver.at("/cup-1")] == [callback.id]
        (listed,) = service.call("GET", "/api/v1/callbacks").json["items"]
        assert (listed["id"], listed["state"], listed["attemptCount"]) == (callback.id, "delivered", 1)
