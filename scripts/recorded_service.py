"""Run a service with simulated servers for another script. Record the requests of game servers, and the callbacks."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.service.demos.uploads import Sender, UploadHead, UploadLimits, Uploads
from matchpod.storage import history, servers

WAIT_S = 300.0
"""Timeout in seconds of each wait. It is long because the machine may be busy."""
POLL_S = 0.2
SERVERS = 8
"""Number of simulated servers of the region."""

_T = TypeVar("_T")


class Response(NamedTuple):
    """A response of the service; `json` is None if it is not JSON."""

    status: int
    json: Any
    text: str


class Received(NamedTuple):
    """A request of a game server that the service answered with status 200, and the response."""

    method: str
    path: str
    body: str
    response: str


class Proxy:
    """Forwards the requests of game servers to the service, and receives callbacks at `/callback`."""

    def __init__(self, service_port: int) -> None:
        self.received: list[Received] = []
        self.callbacks: list[Any] = []
        self.events: list[Any] = []
        """Events that webhooks sent to `/events`."""
        self.may_answer = threading.Event()
        """While this event is not set, callbacks get no answer."""
        self.may_answer.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, service_port))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def first(self, method: str, path: str, text: str = "") -> Received:
        """Return the first answered request with `method` whose path begins with `path` and whose body has `text`."""
        asked = [request for request in self.received if request.method == method and request.path.startswith(path)]
        return next(request for request in asked if text in request.body)

    def close(self) -> None:
        """Stop listening."""
        self.may_answer.set()
        self._server.shutdown()


def _handler(proxy: Proxy, service_port: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            self._forward("GET", b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path == "/callback":
                proxy.callbacks.append(json.loads(body))
                proxy.may_answer.wait(WAIT_S)
                self._answer(204, b"", "")
            elif self.path == "/events":
                proxy.events.append(json.loads(body))
                self._answer(204, b"", "")
            else:
                self._forward("POST", body)

        def _forward(self, method: str, body: bytes) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", service_port, timeout=WAIT_S)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            try:
                connection.request(method, self.path, body or None, kept)
                answer = connection.getresponse()
                content = answer.read()
            finally:
                connection.close()
            if answer.status == 200:
                proxy.received.append(Received(method, self.path, body.decode(errors="replace"), content.decode()))
            self._answer(answer.status, content, answer.headers.get("content-type", ""))

        def _answer(self, status: int, content: bytes, content_type: str) -> None:
            self.send_response(status)
            if status != 204:
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


class RecordedService:
    """A `matchpod serve` process with the region `sandbox`, a proxy in front of it, and a key of its organization."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder = folder
        self.port = free_ports(1)
        self.proxy = Proxy(self.port)
        self._config = folder / "settings.toml"
        ports = free_ports(SERVERS)
        self._config.write_text(
            '[[regions]]\ncode = "sandbox"\nname = "Sandbox"\nlocation = "this machine"\nspeed = 30\n'
            f'[regions.fleet]\nkind = "process"\nports = "{ports}-{ports + SERVERS - 1}"\n',
            encoding="utf-8",
        )
        self._settings = settings
        self._process = subprocess.Popen(
            [sys.executable, "-m", "matchpod", "serve"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(folder / "log.txt").open("wb"),
        )
        wait_until(self._is_ready, "the service is ready")
        found = re.search(r"mk_live_[\w-]{43}", (folder / "data" / "first-key.txt").read_text("utf-8"))
        if found is None:
            raise RuntimeError("the first start of the service wrote no key")
        self.key = found[0]

    def environment(self) -> dict[str, str]:
        """Return the environment variables of the process."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MATCHPOD_")}
        variables = {
            "config": str(self._config),
            "data_dir": str(self._folder / "data"),
            "port": str(self.port),
            "public_url": self.proxy.url,
            "min_free_disk_mb": "off",
            **self._settings,
        }
        return {**kept, **{f"MATCHPOD_{name.upper()}": value for name, value in variables.items()}}

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError(f"the service exited; its log: {(self._folder / 'log.txt').read_text()}")
        try:
            return self.call("GET", "/readyz").status == 200
        except OSError:
            return False

    def close(self) -> None:
        """Cancel the matches that are not over, wait until no game server is left, and stop the service."""
        try:
            servers = self.call("GET", "/api/v1/servers?pageSize=100").json["items"]
            for server in servers:
                if server["endedAt"] is None:
                    self.call("POST", f"/api/v1/servers/{server['serverId']}/cancel")
            log = self._folder / "log.txt"
            wait_until(lambda: log.read_text("utf-8").count("server released") >= len(servers), "no server is left")
        finally:
            self._process.terminate()
            self._process.wait(WAIT_S)
            self.proxy.close()

    def new_key(self, *arguments: str) -> str:
        """Create a key of the first organization and return it."""
        command = [sys.executable, "-m", "matchpod", "keys", "create", "--org", "demo", *arguments]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=True)
        return done.stdout.split()[0]

    def store_demo(self, server_id: str, body: bytes) -> None:
        """Store a demo of the first map of a match, as its server would upload it."""

        async def store() -> None:
            db = await SqliteDatabase.open(self._folder / "data" / "matchpod.sqlite3")
            try:
                row = await servers.get(db, server_id)
                if row is None:
                    raise RuntimeError(f"there is no server {server_id}")
                uploads = Uploads(
                    db=db,
                    clock=SystemClock(),
                    storage=FolderStorage(self._folder / "data" / "demos"),
                    owner="script",
                    limits=UploadLimits(),
                )
                head = UploadHead(token="", file_name="de_mirage_Reds_vs_Blues.dem", map_number=0)
                maps = tuple(await history.maps_of(db, server_id))
                sender = Sender(row=row, attempt=row.attempt, token_hash=row.report_token_hash, maps=maps)
                await uploads.receive(sender, head, _whole(body))
            finally:
                await db.close()

        asyncio.run(store())

    # --- requests -------------------------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request with `key`, or with the service's first key if `key` is None. An empty `key` sends no key."""
        content = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
        used = getattr(self, "key", "") if key is None else key
        all_headers = {"Content-Type": "application/json", **(headers or {})}
        if used:
            all_headers["Authorization"] = f"Bearer {used}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request(method, path, content, all_headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        is_json = "json" in response.headers.get("Content-Type", "")
        return Response(response.status, json.loads(text) if is_json else None, text)

    def stream(self, path: str, number: int) -> list[dict[str, str]]:
        """Return the first `number` events of a server-sent event stream."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        events: list[dict[str, str]] = []
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            response = connection.getresponse()
            event: dict[str, str] = {}
            while len(events) < number and (line := response.readline().decode()):
                name, _, value = line.rstrip("\n").partition(": ")
                if name in ("id", "event", "data"):
                    event[name] = value
                elif not name and len(event) == 3:
                    events.append(event)
                    event = {}
        finally:
            connection.close()
        return events


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    yield body


def free_ports(number: int) -> int:
    """Return the lowest of `number` consecutive free ports."""
    for first in range(20_000, 32_000, number):
        if all(_is_free(port) for port in range(first, first + number)):
            return first
    raise RuntimeError(f"no {number} consecutive ports are free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_until(poll: Callable[[], _T | None], what: str) -> _T:
    """Call `poll` until it returns a true value, and return that value."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := poll():
            return found
        time.sleep(POLL_S)
    raise RuntimeError(f"timeout after {WAIT_S:g} s: {what}")
