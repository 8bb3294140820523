"""Every address of the console: who may use it, what it answers to everyone else, and with which headers.

Addresses are read from the table of routes, so a new page is tested without a change here.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from matchpod.console.rendering import POLICY
from matchpod.console.routes import ROUTES, AnyRoute
from matchpod.console.visit import Who
from tests.contract.console import console_site
from tests.contract.console.console_site import (
    ADMIN,
    CASTER,
    MEMBER,
    OPERATOR,
    OWNER,
    REFEREE,
    STRANGER,
    WRITER,
    ConsoleSite,
    open_site,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

OPEN_TO_ANYONE = ("/console/assets/", "/console/login", "/overlay/")
"""Everything else needs a session."""
FOREIGN: Sequence[Mapping[str, str]] = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": console_site.URL},
    {"Sec-Fetch-Site": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": f"{console_site.URL}.evil.example"},
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:8081"},
    {"Origin": "http://localhost:8080"},
    {},
)
"""Headers of requests that pages of other sites send, and of programs that do not say where they come from."""


def address(route: AnyRoute) -> str:
    """Return an address of the route, with made-up values."""
    return re.sub(r"\{\w+\}", "0", route.path)


CLOSED = [route for route in ROUTES if route.who is not Who.ANYONE]
POSTS = [route for route in ROUTES if route.method == "POST"]
GETS = [route for route in ROUTES if route.method == "GET" and not route.path.endswith("/stream")]
INVALID_COOKIES = ("", "x", "A" * 43, "A" * 5000, '"', "\\", "' or 1=1 --")


async def send(site: ConsoleSite, route: AnyRoute, who: str | None) -> httpx.Response:
    return await site.request(route.method, address(route), who=who, form={} if route.method == "POST" else None)


@asynccontextmanager
async def unchanged(site: ConsoleSite) -> AsyncIterator[None]:
    """Check that nothing is stored or deleted meanwhile."""
    before = site.stored()
    yield
    assert site.stored() == before


async def test_few_addresses_are_open_to_anyone_and_all_use_the_methods_of_browsers() -> None:
    assert {route.method for route in ROUTES} == {"GET", "POST"}
    assert [one.path for one in ROUTES if one.who is Who.ANYONE and not one.path.startswith(OPEN_TO_ANYONE)] == []


RIGHTS: Mapping[Who, str] = {
    Who.OWNER: r"access/(keys|secret).*",
    Who.OPERATOR: r"(operator|regions/\{code\}).*",
    Who.MANAGER: r"create.*|webhooks/.+|selection/cancel|matches/\{serverId\}/(again|ruling|log\.txt)",
    Who.REFEREE: r"acknowledge.*|deliveries/.*redeliver|selection/redeliver"
    r"|matches/\{serverId\}/(actions|claim|unclaim|\{action\})",
}
"""Which forms and pages below /console need a right; each person's other forms are about their own session."""


async def test_forms_and_pages_need_the_right_to_what_they_do() -> None:
    pages = re.compile(r"/console/(create|operator|matches/\{serverId\}/log)")
    for route in ROUTES:
        if route.method == "POST" or pages.match(route.path):
            path = route.path.removeprefix("/console/")
            found = [who for who, pattern in RIGHTS.items() if re.fullmatch(pattern, path)]
            assert found == ([route.who] if route.who in RIGHTS else []), route.path


async def test_without_a_session_nothing_is_shown_or_done(site: ConsoleSite) -> None:
    invalid: list[dict[str, str]] = [{"Cookie": f"matchpod={value}"} for value in INVALID_COOKIES]
    api_key = {"Authorization": f"Bearer {site.keys[OWNER].text}"}
    async with unchanged(site):
        for number, route in enumerate(CLOSED):
            for headers in ({}, invalid[number % len(invalid)], api_key):
                response = await site.request(route.method, address(route), headers=headers)
                if route.method == "GET":
                    assert response.status_code == 303, (route, headers)
                    assert response.headers["location"] == f"/console/login?next={quote(address(route))}"
                else:
                    assert response.status_code == 401, (route, headers)
                    assert "You are logged out" in response.text


FORBIDDEN: Mapping[str, Sequence[Who]] = {
    MEMBER: (Who.REFEREE, Who.MANAGER, Who.OWNER, Who.OPERATOR),
    CASTER: (Who.REFEREE, Who.MANAGER, Who.OWNER, Who.OPERATOR),
    REFEREE: (Who.MANAGER, Who.OWNER, Who.OPERATOR),
    ADMIN: (Who.OWNER, Who.OPERATOR),
    OWNER: (Who.OPERATOR,),
    STRANGER: (Who.OPERATOR,),
    OPERATOR: (Who.MEMBER, Who.REFEREE, Who.MANAGER, Who.OWNER),
    WRITER: (Who.MEMBER, Who.REFEREE, Who.MANAGER, Who.OPERATOR),
}
"""Whose addresses a person may not use. Members and casters may not act, referees do not create matches, and only
owners manage access; operators see no organization; people of organizations are no operators; keys that may not read
matches show none."""


@pytest.mark.parametrize("who", FORBIDDEN)
async def test_address_for_others_is_forbidden(site: ConsoleSite, who: str) -> None:
    async with unchanged(site):
        for route in ROUTES:
            if route.who in FORBIDDEN[who]:
                response = await send(site, route, who)
                assert response.status_code == 403, (route, response.text)
                assert "Not allowed" in response.text


