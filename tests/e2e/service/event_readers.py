"""Follow matches as API clients: one thread polls all timelines, and one thread per match reads its stream.

When a service dies, connections break or are refused, as for every client. The readers then resume after the last item
they received, at the next service if there are several.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType

from tests.e2e.service.read_history import read_page
from tests.e2e.service.running_service import CALL_S, WAIT_S, Json, RunningService, wait_until

POLL_S = 1.0
RETRY_S = 0.3
LIMIT = 23
"""Page size of polls, so small that the new items sometimes need several pages."""
JOIN_S = 400.0

_BROKEN = (OSError, http.client.HTTPException)
"""Errors that a client gets when a service dies."""


class FollowedMatch:
    """What the two readers of one match have received so far, by map id."""

    def __init__(self, server_id: str, services: Sequence[RunningService]) -> None:
        self.server_id = server_id
        self.services = services
        self.polled: dict[str, list[Json]] = {}
        self.pushed: dict[str, list[Json]] = {}
        self.failed_polls = 0
        self.is_open = False
        """True while the stream is connected."""
        self.breaks = 0
        """Number of times the connection of the stream broke."""
        self.ends = 0
        """Number of times the stream was closed properly."""
        self.is_complete = False
        """True if the service responded that the stream is complete."""

    def assert_received(self, timelines: Mapping[str, list[Json]]) -> None:
        """Both readers received every item of these timelines once, in order, and nothing else."""
        for received in (self.polled, self.pushed):
            assert {map_id: items for map_id, items in received.items() if items} == {
                map_id: items for map_id, items in timelines.items() if items
            }, self.server_id


class EventReaders:
    """A context manager that runs the readers in threads."""

    def __init__(self) -> None:
        self._followed: list[FollowedMatch] = []
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []
        self._stopping = threading.Event()
        self._last_poll = threading.Event()
        self._connections: set[http.client.HTTPConnection] = set()
        self._poller = threading.Thread(target=self._record_failure, args=(self._poll,), daemon=True)

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

    def follow(self, server_id: str, *services: RunningService) -> FollowedMatch:
        """Follow a match at the first of these services, or at the next one if that is unavailable."""
        followed = FollowedMatch(server_id, services)
        self._followed.append(followed)
        thread = threading.Thread(target=self._record_failure, args=(self._stream, followed), daemon=True)
        self._threads.append(thread)
        thread.start()
        return followed

    def finish(self) -> None:
        """Wait until all readers have received everything; all matches must have ended."""
        wait_until(
            lambda: self._failures or all(one.is_complete for one in self._followed),
            lambda: f"open streams: {[(one.server_id, one.ends) for one in self._followed if not one.is_complete]}",
            within_s=WAIT_S,
        )
        self._last_poll.set()
        self._poller.join(JOIN_S)
        assert not self._poller.is_alive()
        assert self._failures == []

    def _record_failure(self, read: object, *args: object) -> None:
        assert callable(read)
        try:
            read(*args)
        except BaseException as exc:
            self._failures.append(exc)
            raise

    # --- polling ----------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        while not self._stopping.is_set():
            is_last = self._last_poll.is_set()
            missed = [one for one in tuple(self._followed) if not _poll_match(one)]
            if is_last and not missed:
                return
            self._stopping.wait(POLL_S)

    # --- streams ----------------------------------------------------------------------------------------------------

    def _stream(self, one: FollowedMatch) -> None:
        attempt, last_id = 0, ""
        while not (one.is_complete or self._stopping.is_set()):
            service = one.services[attempt % len(one.services)]
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=CALL_S)
            self._connections.add(connection)
            try:
                for event_id, item in _events(connection, service.key, one, last_id):
                    last_id = event_id
                    one.pushed.setdefault(item.pop("mapId"), []).append(item)
                    del item["mapNumber"]
                one.ends += 1
            except _CompleteError:
                one.is_complete = True
            except (_UnavailableError, ConnectionRefusedError):
                attempt += 1
            except _BROKEN:
                one.breaks += 1
                attempt += 1
            finally:
                one.is_open = False
                self._connections.discard(connection)
                connection.close()
            self._stopping.wait(RETRY_S)


class _CompleteError(Exception):
    """The stream is complete."""


class _UnavailableError(Exception):
    """The service is starting or stopping."""


def _maps(service: RunningService, server_id: str) -> list[Json]:
    return read_page(service, f"/api/v1/cs2/matches?serverId={server_id}")


def _poll_match(one: FollowedMatch) -> bool:
    """Read the new items of all maps of a match; return False, and use the next service, if this one is unavailable."""
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
        response = service.call("GET", f"/api/v1/cs2/matches/{map_id}/events?afterSeq={after}&limit={LIMIT}")
        if response.status == 503:
            return False
        assert response.status == 200, response.raw
        items += response.json["items"]
        assert response.json["nextAfterSeq"] == (items[-1]["seq"] if items else 0)
        if len(response.json["items"]) < LIMIT:
            return True


def _events(
    connection: http.client.HTTPConnection, key: str, one: FollowedMatch, last_id: str
) -> Iterator[tuple[str, Json]]:
    """Yield the complete events of a stream with their ids, until it is closed properly."""
    headers = {"Authorization": f"Bearer {key}", **({"Last-Event-ID": last_id} if last_id else {})}
    connection.request("GET", f"/api/v1/servers/{one.server_id}/stream", headers=headers)
    response = connection.getresponse()
    if response.status == 204:
        raise _CompleteError
    if response.status == 503:
        raise _UnavailableError
    assert response.status == 200, response.read()
    assert response.headers["Content-Type"] == "text/event-stream"
    one.is_open = True
    rest = b""
    while part := response.read1(65_536):
        *blocks, rest = (rest + part).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            if b"data" in fields:
                item = json.loads(fields[b"data"])
                assert fields[b"event"].decode() == item["type"]
                yield fields[b"id"].decode(), item
    assert rest == b""
