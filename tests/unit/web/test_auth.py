"""The address that failed log-ins are counted by."""

from __future__ import annotations

import pytest

from matchpod.web.auth import LOOPBACK, client_address
from matchpod.web.endpoint import Call
from matchpod.web.http.asgi import Message


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


def address_of(host: str | None, *forwarded: bytes) -> str | None:
    headers = [(b"x-forwarded-for", value) for value in forwarded]
    client = None if host is None else (host, 50_000)
    return client_address(Call(scope={"client": client, "headers": headers}, receive=_nothing, params=()))


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
def test_address_is_that_of_the_connection(host: str | None, address: str | None) -> None:
    assert address_of(host) == address


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ((b"192.0.2.7",), "192.0.2.7"),
        ((b"10.0.0.1, 192.0.2.7",), "192.0.2.7"),
        ((b"10.0.0.1", b"192.0.2.7"), "192.0.2.7"),
        ((b"2001:db8:1:2:3::4",), "2001:db8:1:2::/64"),
        ((b"127.0.0.1",), LOOPBACK),
        ((b"unknown",), LOOPBACK),
        ((b"",), LOOPBACK),
        ((b"192.0.2.7, \xff\x00",), LOOPBACK),
    ],
)
def test_proxy_on_this_machine_says_whose_request_it_is(forwarded: tuple[bytes, ...], address: str) -> None:
    assert address_of("127.0.0.1", *forwarded) == address


def test_other_clients_cannot_choose_their_address() -> None:
    assert address_of("192.0.2.7", b"192.0.2.8") == "192.0.2.7"
