"""Who follows matches from outside? One who polls every timeline, and one a match who is pushed what happens.

A service that dies is to them what it is to every caller: a connection that breaks or is refused. They come back where
they were, to the next service where there are several.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from tests.e2e.service.read_history import page
from tests.e2e.service.running_service import CALL_S, WAIT_S, Json, RunningService, wait_until

POLL_S = 1.0
RETRY_S = 0.3
LIMIT = 23
"""Items asked for at once: fewer than some pauses between two polls bring."""
JOIN_S = 400.0

_BROKEN = (OSError, http.client.HTTPException)
"""What a caller sees of a service that dies."""


class Followed:
    """What the two readers of one match have got so far, by the id of the map."""

    def __init__(self, server_id: str, services: Sequence[RunningService]) -> None:
        self.server_id = server_id
        self.services = services
        self.polled: dict[str, list[Json]] = {}
        self.pushed: dict[str, list[Json]] = {}
        self.failed_polls = 0
        self.is_open = False
        """True while the stream is read."""
        self.breaks = 0
        """How often the stream broke off without an end."""
        self.ends = 0
        """How often it ended in order."""
        self.is_over = False
        """True when the stream was answered that nothing more will come."""

    def assert_got(self, told: Mapping[str, list[Json]]) -> None:
        """Both got every item of these timelines once, in order, and nothing else."""
        for got in (self.polled, self.pushed):
            assert {map_id: items for map_id, items in got.items() if items} == {
                map_id: items for map_id, items in told.items() if items
            }, self.server_id


class EventReaders:
    """Readers from `with` to its end, each in a thread of its own."""

    def __init__(self) -> None:
        self._followed: list[Followed] = []
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._last_round = threading.Event()
        self._connections: set[http.client.HTTPConnection] = set()
        self._poller = threading.Thread(target=self._guarded, args=(self._poll,), daemon=True)

    def __enter__(self) -> EventReaders:
        self._poller.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._stopping.set()
        for connection in tuple(self._connections):
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        for thread in (*self._threads, self._poller):
            thread.join(JOIN_S)

    def follow(self, server_id: str, *services: RunningService) -> Followed:
        """Follow a match at the first of these services, or at the next when that is not there."""
        followed = Followed(server_id, services)
        self._followed.append(followed)
        thread = threading.Thread(target=self._guarded, args=(self._stream, followed), daemon=True)
        self._threads.append(thread)
        thread.start()
        return followed

    def finish(self) -> None:
        """Return when everybody has everything; all matches have ended."""
        wait_until(
            lambda: self._failures or all(one.is_over for one in self._followed),
            lambda: f"all streams are over: {[(one.server_id, one.ends) for one in self._followed if not one.is_over]}",
            within_s=WAIT_S,
        )
        self._last_round.set()
        self._poller.join(JOIN_S)
        assert not self._poller.is_alive()
        assert self._failures == []

    def _guarded(self, work: object, *given: object) -> None:
        assert callable(work)
        try:
            work(*given)
        except BaseException as exc:
            self._failures.append(exc)
            raise

    # --- polling ----------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        while not self._stopping.is_set():
            is_last = self._last_round.is_set()
            missed = [one for one in tuple(self._followed) if not _poll_match(one)]
            if is_last and not missed:
                return
            self._stopping.wait(POLL_S)

    # --- streams ----------------------------------------------------------------------------------------------------

    def _stream(self, one: Followed) -> None:
        turn, last_id = 0, ""
        while not (one.is_over or self._stopping.is_set()):
            service = one.services[turn % len(one.services)]
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=CALL_S)
            self._connections.add(connection)
            try:
                for event_id, item in _events(connection, service.key, one, last_id):
                    last_id = event_id
                    one.pushed.setdefault(item.pop("mapId"), []).append(item)
                    del item["mapNumber"]
                one.ends += 1
            except _OverError:
                one.is_over = True
            except (_RefusedError, ConnectionRefusedError):
                turn += 1
            except _BROKEN:
                one.breaks += 1
                turn += 1
            finally:
                one.is_open = False
                self._connections.discard(connection)
                connection.close()
            self._stopping.wait(RETRY_S)


class _OverError(Exception):
    """Nothing more will come."""


class _RefusedError(Exception):
    """The service starts or stops."""


def _maps(service: RunningService, server_id: str) -> list[Json]:
    return page(service, f"/api/v1/cs2/matches?serverId={server_id}")


def _poll_match(one: Followed) -> bool:
    """Read what is new on all maps of a match; False when the service is not there, and another is next."""
    service = one.services[one.failed_polls % len(one.services)]
    try:
        if not one.polled:
            one.polled = {item["id"]: [] for item in _maps(service, one.server_id)}
        if all(_poll_map(service, map_id, items) for map_id, items in one.polled.items()):
            return True
    except _BROKEN:
        pass
    one.failed_polls += 1
    return False


def _poll_map(service: RunningService, map_id: str, items: list[Json]) -> bool:
    while True:
        after = items[-1]["seq"] if items else 0
        answer = service.call("GET", f"/api/v1/cs2/matches/{map_id}/events?afterSeq={after}&limit={LIMIT}")
        if answer.status == 503:
            return False
        assert answer.status == 200, answer.raw
        items += answer.json["items"]
        assert answer.json["nextAfterSeq"] == (items[-1]["seq"] if items else 0)
        if len(answer.json["items"]) < LIMIT:
            return True


def _events(
    connection: http.client.HTTPConnection, key: str, one: Followed, last_id: str
) -> Iterator[tuple[str, Json]]:
    """The whole events of a stream with their ids, until it ends in order."""
    headers = {"Authorization": f"Bearer {key}", **({"Last-Event-ID": last_id} if last_id else {})}
    connection.request("GET", f"/api/v1/servers/{one.server_id}/stream", headers=headers)
    answer = connection.getresponse()
    if answer.status == 204:
        raise _OverError
    if answer.status == 503:
        raise _RefusedError
    assert answer.status == 200, answer.read()
    assert answer.headers["Content-Type"] == "text/event-stream"
    one.is_open = True
    rest = b""
    while part := answer.read1(65_536):
        *blocks, rest = (rest + part).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            if b"data" in fields:
                item = json.loads(fields[b"data"])
                assert fields[b"event"].decode() == item["type"]
                yield fields[b"id"].decode(), item
    assert rest == b""
