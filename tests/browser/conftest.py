"""One service and one browser for all tests of this folder; pages fail their test on anything that is not clean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from matchpod.service.identity.principals import Role, Scope
from tests.browser import chromium
from tests.browser.chromium import Faults
from tests.browser.console_service import ConsoleService
from tests.browser.proxy import CuttableProxy

OWNER, MEMBER, STRANGER = "owner", "member", "stranger"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleService]:
    """A service with people, which all tests share."""
    if chromium.executable() is None:
        pytest.skip(chromium.MISSING)
    created = ConsoleService(tmp_path_factory.mktemp("console"))
    with created.running:
        yield created


@pytest.fixture(scope="session")
def keys(service: ConsoleService) -> Mapping[str, str]:
    return {
        OWNER: service.running.key,
        MEMBER: service.new_key(Role.MEMBER, scopes=(Scope.SERVERS_READ,)).text,
        STRANGER: service.new_key(org="another").text,
    }


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser. Its event loop would be in the way of asynchronous tests, so they run in other processes."""
    if chromium.executable() is None:
        pytest.skip(chromium.MISSING)
    with chromium.launched() as launched:
        yield launched


class Pages:
    """Opens pages, each in a context of its own, and checks at the end that they were clean."""

    def __init__(self, browser: Browser, service: ConsoleService, keys: Mapping[str, str]) -> None:
        self._browser = browser
        self._service = service
        self._keys = keys
        self._contexts: list[BrowserContext] = []
        self.faults = Faults()

    def open(
        self, path: str | None = "/console", *, who: str | None = OWNER, base_url: str | None = None, **options: Any
    ) -> Page:
        """Open a page as this person; options are those of a browser context."""
        url = base_url or self._service.url
        context = self._browser.new_context(base_url=url, **options)
        self._contexts.append(context)
        context.set_default_timeout(chromium.TIMEOUT_MS)
        self.faults.watch(context)
        if who is not None:
            cookie = self._service.new_cookie(self._keys[who])
            context.add_cookies([{"name": "matchpod", "value": cookie, "domain": "127.0.0.1", "path": "/"}])
        page = context.new_page()
        if path is not None:
            page.goto(path)
        return page

    def open_tab(self, page: Page, path: str) -> Page:
        """Open a page in another tab of the same browser."""
        tab = page.context.new_page()
        tab.goto(path)
        return tab

    def close(self) -> None:
        """Close all pages; fail if one was not clean."""
        for context in self._contexts:
            context.close()
        self.faults.check()


@pytest.fixture
def pages(
    request: pytest.FixtureRequest, browser: Browser, service: ConsoleService, keys: Mapping[str, str]
) -> Iterator[Pages]:
    """Opens pages. The test fails on any console message, script error, failed request, violation or dialog.

    There are matches with hostile texts, which stay open, unless a test wants a wall that is quiet.
    """
    if "quiet_wall" not in request.fixturenames:
        service.keep_open()
    opened = Pages(browser, service, keys)
    yield opened
    opened.close()


@pytest.fixture
def proxy(service: ConsoleService) -> Iterator[CuttableProxy]:
    """A network between the browser and the service."""
    created = CuttableProxy(service.running.port)
    yield created
    created.close()


def path_of(page: Page) -> str:
    """Return the path of the address that a page shows."""
    return urlsplit(page.url).path
