"""Large responses are read and sent in parts: clients that do not read them cost little memory."""

from __future__ import annotations

import asyncio
import itertools
import re
import select
import socket
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from matchpod.app.resources import open_resources
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.service.access.organizations import Access
from matchpod.service.match_log.entries import EntryKind
from matchpod.settings import load_settings
from matchpod.storage import raw_log, servers
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.connections import Patience
from matchpod.web.http.parted_responses import send_parts
from matchpod.web.http.responses import PartedResponse
from tests.contract.test_storage_servers import server
from tests.e2e.listening import listening
from tests.e2e.serve_process import ServeProcess, environment, serving
from tests.waiting import until

CLIENTS = 25
TIMEOUT_S = 120.0
ENTRY = b'03/14/2026 - 20:03:20.251 - "Ann<2><[U:1:5]><CT>" say "%d"\n'
ENTRIES = 320
LISTED = 100
"""Servers in the largest page of a list."""
LONG_URL = "https://example.com/" + "x" * 2000
ENTRY_BYTES = 16 * 1024
SERVER_ID = "srv_01hf7yat000000000000000000"
MAX_PAGE_BYTES = 400_000
"""What a page has with the longest texts that callers may send."""
MAX_GROWTH_KB = 15 * 1024
"""600 KB per client: the whole log would be 5 MB for each of them."""


