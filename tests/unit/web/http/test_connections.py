"""Counting requests that come through a trusted proxy, without sockets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest

from matchpod.app.http_server import DEFAULT_PATIENCE, PRIORITY
from matchpod.service.telemetry.metrics import ConnectionMetrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.web.errors import connection_error_response
from matchpod.web.http.admission import ConnectionLimits
from matchpod.web.http.asgi import Receive, Scope, Send
from matchpod.web.http.connections import Connections
from matchpod.web.http.responses import Header

PER_ADDRESS = 3
CLIENT = "203.0.113.7"


async def no_application(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError


def admitted(proxy: str, requests: Sequence[Sequence[Header]]) -> int:
    """Return how many of these requests may be in progress at a time, each on a connection of the proxy."""
    connections = Connections(
        no_application,
        ConnectionLimits(total=64, per_address=PER_ADDRESS, trusted_proxies=(proxy,)),
        DEFAULT_PATIENCE,
        priority=PRIORITY,
        error_response=connection_error_response,
        counts=ConnectionMetrics(Registry()),
    )
    with ExitStack() as in_progress:
        count = 0
        for headers in requests:
            seat = connections.admit(proxy)
            assert seat is not None
            client = connections.proxies.client(proxy, headers)
            scope = {"client": (client, 0), "path": "/api/v1/regions", "headers": headers}
            count += in_progress.enter_context(connections.of_client(seat, scope)) is None
        return count


@pytest.mark.parametrize("proxy", ["10.0.0.1", "127.0.0.1", "::1"])
def test_a_client_whose_headers_differ_is_limited_too(proxy: str) -> None:
    invented = [
        [(b"x-forwarded-for", CLIENT.encode()), (b"forwarded", b"for=198.51.100.%d" % number)] for number in range(9)
    ]
    assert admitted(proxy, invented) == PER_ADDRESS
    assert admitted(proxy, [[(b"forwarded", b'x="%d, for=203.0.113.7' % number)] for number in range(9)]) == PER_ADDRESS


def test_requests_of_the_proxy_itself_are_not_limited() -> None:
    assert admitted("10.0.0.1", [[]] * 9) == 9
    assert admitted("10.0.0.1", [[(b"x-forwarded-for", b"10.0.0.1")]] * 9) == 9
