"""What failed log-ins are counted by."""

from __future__ import annotations

import pytest

from matchpod.web.auth import LOOPBACK, client_address
from matchpod.web.endpoint import Call
from matchpod.web.http.asgi import Message


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("127.0.0.1", LOOPBACK),
        ("::1", LOOPBACK),
        (None, None),
    ],
)
def test_address_is_that_of_the_client(host: str | None, address: str | None) -> None:
    client = None if host is None else (host, 50_000)
    # The connection has read the headers of trusted proxies; those that are left are of clients.
    scope = {"client": client, "headers": [(b"x-forwarded-for", b"192.0.2.8")]}
    assert client_address(Call(scope=scope, receive=_nothing, params=())) == address
