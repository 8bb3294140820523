"""Use the Agones SDK of this pod: read name, state and ports of the GameServer, and send reports."""

from __future__ import annotations

import http.client
import json
import os
from contextlib import closing
from typing import NamedTuple

from .log import FatalError

MAX_BYTES = 1024 * 1024  # maximum size of an answer in bytes; real answers have a few KB
REQUEST_S = 3.0  # timeout of a request to the SDK; it normally answers within milliseconds

ALLOCATED = "Allocated"
REPORTED = frozenset({"RequestReady", "Ready", "Reserved", ALLOCATED})
"""States of a GameServer after it has reported ready. If it reported ready again, Agones could allocate it a second
time during a match."""


class SdkServer(NamedTuple):
    """The GameServer of this pod, as Agones reports it."""

    name: str
    state: str
    ports: dict[str, int]


def parse_gameserver(body: bytes) -> SdkServer:
    """Parse the answer to GET /gameserver; raise OSError if it is invalid or has no ports."""
    try:
        answer = json.loads(body)
        status = answer.get("status") or {}
        ports = {str(port["name"]): int(port["port"]) for port in status.get("ports") or ()}
        server = SdkServer(str(answer["object_meta"]["name"]), str(status.get("state", "")), ports)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise OSError(f"the Agones SDK did not answer with a GameServer: {body[:200]!r}") from exc
    if not ports:
        raise OSError(f"the GameServer {server.name} has no ports; list them in its spec.ports")
    return server


def choose_port(server: SdkServer, name: str) -> int:
    """Return the port with this name. For the protocol TCPUDP, Agones makes two ports, NAME-udp and NAME-tcp."""
    for suffix in ("-udp", "", "-tcp"):
        if f"{name or 'game'}{suffix}" in server.ports:
            return server.ports[f"{name or 'game'}{suffix}"]
    if not name:
        return next(iter(server.ports.values()))
    raise FatalError(f"the GameServer {server.name} has no port `{name}`; it has {', '.join(sorted(server.ports))}")


def request_sdk(method: str, path: str, timeout_s: float = REQUEST_S) -> bytes:
    """Send a request to the Agones SDK of this pod and return the body of the answer; raise OSError if that fails."""
    address = f"127.0.0.1:{os.environ.get('AGONES_SDK_HTTP_PORT', '9358')}"
    try:
        with closing(http.client.HTTPConnection(address, timeout=timeout_s)) as connection:
            connection.request(method, path, "{}" if method == "POST" else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = response.read(MAX_BYTES)
    except (OSError, http.client.HTTPException) as exc:
        raise OSError(f"{method} {path} at {address} failed: {str(exc) or type(exc).__name__}") from exc
    if response.status != 200:
        raise OSError(f"{method} {path} at {address} returned HTTP status {response.status}")
    return body


def read_gameserver(timeout_s: float = REQUEST_S) -> SdkServer:
    """Read the GameServer of this pod from the SDK; raise OSError if that fails."""
    return parse_gameserver(request_sdk("GET", "/gameserver", timeout_s))
