"""The pages with webhooks: lists, forms, secrets that are shown once, tests, and deliveries that are sent again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from matchpod.core.webhook_events import FAILING_ATTEMPTS, FAILING_MS
from matchpod.storage import webhooks
from tests.contract.console import console_site
from tests.contract.console.console_site import ADMIN, MEMBER, STRANGER, ConsoleSite

PATH = "/console/webhooks"
URL = "https://hooks.example.com/matchpod?token=hidden"
SHOWN = "https://hooks.example.com/matchpod?token=***"


site = console_site.own_site


async def post(
    site: ConsoleSite, path: str, form: Mapping[str, str] | None = None, *, who: str = ADMIN, status: int = 303
) -> str:
    """Send a form, and return the page that follows, or the answer if that is a page."""
    response = await site.request("POST", path, who=who, form=form or {})
    assert response.status_code == status, response.text
    return (await site.follow(response, who=who)).text if status == 303 else response.text


async def create(site: ConsoleSite) -> str:
    text = await post(
        site, PATH + "/create", status=200, form={"url": URL, "event-map.ended": "on", "event-match.ended": "on"}
    )
    assert re.search(r"whsec_[A-Za-z0-9+/=]{44}", text)
    found = re.search(r'href="(/console/webhooks/wh_\w+)"', text)
    assert found is not None
    return found[1]


async def test_webhook_is_created_and_shown_without_its_secrets(site: ConsoleSite) -> None:
    path = await create(site)
    member = await site.page(path, who=MEMBER)
    assert "https://hooks.example.com/***" in member
    assert SHOWN not in member
    for text in (await site.page(PATH), await site.page(path)):
        assert SHOWN in text
        assert "map.ended, match.ended" in text
        assert "whsec_" not in text
    assert "Create a webhook" not in await site.page(PATH, who=MEMBER)
    assert "There is no webhook yet" in await site.page(PATH, who=STRANGER)
    await site.page(path, who=STRANGER, status=404)
    await post(site, path + "/delete", who=MEMBER, status=403)


async def test_faults_are_shown_at_their_fields_and_nothing_is_created(site: ConsoleSite) -> None:
    text = await post(site, PATH + "/create", status=400, form={"url": "ftp://x", "event-*": "on"})
    assert "URL must be an absolute http or https URL." in text
    assert 'value="ftp://x"' in text
    assert "Events must not be empty." in await post(site, PATH + "/create", status=400, form={"url": URL})
    assert "There is no webhook yet" in await site.page(PATH)


async def test_webhook_is_changed_switched_tried_and_deleted(site: ConsoleSite) -> None:
    path = await create(site)
    text = await post(site, path + "/change", form={"url": "https://other.example/in", "event-*": "on"})
    assert "The webhook was changed." in text
    assert "https://other.example/in" in text
    assert "<dd>all</dd>" in text
    assert "The webhook is off." in await post(site, path + "/off")
    assert ">off</span>" in await site.page(path)
    assert "The webhook is on." in await post(site, path + "/on")
    assert "whsec_" in await post(site, path + "/rotate", status=200)
    assert "The old secret signs until" in await site.page(path)
    text = await post(site, path + "/test")
    assert "Delivery of webhook.test" in text
    assert ">waiting</span>" in text
    assert "webhook.test" in await site.page(path + "?state=waiting")
    assert "No delivery is in this state." in await site.page(path + "?state=given_up")
    assert "The webhook was deleted." in await post(site, path + "/delete")
    await site.page(path, status=404)


async def test_what_was_given_up_is_sent_again(site: ConsoleSite) -> None:
    path = await create(site)
    await post(site, path + "/test")
    await post(site, path + "/off")
    text = await site.page(path + "?state=given_up")
    (delivery,) = re.findall(r"/deliveries/msg_\w+", text)
    assert "is being sent again" in await post(site, path + delivery + "/redeliver")
    assert "is under way or scheduled" in await post(site, path + delivery + "/redeliver", status=409)
    await post(site, path + "/off")
    assert "No delivery was given up" in await post(site, path + "/redeliver", {"since": "2999-01-01T00:00"})
    assert "The given-up deliveries are being sent again." in await post(
        site, path + "/redeliver", {"since": "2020-01-01T00:00"}
    )
    assert "Created since" in await post(site, path + "/redeliver", {"since": "soon"}, status=400)


async def test_a_webhook_that_was_switched_off_for_its_failures_is_named(site: ConsoleSite) -> None:
    path = await create(site)
    assert "was switched off" not in await site.page(PATH)
    db, now_ms = site.resources.db, site.resources.clock.now_ms()
    webhook_id = path.rpartition("/")[2]
    for at_ms in (now_ms - FAILING_MS, now_ms):
        await db.write(webhooks.note_failure(webhook_id, "none", attempts=FAILING_ATTEMPTS, now_ms=at_ms))
    for text in (await site.page(PATH), await site.page(path)):
        assert "because all deliveries failed for three days" in text
        assert "switched off: failing" in text
