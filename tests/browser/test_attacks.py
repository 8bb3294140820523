"""Attacks by pages of other sites in a real browser: forged forms, frames, windows, and scripts of our own page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Pages
from tests.browser.console_service import ConsoleService

SAME_SITE, CROSS_SITE = "127.0.0.1", "localhost"
"""Names of the attacker's page: another port of our host gets our cookies, another host does not."""


class Attacker:
    """A web server whose only page is `html`."""

    def __init__(self) -> None:
        self.html = ""
        attacker = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = attacker.html.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def url(self, host: str) -> str:
        return f"http://{host}:{self._server.server_port}/"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


EACH_SITE = pytest.mark.parametrize("host", [SAME_SITE, pytest.param(CROSS_SITE, marks=pytest.mark.soak)])
"""A page of the same site gets more cookies sent, so it is the more dangerous one."""


@pytest.fixture
def attacker() -> Iterator[Attacker]:
    created = Attacker()
    yield created
    created.close()


def is_logged_in(page: Page, service: ConsoleService) -> bool:
    page.goto(f"{service.url}/console")
    return page.get_by_role("button", name="Log out").count() == 1


@EACH_SITE
def test_scripts_of_other_sites_neither_act_nor_read(
    pages: Pages, service: ConsoleService, attacker: Attacker, host: str
) -> None:
    pages.faults.expect("CORS policy", "net::ERR_FAILED", "status of 403", "request failed")
    attacker.html = "<p>nothing to see"
    page = pages.open(attacker.url(host))
    for options in ({"method": "POST"}, {"method": "GET"}, {"method": "POST", "body": "key=x"}):
        outcome = page.evaluate(
            """async ([url, options]) => { try { return (await fetch(url, {credentials: "include", ...options})).type }
                 catch (error) { return "rejected" } }""",
            [f"{service.url}/console/logout" if options["method"] == "POST" else f"{service.url}/console", options],
        )
        assert outcome == "rejected"
    opaque = """async (url) => { const answer = await fetch(url, {method: "POST", mode: "no-cors", credentials: "include"});
                  return [answer.type, (await answer.text()).length] }"""
    assert page.evaluate(opaque, f"{service.url}/console/logout") == ["opaque", 0]
    stream = """(url) => new Promise((done) => { const source = new EventSource(url, {withCredentials: true});
                  source.onmessage = () => done("read"); source.onerror = () => { source.close(); done("rejected") } })"""
    assert page.evaluate(stream, f"{service.url}/console/stream") == "rejected"
    assert is_logged_in(page, service)


@EACH_SITE
def test_console_cannot_be_framed(pages: Pages, service: ConsoleService, attacker: Attacker, host: str) -> None:
    pages.faults.expect("frame-ancestors", "X-Frame-Options", "ERR_BLOCKED_BY_RESPONSE", "chrome-error")
    paths = ("/console", "/console/login", "/console/nothing", "/console/stream")
    attacker.html = "".join(f'<iframe src="{service.url}{path}"></iframe>' for path in paths)
    page = pages.open(attacker.url(host))
    page.wait_for_load_state("networkidle")
    for frame in page.frames[1:]:
        assert frame.url == "chrome-error://chromewebdata/" or "Matchpod" not in frame.content()


def test_window_that_other_sites_open_cannot_be_controlled(
    pages: Pages, service: ConsoleService, attacker: Attacker
) -> None:
    attacker.html = f"<button onclick=\"window.opened = window.open('{service.url}/console')\">Open</button>"
    page = pages.open(attacker.url(CROSS_SITE))
    with page.expect_popup() as popup:
        page.get_by_role("button").click()
    popup.value.wait_for_load_state()
    assert popup.value.evaluate("window.opener") is None
    page.wait_for_function("window.opened.closed")  # as far as the opener can see


def test_links_from_elsewhere_keep_the_session(pages: Pages, service: ConsoleService, attacker: Attacker) -> None:
    attacker.html = f'<a href="{service.url}/console">the match of tonight</a>'
    page = pages.open(attacker.url(CROSS_SITE))
    page.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Live", level=1)).to_be_visible()


def test_policy_stops_code_and_styles_that_got_into_a_page(pages: Pages) -> None:
    pages.faults.expect("policy violated", "Content Security Policy", "violates the following", "Refused to")
    page = pages.open()
    done = page.evaluate(
        """async () => {
          const add = (html) => document.body.insertAdjacentHTML("beforeend", html);
          add('<img src=/console/assets/none onerror="window.attacked = 1">');
          add('<a id=bad href="javascript:window.attacked = 2">x</a>');
          document.getElementById("bad").click();
          const script = document.createElement("script");
          script.textContent = "window.attacked = 3";
          document.body.append(script);
          add('<p id=styled style="position: fixed">x</p><iframe src=/console></iframe>');
          let evaluated = "stopped";
          await fetch("https://evil.example/").catch(() => { evaluated += ", not sent" });
          await new Promise((done) => setTimeout(done, 300));
          return [window.attacked ?? null, evaluated, getComputedStyle(document.getElementById("styled")).position];
        }"""
    )
    assert done == [None, "stopped, not sent", "static"]
    assert any("policy violated" in fault for fault in pages.faults.found)
    pages.faults.expect("/console/assets/none", "chrome-error")
