"""Notices: shown by the page after a form, once, and never taken from an address or from the text of a cookie."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from matchpod.console.match_actions import ACTION_NOTICES
from matchpod.console.notices import NOTICES
from tests.contract.console import console_site
from tests.contract.console.console_site import OPERATOR, OWNER, ConsoleSite, open_site
from tests.contract.console.test_routes import POSTS, address

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site


def shown(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return "".join(re.findall(r'<div class="notice" role="status">([^<]*)</div>', response.text))


async def test_notice_is_shown_once_by_the_page_after_the_form(site: ConsoleSite) -> None:
    server_id = await site.create_match()
    async with site.client(OWNER) as browser:
        response = await browser.post(f"/console/matches/{server_id}/cancel", data={})
        assert (response.status_code, response.headers["location"]) == (303, f"/console/matches/{server_id}")
        assert shown(await browser.get("/console/access")) == ""  # another tab
        assert shown(await browser.get(response.headers["location"])) == ACTION_NOTICES["canceled"]
        assert shown(await browser.get(response.headers["location"])) == ""  # a reload
        assert dict(browser.cookies) == {site.cookie_name: site.cookies[OWNER]}


@pytest.mark.parametrize(
    "value",
    [
        "region-on",
        "region-on.0",
        "region-on.0@",
        "region-on.0@/console/matches",
        "unknown.0@/console/regions",
        "canceled.0@/console/regions",
        "region-on.@/console/regions",
        "region-on.9999999999999999@/console/regions",
        "<b>.0@/console/regions",
        "region-on.0@/console/regions<script>",
        "{0.__class__}.0@/console/regions",
        "\x7f",
        "é" * 2000,
    ],
)
async def test_text_of_a_cookie_is_never_shown(site: ConsoleSite, value: str) -> None:
    cookies = f"matchpod-notice={value}; {site.cookie(OWNER)['Cookie']}"
    headers = {b"cookie": cookies.encode(), b"sec-fetch-site": b"same-origin"}
    async with site.program() as client:
        response = await client.get("/console/regions", headers=headers)
    assert shown(response) == ""
    assert "set-cookie" not in response.headers


async def test_cookie_of_a_notice_is_short_and_closed(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", public_url="https://matches.example") as site:
        response = await site.request("POST", "/console/regions/sandbox/off", who=OPERATOR, form={})
        (cookie,) = response.headers.get_list("set-cookie")
        assert cookie == (
            "__Secure-matchpod-notice=region-off.0@/console/regions;"
            " Path=/console; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        )
        page = await site.follow(response, who=OPERATOR)
        assert shown(page) == NOTICES["region-off"]
        assert "Max-Age=0" in page.headers["set-cookie"]


async def test_address_of_a_form_opens_the_page_of_the_form(site: ConsoleSite) -> None:
    """Browsers show it if the answer to the form is a page: with faults, or with a secret."""
    before = site.stored()
    for path in (address(route) for route in POSTS):
        response = await site.request("GET", path, who=OWNER)
        if path.startswith("/console/login") or path in ("/console/create", "/console/create/sheet"):
            assert response.status_code in (200, 303), path
        else:
            assert response.status_code == 303, path
            assert path.startswith(f"{response.headers['location']}/")
    assert site.stored() == before


async def test_secret_is_in_the_answer_to_the_form_only(site: ConsoleSite) -> None:
    """It is in no address and in no cookie; to load it again, a browser asks before it sends the form again."""
    async with site.client(OWNER) as browser:
        response = await browser.post("/console/access/secret/reveal", data={})
        (secret,) = re.findall(r"<code>(whsec_[^<]+)</code>", response.text)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "no-store"
        assert "set-cookie" not in response.headers
        again = await browser.get("/console/access/secret/reveal", follow_redirects=True)
        assert again.url.path == "/console/access"
        assert secret not in again.text
