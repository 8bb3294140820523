"""Webhooks in a browser: an admin creates one, tries it, reads its delivery and deletes it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Pages

URL = "http://127.0.0.1:9/in?token=hidden"


def test_webhook_is_created_tried_and_deleted(pages: Pages) -> None:
    page = pages.open("/console/webhooks")
    page.locator("#new-webhook > summary").click()
    page.get_by_label("URL", exact=True).fill(URL)
    page.get_by_role("button", name="Create the webhook").click()
    expect(page.locator(".secret")).to_contain_text("whsec_")
    page.get_by_role("link", name="To the webhook").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("token=***")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Delivery of webhook.test")
    expect(page.get_by_label("Body of the delivery")).to_contain_text('"type": "webhook.test"')
    page.get_by_role("link", name="All deliveries of the webhook").click()
    expect(page.get_by_role("cell", name="webhook.test")).to_be_visible()
    page.locator("summary", has_text="Switch off").click()
    page.get_by_role("button", name="Switch it off").click()
    expect(page.get_by_text("The webhook is off.")).to_be_visible()
    page.get_by_role("link", name="Given up", exact=True).click()
    page.get_by_role("row").filter(has_text="webhook.test").get_by_role("link", name="Details").click()
    page.locator("summary", has_text="Send again").click()
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_text("The delivery is being sent again.")).to_be_visible()
    page.go_back()
    page.goto("/console/webhooks")
    row = page.get_by_role("row").filter(has_text="token=***")
    row.get_by_role("link", name="Details").click()
    page.locator("summary", has_text="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Webhooks")
    expect(row).to_have_count(0)
