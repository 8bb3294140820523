"""Drive Debian's Chromium with Playwright, and record everything on a page that a user should never cause.

Playwright's own browsers are never downloaded.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

MISSING = "Chromium is not installed; on Debian and Ubuntu: make chromium"
EXECUTABLES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu")
TIMEOUT_MS = 90_000
"""Far more than anything takes, even on a machine whose cores are mostly used by others."""
expect.set_options(timeout=TIMEOUT_MS)
AXE_OPTIONS = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
"""All rules that are on by default, and the size of targets; not those of level AAA."""

SET_VISIBLE = """(state) => {
  Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Hides or shows a page, as the browser does with tabs in the background."""

DESK = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} by ${event.blockedURI} ${event.sourceFile}`));
"""


def executable() -> str | None:
    """Return the path of Chromium; None if it is not installed."""
    return next(filter(None, map(shutil.which, EXECUTABLES)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """Run a browser until the end of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Faults:
    """Console messages, errors of scripts, failed requests, violations of the policy, and dialogs."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._expected: list[str] = []

    def expect(self, *parts: str) -> None:
        """Do not count faults whose text contains one of these."""
        self._expected += parts

    def check(self) -> None:
        """Fail if there was any."""
        unexpected = [fault for fault in self.found if not any(part in fault for part in self._expected)]
        assert not unexpected, "\n".join(unexpected)

    def watch(self, context: BrowserContext) -> None:
        """Record the faults of all pages of a context."""
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.found.append(f"script error: {error.error}"))
        context.on("requestfailed", self._on_failed)
        context.on("page", self._on_page)

    def _on_page(self, page: Page) -> None:
        def dismiss(dialog: Any) -> None:
            self.found.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        page.on("dialog", dismiss)

    def _on_console(self, message: ConsoleMessage) -> None:
        self.found.append(f"console {message.type}: {message.text} {message.location.get('url', '')}")

    def _on_failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # its page was left
            self.found.append(f"request failed: {request.url} {request.failure}")


def axe_findings(page: Page) -> list[str]:
    """Return the accessibility findings on a page, of all levels; its context must bypass the security policy."""
    script = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page.evaluate(script)
    found = page.evaluate("(options) => axe.run(document, options)", AXE_OPTIONS)
    return [
        f"{one['impact']}: {one['id']}: {one['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


def check(page: Page) -> None:
    """Fail if a page has an accessibility fault or is wider than its window."""
    assert axe_findings(page) == []
    assert overflow(page) <= 0
