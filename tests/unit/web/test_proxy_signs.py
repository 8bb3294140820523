"""Signs of a proxy: headers that name another machine."""

from __future__ import annotations

import pytest

from matchpod.web.http.responses import Header
from matchpod.web.proxy_signs import proxy_sign


def headers(*lines: str) -> list[Header]:
    return [(name.strip().encode(), value.strip().encode()) for name, _, value in (one.partition(":") for one in lines)]


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("host: play.example", "host: play.example"),
        ("host: play.example:8080", "host: play.example:8080"),
        ("host: 10.0.0.5:8080", "host: 10.0.0.5:8080"),
        ("host: [2001:db8::1]:8080", "host: [2001:db8::1]:8080"),
        ("host: localhost.example", "host: localhost.example"),
        ("x-forwarded-for: 192.168.0.7", "x-forwarded-for: 192.168.0.7"),
        ("x-forwarded-for: 127.0.0.1, 203.0.113.9", "x-forwarded-for: 203.0.113.9"),
        ("x-forwarded-for: 203.0.113.9, 127.0.0.1", "x-forwarded-for: 203.0.113.9"),
        ("x-forwarded-for: unknown", "x-forwarded-for: unknown"),
        ("x-forwarded-host: play.example", "x-forwarded-host: play.example"),
        ("x-real-ip: 203.0.113.9", "x-real-ip: 203.0.113.9"),
        ("forwarded: for=192.0.2.60;proto=http;by=203.0.113.43", "forwarded: 192.0.2.60"),
        ('forwarded: For="[2001:db8:cafe::17]:4711"', "forwarded: [2001:db8:cafe::17]:4711"),
        ("forwarded: for=127.0.0.1;host=play.example", "forwarded: play.example"),
        ("forwarded: for=127.0.0.1, for=198.51.100.17", "forwarded: 198.51.100.17"),
        ("forwarded: for=_hidden", "forwarded: _hidden"),
        ("host: \x01\x7f", "host: \ufffd\ufffd"),
    ],
)
def test_header_with_another_machine_is_a_sign(line: str, sign: str) -> None:
    local = ("accept: */*", "x-custom: 203.0.113.9")
    found = proxy_sign([*headers(*local), *headers(line), (b"host", b"127.0.0.1:8080")])
    assert found == sign


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("host: 127.0.0.1:8080",),
        ("host: localhost",),
        ("host: LocalHost.:8080",),
        ("host: app.localhost:3000",),
        ("host: [::1]:8080",),
        ("host: 0.0.0.0:8080",),
        ("host:",),
        ("host: 127.0.0.1:8080", "x-forwarded-for: 127.0.0.1", "x-forwarded-host: localhost:5173"),
        ("x-forwarded-for: ::1, ::ffff:127.0.0.1", "x-real-ip: ::1"),
        ('forwarded: for="[::1]:80";host=localhost;by=203.0.113.43;proto=https',),
        ("forwarded: proto=https",),
        ("referer: https://play.example/", "origin: https://play.example", "x-forwarded-proto: https"),
    ],
)
def test_request_of_a_program_on_this_machine_has_none(lines: tuple[str, ...]) -> None:
    assert proxy_sign(headers(*lines)) is None