async def test_pages_of_other_sites_do_nothing(site: ConsoleSite) -> None:
    async with unchanged(site), site.program() as client:
        # Each form from some of them, and each of them to some forms.
        cases = [
            (route, FOREIGN[(first + more) % len(FOREIGN)]) for first, route in enumerate(POSTS) for more in (0, 3, 7)
        ]
        for route, headers in cases:
            who = OPERATOR if route.who is Who.OPERATOR else OWNER
            response = await client.post(address(route), headers={**headers, **site.cookie(who)}, data={"key": "x"})
            assert response.status_code == 403, (route, headers)
            assert "came from another site" in response.text


async def test_other_host_names_are_rejected(site: ConsoleSite) -> None:
    hosts = ("evil.example", "evil.example:8080", "127.0.0.1.evil.example:8080", "localhost.evil.example", "", "[")
    for number, route in enumerate(ROUTES):
        host = hosts[number % len(hosts)]
        response = await site.request(route.method, address(route), who=OWNER, headers={"Host": host})
        assert response.status_code == 403, (route, host)
        assert f"The console is served at {site.public_url}/console" in response.text


async def test_reading_changes_nothing(site: ConsoleSite) -> None:
    async with unchanged(site):
        for route, who, method in product(GETS, (OWNER, OPERATOR, None), ("GET", "HEAD")):
            await site.request(method, address(route), who=who)


async def test_no_page_or_stream_can_be_framed_sniffed_or_stored(site: ConsoleSite) -> None:
    for route, who in product(ROUTES, (OWNER, OPERATOR, None)):
        if route.path.endswith("/stream"):
            check_headers(await site.request("HEAD", address(route), who=who))
    for number, route in enumerate((*GETS, *POSTS)):
        methods = ("GET", "HEAD", "POST", ("PUT", "DELETE", "PATCH")[number % 3])
        responses = [await site.request(method, address(route)) for method in methods]
        responses += [await send(site, route, who) for who in (MEMBER, OPERATOR) if route.path != "/console/logout"]
        responses.append(await site.request(route.method, address(route), who=OWNER, headers={"Host": "evil.example"}))
        for response in responses:
            check_headers(response, is_asset=route.path.startswith("/console/assets/"))


@pytest.mark.parametrize(
    "path", ["/console/unknown", "/console/unknown/", "/console//", "/console/%00", "/console/%0d%0aX:1"]
)
async def test_unknown_addresses_have_the_headers_of_pages(site: ConsoleSite, path: str) -> None:
    for who in (OWNER, None):
        response = await site.request("GET", path, who=who)
        assert response.status_code == 404
        check_headers(response)


async def test_address_with_a_slash_at_its_end_leads_to_the_one_without(site: ConsoleSite) -> None:
    async with unchanged(site):
        for route, who in product(ROUTES, (OWNER, OPERATOR, None)):
            form: dict[str, str] | None = {} if route.method == "POST" else None
            response = await site.request(route.method, f"{address(route)}/?a=%2F+%22&b=", who=who, form=form)
            assert (response.status_code, response.headers["location"]) == (308, f"{address(route)}?a=%2F+%22&b=")
            check_headers(response)


async def test_form_sent_to_an_address_with_a_slash_is_not_lost(site: ConsoleSite) -> None:
    async with site.client() as client:
        form = {"key": site.keys[OWNER].text}
        response = await client.post("/console/login/", data=form, follow_redirects=True)
    assert response.status_code == 200
    assert [str(one.status_code) for one in response.history] == ["308", "303"]
    assert "<h1>Live</h1>" in response.text


async def test_address_of_a_redirect_is_encoded_and_our_own(site: ConsoleSite) -> None:
    for path in ("/console/matches/%0d%0aX:%201", '/console/matches/"<é>', "/console/matches/%2F%2Fevil.example"):
        response = await site.request("GET", f"{path}/", who=OWNER)
        location = response.headers["location"]
        assert response.status_code == 308
        assert location == quote(path, safe="/%:")
        assert location.startswith("/console/")
    assert (await site.request("GET", "/console/login//evil.example/")).status_code == 404


async def test_paths_of_the_api_keep_their_meaning(site: ConsoleSite) -> None:
    for path in ("/api/v1/regions/", "/healthz/", "/docs/"):
        assert (await site.request("GET", path)).status_code == 404


def check_headers(response: httpx.Response, *, is_asset: bool = False) -> None:
    headers = response.headers
    assert headers["content-security-policy"] == POLICY
    assert "frame-ancestors 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "strict-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert not any(name.startswith("access-control-") for name in headers)
    assert headers["cache-control"] == "no-store" or (is_asset and response.status_code == 200)


async def test_console_of_a_copy_can_be_read_but_changes_nothing(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data") as site:
        site.service.readiness.serve_reads_only("Its database is a copy.")
        before = site.stored()
        for route in POSTS:
            who = OPERATOR if route.who is Who.OPERATOR else OWNER
            if not route.is_read:
                response = await send(site, route, who)
                assert (response.status_code, "serves reads only" in response.text) == (503, True), route.path
        assert site.stored() == before
        assert (await site.request("GET", "/console/matches", who=OWNER)).status_code == 200
        form = {"key": site.keys[OWNER].text}
        assert (await site.request("POST", "/console/login", form=form)).status_code == 303


async def test_unknown_parameter_is_rejected(site: ConsoleSite) -> None:
    for route in ROUTES:
        form: dict[str, str] | None = {} if route.method == "POST" else None
        # A page that reads its parameters itself says so to those who may see it.
        who = OWNER if route.query is None else OPERATOR
        response = await site.request(route.method, f"{address(route)}?zzz=1", who=who, form=form)
        assert response.status_code == 400, route
        assert "zzz" in response.text
        assert "is not a known parameter" in response.text