async def fill(folder: Path) -> str:
    """Store an ended match with a log of 5 MB, and a page of others; return a key of their organization."""
    resources = await open_resources(load_settings(environment(folder, {}), lambda _: None))
    try:
        access = Access(db=resources.db, clock=resources.clock, vault=resources.vault)
        key = await access.create_organization_with_key("demo", key_name="test")
        (organization,) = await access.organizations()
        ended = server(
            SERVER_ID, org_id=organization.id, phase=ServerPhase.RELEASED, status=ServerStatus.STOPPED, ended_at_ms=1
        )
        await servers.create(resources.db, ended, idempotency=None)
        for number in range(LISTED):
            listed = server(
                f"srv_{number:026}",
                org_id=organization.id,
                phase=ServerPhase.RELEASED,
                status=ServerStatus.STOPPED,
                ended_at_ms=1,
                callback_url=LONG_URL,
            )
            await servers.create(resources.db, listed, idempotency=None)
        for number in range(ENTRIES):
            line = ENTRY % number
            body = line * (ENTRY_BYTES // len(line))
            await resources.db.write(
                raw_log.append(SERVER_ID, EntryKind.LOG.value, received_ms=number, headers=b"{}", body=body)
            )
        return key.text
    finally:
        await resources.db.close()


class Service(NamedTuple):
    """A running service, and the headers of an owner, with a session and with a key."""

    process: ServeProcess
    cookie: dict[str, str]
    key: dict[str, str]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the log and the list."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "data").mkdir(mode=0o700)
    key = asyncio.run(fill(folder))
    with serving(folder) as running:
        headers = {"Sec-Fetch-Site": "same-origin"}
        answer = httpx.post(f"{running.url}/console/login", data={"key": key}, headers=headers, timeout=TIMEOUT_S)
        cookie = answer.headers["set-cookie"].partition(";")[0]
        yield Service(running, {"Cookie": cookie}, {"Authorization": f"Bearer {key}"})


def memory_kb(service: ServeProcess) -> int:
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def growth_kb(service: ServeProcess, path: str, headers: Mapping[str, str]) -> int:
    """Return by how much the memory of the service grows while many clients ask for something and do not read it."""
    before_kb = memory_kb(service)
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "127.0.0.1", **headers}.items())
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(CLIENTS)]
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", int(service.url.rpartition(":")[2])))
            client.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        waiting = list(clients)
        while waiting:
            readable, _, _ = select.select(waiting, [], [], TIMEOUT_S)
            assert readable, "no answer"
            waiting = [client for client in waiting if client not in readable]
        highest_kb = 0
        for _ in range(10):  # they could be sent more meanwhile
            time.sleep(0.1)
            highest_kb = max(highest_kb, memory_kb(service))
    return highest_kb - before_kb


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_clients_that_do_not_read_a_log_cost_little_memory(service: Service, encoding: str) -> None:
    path = f"/console/matches/{SERVER_ID}/log.txt"
    headers = {**service.cookie, "Accept-Encoding": encoding}
    whole = httpx.get(f"{service.process.url}{path}", headers=headers, timeout=TIMEOUT_S)
    assert whole.status_code == 200
    assert len(whole.content) == sum(
        (ENTRY_BYTES // len(line)) * len(line) for line in map(ENTRY.__mod__, range(ENTRIES))
    )
    assert growth_kb(service.process, path, headers) < MAX_GROWTH_KB


def test_clients_that_do_not_read_the_largest_page_of_a_list_cost_little_memory(service: Service) -> None:
    path, url = "/api/v1/servers?pageSize=100", service.process.url
    whole = httpx.get(f"{url}{path}", headers=service.key, timeout=TIMEOUT_S)
    assert len(whole.json()["items"]) == LISTED
    assert LISTED * len(LONG_URL) < len(whole.content) < MAX_PAGE_BYTES
    assert growth_kb(service.process, path, {**service.key, "Accept-Encoding": "identity"}) < MAX_GROWTH_KB


# --- parts ------------------------------------------------------------------------------------------------------------

PART = b"a" * 50_000


class Source:
    """Endless parts, and how many of them were read."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.read = 0
        self.failure = failure

    async def parts(self) -> AsyncIterator[bytes]:
        for number in itertools.count():
            if number == 3 and self.failure is not None:
                raise self.failure
            self.read += 1
            yield PART
            await asyncio.sleep(0)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = PartedResponse(parts=self.parts(), content_type=b"text/plain")
        await send_parts(response, scope, send, more_headers=())


def test_parts_are_read_only_while_the_client_reads() -> None:
    source = Source()

    async def run() -> int:
        patience = Patience(send_s=0.5)
        async with asyncio.timeout(TIMEOUT_S), listening(source.app, patience=patience) as server:
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await until(lambda: 'unread"} 1' in server.metrics.text())
                await server.until_idle()
            return source.read

    read = asyncio.run(run())
    assert 1 < read * len(PART) < 20_000_000  # the buffers of the system


def test_error_between_parts_aborts_the_response() -> None:
    source = Source(ValueError("bug"))

    async def run() -> bytes:
        async with asyncio.timeout(TIMEOUT_S), listening(source.app) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            try:
                while part := await reader.read(100_000):
                    received += part
            except ConnectionError:
                pass
            writer.close()
            return received

    received = asyncio.run(run())
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert not received.endswith(b"0\r\n\r\n"), "the client would take it for complete"


def test_bytes_that_wait_for_all_clients_together_are_limited() -> None:
    size, count = 16_000_000, 5

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a" * size})

    async def run() -> tuple[int, bytes]:
        async with asyncio.timeout(TIMEOUT_S), listening(app, patience=Patience(unread_bytes=30_000_000)) as server:
            with ExitStack() as stack:
                for number in range(1, count + 1):
                    client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
                    client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                    waiting = min(number, 2) * 5_000_000
                    await until(lambda waiting=waiting: server.connections._unread_bytes >= waiting)
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                answer = await reader.read()  # one that reads is not affected
                writer.close()
                return len(server.connections.open), answer

    left, answer = asyncio.run(run())
    assert left <= 3
    assert answer.endswith(b"a" * size)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_parts_are_compressed_if_the_client_accepts_that(encoding: str) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield PART

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send_parts(PartedResponse(parts=parts(), content_type=b"text/plain"), scope, send, more_headers=())

    async def run() -> tuple[httpx.Response, httpx.Response]:
        headers = {"Accept-Encoding": encoding}
        async with listening(app) as server, httpx.AsyncClient(timeout=TIMEOUT_S, headers=headers) as client:
            url = f"http://127.0.0.1:{server.port}/"
            return await client.head(url), await client.get(url)

    head, got = asyncio.run(run())
    assert (head.status_code, head.content) == (200, b"")
    assert got.content == PART * 5
    assert got.headers["vary"] == "accept-encoding"
    for response in (head, got):
        assert response.headers.get("content-encoding", "identity") == encoding
