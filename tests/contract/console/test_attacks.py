"""Attacks on the console over HTTP: sessions, redirects, headers, and requests of any shape."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from matchpod.console.visit import MAX_FORM_BYTES
from matchpod.service.access.console_sessions import MAX_MS
from matchpod.service.access.organizations import Access
from matchpod.service.identity.principals import Role
from matchpod.web.query_strings import MAX_QUERY_BYTES
from tests.contract.console import console_site
from tests.contract.console.console_site import MEMBER, OPERATOR, OWNER, WRITER, ConsoleSite, open_site
from tests.e2e.listening import listening

pytestmark = pytest.mark.asyncio(loop_scope="module")
site = console_site.site

TIMEOUT_S = 60.0
LATE_S = 12.0
"""Streams are checked every two seconds."""


async def log_in_anew(site: ConsoleSite, *, next_path: str = "") -> httpx.Response:
    """Log in with a new key: log-ins with one are limited."""
    return await log_in(site, (await site.new_key("ours", Role.OWNER)).text, next_path=next_path)


async def log_in(site: ConsoleSite, key: str, *, cookie: str = "", next_path: str = "") -> httpx.Response:
    headers = {"Cookie": cookie} if cookie else {}
    return await site.request("POST", "/console/login", headers=headers, form={"key": key, "next": next_path})


def new_cookie(response: httpx.Response) -> str:
    """Return name and value of the cookie that a response sets."""
    return str(response.headers["set-cookie"]).partition(";")[0]


async def is_logged_in(site: ConsoleSite, cookie: str) -> bool:
    response = await site.request("GET", "/console", headers={"Cookie": cookie})
    assert response.status_code in (200, 303)
    return response.status_code == 200


# --- sessions -------------------------------------------------------------------------------------------------------


async def test_cookie_does_not_open_the_api(site: ConsoleSite) -> None:
    for path in ("/api/v1/matches", "/api/v1/servers", "/api/v1/cs2/matches"):
        response = await site.request("GET", path, who=OWNER)
        assert response.status_code in (401, 405), path
    body = b'{"region":"sandbox","gameType":"cs2"}'
    headers = {"Content-Type": "application/json"}
    assert (await site.request("POST", "/api/v1/matches", who=OWNER, headers=headers, content=body)).status_code == 401
    as_key = {"Authorization": f"Bearer {site.cookies[OWNER]}"}
    assert (await site.request("GET", "/api/v1/servers", headers=as_key)).status_code == 401


async def test_log_in_never_uses_a_cookie_that_was_set_before(site: ConsoleSite) -> None:
    planted = f"matchpod={'A' * 43}"
    response = await log_in(site, site.keys[OWNER].text, cookie=planted)
    assert response.status_code == 303
    assert new_cookie(response) != planted
    assert not await is_logged_in(site, planted)
    assert await is_logged_in(site, new_cookie(response))


async def test_second_log_in_ends_the_first_session_of_the_browser_unless_it_fails(site: ConsoleSite) -> None:
    first = new_cookie(await log_in(site, site.keys[OWNER].text))
    for key in ("", " ", "mk_live_" + "A" * 43, "x\r\ny", "ключ", "A" * 10_000, "Bearer x", first):
        response = await log_in(site, key, cookie=first)
        assert response.status_code == 401, key
        assert "set-cookie" not in response.headers
        assert key.strip() in ("", "x\r\ny") or key not in response.text
    assert await is_logged_in(site, first)
    second = new_cookie(await log_in(site, site.keys[MEMBER].text, cookie=first))
    assert first != second
    assert not await is_logged_in(site, first)
    assert await is_logged_in(site, second)


async def test_log_out_ends_the_session_also_for_a_stolen_cookie(site: ConsoleSite) -> None:
    cookie = new_cookie(await log_in(site, site.keys[OWNER].text))
    response = await site.request("POST", "/console/logout", headers={"Cookie": cookie})
    assert response.headers["location"] == "/console/login"
    assert re.search(r"matchpod=; Path=/; Max-Age=0\b", response.headers["set-cookie"])
    assert not await is_logged_in(site, cookie)
    assert "You are logged out." in (await site.follow(response)).text


async def test_link_works_once_and_opening_it_does_not_use_it_up(site: ConsoleSite) -> None:
    path = f"/console/login/{await site.sessions.create_link(site.org_ids['ours'])}"
    for method in ("GET", "HEAD", "GET"):
        assert (await site.request(method, path)).status_code == 200
    assert (await site.request("POST", path, headers={"Sec-Fetch-Site": "cross-site"})).status_code == 403
    assert (await site.request("POST", path)).status_code == 303
    again = await site.request("POST", path)
    assert again.status_code == 401
    assert "This link is not valid" in again.text


async def test_streams_end_soon_after_their_key_session_or_overlay(site: ConsoleSite) -> None:
    key, program = await site.new_key("ours", Role.OWNER), await site.new_key("ours", Role.MEMBER)
    with_key = new_cookie(await log_in(site, key.text))
    logged_out = new_cookie(await log_in(site, site.keys[OWNER].text))
    server_id = await site.create_match()
    revealed = await site.request("POST", f"/console/matches/{server_id}/overlay", who=OWNER)
    (token,) = set(re.findall(r"/overlay/([\w-]{43})", revealed.text))
    heads = {
        "key": f"GET /api/v1/stream HTTP/1.1\r\nAuthorization: Bearer {program.text}",
        "session of a key": f"GET /console/stream?pages=wall: HTTP/1.1\r\nCookie: {with_key}",
        "ended session": f"GET /console/stream?pages=match/{server_id}: HTTP/1.1\r\nCookie: {logged_out}",
        "overlay": f"GET /overlay/{token}/stream HTTP/1.1",
        "other": f"GET /console/stream HTTP/1.1\r\nCookie: {site.cookie(MEMBER)['Cookie']}",
    }
    async with asyncio.timeout(TIMEOUT_S), listening(site.service.web) as server:
        readers, writers = {}, []
        for name, head in heads.items():
            readers[name], writer = await asyncio.open_connection("127.0.0.1", server.port)
            writers.append(writer)
            writer.write(f"{head}\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert (await readers[name].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 "), name
        elsewhere = Access(db=site.resources.db, clock=site.resources.clock, vault=site.resources.vault)
        await elsewhere.revoke_key(program.view.id)  # as the command line does
        await elsewhere.revoke_key(key.view.id)
        await site.request("POST", "/console/logout", headers={"Cookie": logged_out})
        await site.request("POST", f"/console/matches/{server_id}/end-overlays", who=OWNER)
        other = readers.pop("other")
        async with asyncio.timeout(LATE_S):
            await asyncio.gather(*(reader.read() for reader in readers.values()))
        assert not other.at_eof()
        for writer in writers:
            writer.close()
    assert not await is_logged_in(site, with_key)


# --- what others may see --------------------------------------------------------------------------------------------


async def test_key_that_may_not_read_matches_shows_no_wall_but_can_log_out(site: ConsoleSite) -> None:
    response = await site.request("GET", "/console", who=WRITER)
    assert response.status_code == 403
    assert "Your key may not read matches" in response.text
    assert 'action="/console/logout"' in response.text


async def test_operator_sees_no_matches(site: ConsoleSite) -> None:
    await site.create_match()
    response = await site.request("GET", "/console", who=OPERATOR)
    assert (response.status_code, response.headers["location"]) == (303, "/console/operator")


# --- redirects and headers ------------------------------------------------------------------------------------------

FOREIGN_PATHS = (
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example/console",
    "https:evil.example",
    "javascript:alert(1)",
    "/console\\..\\..\\\\evil.example",
    "/consoleevil",
    "/console@evil.example",
    "/console.evil.example",
    "console",
    " /console",
    "/console\t",
    "/console/\r\nSet-Cookie: matchpod=x",
    "/console/\u2028",
    "%2f%2fevil.example",
    "/api/v1/matches",
    "/console/login",
    "/console/login/token",
)


async def test_log_in_leads_to_our_own_pages_only(site: ConsoleSite) -> None:
    for path in FOREIGN_PATHS:
        response = await log_in_anew(site, next_path=path)
        assert response.headers.get_list("location") == ["/console"], path
        assert len(response.headers.get_list("set-cookie")) == 1
        again = await site.request("GET", str(httpx.URL("/console/login", params={"next": path})), who=OWNER)
        assert (again.status_code, again.headers["location"]) == (303, "/console")
    for path in ("/console/../..//evil.example", "/console/%2e%2e/%2e%2e//evil.example", "/console//x"):
        location = (await log_in_anew(site, next_path=path)).headers["location"]
        assert httpx.URL(site.public_url).join(location).host == "127.0.0.1"
    asked = "/console/matches/x?state=live&page=2"
    assert (await log_in_anew(site, next_path=asked)).headers["location"] == asked


@pytest.mark.parametrize(
    "path", ["/console/%0d%0aSet-Cookie:%20x=y", "/console/stream%0d%0aX-Bad:1", "/console/%C0%AE"]
)
async def test_no_header_can_be_injected_through_the_path(site: ConsoleSite, path: str) -> None:
    for who in (None, OWNER):
        response = await site.request("GET", path, who=who)
        assert response.status_code in (303, 404)
        assert "set-cookie" not in response.headers
        assert "x-bad" not in response.headers


async def test_text_of_an_address_is_never_shown(site: ConsoleSite) -> None:
    attack = "<script>alert(1)</script>"
    for path in ("/console", "/console/login", "/console/login/x", f"/console/{attack}", "/console/matches/x"):
        for name in ("done", "next", "page", "state", "after"):
            address = str(httpx.URL(path, params={name: attack}))
            for who in (None, OWNER):
                assert attack not in (await site.request("GET", address, who=who)).text


async def test_cookie_and_origin_over_https_are_bound_to_the_host_and_to_https(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", public_url="https://play.example") as site:
        response = await log_in(site, site.keys[OWNER].text)
        name, _, rest = response.headers["set-cookie"].partition("=")
        assert name == "__Host-matchpod"
        flags = set(rest.split("; ")[1:])
        assert flags == {"Path=/", f"Max-Age={MAX_MS // 1000}", "HttpOnly", "SameSite=Lax", "Secure"}
        assert (await site.request("GET", "/console", who=OWNER)).status_code == 200
        plain = {"Cookie": f"matchpod={site.cookies[OWNER]}"}
        assert (await site.request("GET", "/console", headers=plain)).status_code == 303
        async with site.program() as client:
            for origin in ("http://play.example", "https://play.example:444", "https://play.example.evil"):
                out = await client.post("/console/logout", headers={"Origin": origin, **site.cookie(OWNER)})
                assert out.status_code == 403, origin
            out = await client.post("/console/logout", headers={"Origin": site.public_url, **site.cookie(OWNER)})
        assert {"Path=/", "Secure", "Max-Age=0"} <= set(out.headers["set-cookie"].split("; "))


async def test_cookie_over_http_is_hidden_from_scripts(site: ConsoleSite) -> None:
    response = await log_in_anew(site)
    flags = set(response.headers["set-cookie"].split("; ")[1:])
    assert flags == {"Path=/", f"Max-Age={MAX_MS // 1000}", "HttpOnly", "SameSite=Lax"}


async def test_no_page_may_read_the_console_even_if_it_may_read_the_api(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", cors_origins="*") as site:
        headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        for method, path in (("GET", "/console"), ("OPTIONS", "/console"), ("OPTIONS", "/console/logout")):
            response = await site.request(method, path, who=OWNER, headers=headers)
            assert not any(name.startswith("access-control-") for name in response.headers)


# --- cookies of others, and requests of any shape -------------------------------------------------------------------


OTHER_COOKIES = (
    *('a={"x": [1]}', "a=b c", 'a="x', "a=é", "a@b=c", "=", ";;;", "a", "a=" + "x" * 6000),
    *("matchpod_old=1", "xmatchpod=1"),
)


async def test_cookies_of_other_programs_on_the_host_do_not_matter(site: ConsoleSite) -> None:
    own = f"matchpod={site.cookies[OWNER]}"
    async with site.program() as client:
        for others in OTHER_COOKIES:
            for text in (f"{others}; {own}", f"{own}; {others}"):
                response = await client.get("/console", headers={b"Cookie": text.encode("latin-1")})
                assert response.status_code == 200, text


async def test_huge_requests_are_rejected(site: ConsoleSite) -> None:
    huge = {"key": "x" * MAX_FORM_BYTES}
    assert (await site.request("POST", "/console/login", form=huge)).status_code == 413
    many = {f"f{number}": "" for number in range(201)}
    assert (await site.request("POST", "/console/login", form=many)).status_code == 400
    assert (await site.request("GET", "/console/login?next=/console/" + "x" * MAX_QUERY_BYTES)).status_code == 400
    assert (await site.request("GET", "/console/" + "x" * 5000, who=OWNER)).status_code == 404
    cookies = {"Cookie": "; ".join(f"c{number}=x" for number in range(5000))}
    assert (await site.request("GET", "/console", headers=cookies)).status_code == 303


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/json", b'{"key": "x"}'),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\ny\r\n--x--\r\n'),
        ("text/plain", b"key=x"),
        ("", b"key=x"),
        ("application/x-www-form-urlencoded", b"key=\xff"),
        ("application/x-www-form-urlencoded", b"key=%ff"),
        ("application/x-www-form-urlencoded", "key=ключ".encode()),
    ],
)
async def test_only_forms_are_read(site: ConsoleSite, kind: str, content: bytes) -> None:
    response = await site.request("POST", "/console/login", headers={"Content-Type": kind}, content=content)
    assert response.status_code == 400
    assert "text/html" in response.headers["content-type"]


async def test_other_methods_are_rejected(site: ConsoleSite) -> None:
    async with site.program() as client:
        for method in ("PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "get"):
            for path in ("/console", "/console/login", "/console/logout"):
                # Without the library, which writes methods in upper case.
                request = client.build_request("GET", path, headers=site.cookie(OWNER))
                request.method = method
                assert (await client.send(request)).status_code == 405, (method, path)


async def test_head_is_get_without_content(site: ConsoleSite) -> None:
    for path in ("/console", "/console/login", "/console/stream"):
        response = await site.request("HEAD", path, who=OWNER)
        assert response.content == b""
        assert response.status_code == (303 if path.endswith("login") else 200)


# --- hosts, on a real connection ------------------------------------------------------------------------------------


HEADS = {
    b"400": ("HTTP/1.1", "HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example"),
    b"403": (
        "HTTP/1.0",
        *(
            f"HTTP/1.1\r\nHost: {host}"
            for host in (
                *("127.0.0.1:1@evil.example", "evil.example:80#127.0.0.1", "evil.example/127.0.0.1"),
                *("evil.example@127.0.0.1", "localhost?.evil.example", "localhost/.evil.example"),
                *("localhost#.evil.example", "[::1].evil.example", "0.0.0.0:8080"),
            )
        ),
    ),
    b"303": tuple(f"HTTP/1.1\r\nHost: {host}" for host in ("127.0.0.1", "LocalHost:9", "[::1]:8080")),
}
"""Ends of the head of a request, by the status of its answer."""


async def test_host_of_a_request_is_checked(site: ConsoleSite) -> None:
    heads = [(f"GET /console {end}", status) for status, ends in HEADS.items() for end in ends]
    heads.append(("GET http://evil.example/console HTTP/1.1\r\nHost: 127.0.0.1", b"303"))
    async with asyncio.timeout(TIMEOUT_S), listening(site.service.web) as server:
        for head, status in heads:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert answer.split(b" ", 2)[1] == status, (head, answer)
            assert b"evil" not in answer


async def test_console_can_be_turned_off(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", console="off") as opened:
        for path in ("/console", "/console/login", "/overlay/x"):
            answer = await opened.request("GET", path, who=OWNER)
            assert (answer.status_code, answer.json()["error"]) == (404, "NOT_FOUND")


async def test_error_pages_have_the_headers_of_their_errors(site: ConsoleSite) -> None:
    answer = await site.request("PUT", "/console/logout", who=OWNER)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


async def test_failed_log_ins_of_an_address_are_limited_and_recorded(tmp_path: Path) -> None:
    async with open_site(tmp_path / "data", max_failed_logins="3") as site:
        wrong = {"Authorization": "Bearer wrong"}
        answers = [(await site.request("GET", "/api/v1/servers", headers=wrong)).status_code for _ in range(2)]
        answers += [(await log_in(site, "wrong")).status_code for _ in range(2)]
        assert answers == [401, 401, 401, 429]
        form, api = await log_in(site, "wrong"), await site.request("GET", "/api/v1/servers", headers=wrong)
        link = await site.request("POST", f"/console/login/{'A' * 43}")
        assert [one.status_code for one in (form, api, link)] == [429, 429, 429]
        assert int(form.headers["retry-after"]) == int(api.headers["retry-after"]) > 1
        assert "The limit of your address is 3 failed log-ins per minute." in form.text
        elsewhere = httpx.ASGITransport(app=site.service.web, client=("192.0.2.7", 50_000))
        async with httpx.AsyncClient(transport=elsewhere, base_url="http://127.0.0.1") as client:
            assert (await client.get("/api/v1/servers", headers=wrong)).status_code == 401
        assert (await log_in(site, site.keys[OWNER].text)).status_code == 303
        page = await site.request("GET", "/console/access", who=OPERATOR)
        assert "failed to log in" in page.text
        assert "with an API key from loopback" in page.text
        assert "with an API key from 192.0.2.7" in page.text
