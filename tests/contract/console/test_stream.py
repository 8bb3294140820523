"""The stream of a browser over HTTP: which pages it follows, from where, and who may."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from matchpod.console.pages.updates import MAX_PAGES
from tests.contract.console import console_site
from tests.contract.console.console_site import MEMBER, OPERATOR, OWNER, STRANGER, WRITER, ConsoleSite
from tests.e2e.listening import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

TIMEOUT_S = 60.0
UNKNOWN = "match/srv_unknown"


class Event(msgspec.Struct):
    name: str
    position: str
    data: str


async def first_events(site: ConsoleSite, who: str, pages: str) -> list[Event]:
    """Return the events up to the first time of the service."""
    head = (
        f"GET /console/stream?pages={pages} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {site.cookie(who)['Cookie']}\r\n\r\n"
    )
    async with asyncio.timeout(TIMEOUT_S), listening(site.service.web) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(head.encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        body = b""
        while b"event: time\n" not in body or not body.endswith(b"\n\n\r\n"):
            size = int(await reader.readline(), 16)
            body += await reader.readexactly(size + 2)
        writer.close()
    blocks = body.replace(b"\r\n", b"").decode().split("\n\n")
    return [_event(dict(line.split(": ", 1) for line in one.splitlines())) for one in blocks if "event: " in one]


def _event(fields: Mapping[str, str]) -> Event:
    return Event(fields["event"], fields.get("id", ""), fields["data"])


def names(events: list[Event]) -> list[str]:
    return [one.name for one in events]


async def test_stream_has_the_pages_that_were_asked_for_and_the_time(site: ConsoleSite) -> None:
    server_id = await site.create_match()
    events = await first_events(site, OWNER, f"wall:,match/{server_id}:")
    assert names(events) == ["wall", f"match/{server_id}", "time"]
    assert abs(int(events[-1].data) - site.resources.clock.now_ms()) < TIMEOUT_S * 1000
    positions = ",".join(f"{one.name}:{one.position}" for one in events[:-1])
    assert names(await first_events(site, OWNER, positions)) == ["time"]


@pytest.mark.parametrize("who", [OWNER, OPERATOR, WRITER])
async def test_stream_without_pages_follows_the_session_only(site: ConsoleSite, who: str) -> None:
    assert names(await first_events(site, who, "")) == ["time"]


async def test_match_of_another_organization_is_gone_and_does_not_stop_other_pages(site: ConsoleSite) -> None:
    server_id = await site.create_match()
    events = await first_events(site, STRANGER, f"match/{server_id}:,{UNKNOWN}:,nothing:,wall:")
    assert names(events) == ["gone", "gone", "gone", "wall", "time"]
    assert [one.data for one in events[:3]] == [f"match/{server_id}", UNKNOWN, "nothing"]
    assert server_id not in events[3].data


@pytest.mark.parametrize(
    "pages", ["wall", "wall:x y", "wall:%0aevent:", "match/%0a:", ",".join(["wall:"] * (MAX_PAGES + 1))]
)
async def test_pages_that_cannot_be_read_are_rejected(site: ConsoleSite, pages: str) -> None:
    assert (await site.request("HEAD", f"/console/stream?pages={pages}", who=OWNER)).status_code == 400


async def test_as_many_pages_as_allowed_fit_into_a_request(site: ConsoleSite) -> None:
    listed = [f"match/srv_{number:032d}:0a1b2c3d.{10**12}" for number in range(MAX_PAGES)]
    answer = await site.request("HEAD", f"/console/stream?session=&pages={'%2C'.join(listed)}", who=OWNER)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("who", "page", "status"),
    [(MEMBER, "wall", 200), (OPERATOR, "wall", 403), (WRITER, "wall", 403), (WRITER, UNKNOWN, 403)],
)
async def test_pages_are_for_those_who_may_see_them(site: ConsoleSite, who: str, page: str, status: int) -> None:
    assert (await site.request("HEAD", f"/console/stream?pages={page}:", who=who)).status_code == status


async def test_pages_of_another_session_are_not_followed(site: ConsoleSite) -> None:
    user = await site.sessions.find(site.cookies[OWNER])
    assert user is not None
    path = f"/console/stream?session={user.session_id}"
    assert (await site.request("HEAD", path, who=OWNER)).status_code == 200
    assert (await site.request("HEAD", path, who=STRANGER)).status_code == 401
    answer = await site.request("GET", path, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 401
