"""The pages with deliveries: lists, filters, details, and callbacks that are sent again."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import unquote

import msgspec

from matchpod.service.callbacks.deliveries import MANY_PER_MINUTE, SINGLE_PER_MINUTE, CallbackDeliveries
from tests.contract.console import console_site
from tests.contract.console.callback_rows import AT_S, ended_match, given_up, record_attempt
from tests.contract.console.console_site import ADMIN, MEMBER, OWNER, STRANGER, ConsoleSite

PATH = "/console/deliveries"
LONG_AGO = "2020-01-01T00:00"
HOSTILE = "<script>alert(1)</script>\u202e"


site = console_site.own_site


async def scheduled(site: ConsoleSite) -> set[str]:
    """Return the callbacks that are waiting for an attempt."""
    rows = await site.resources.db.read("SELECT id FROM callbacks WHERE next_at_ms IS NOT NULL")
    return {str(callback_id) for (callback_id,) in rows}


async def audited(site: ConsoleSite) -> list[tuple[object, ...]]:
    """Return the target and detail of all recorded redeliveries."""
    sql = "SELECT target, detail FROM audit_log WHERE action = 'callback_redelivered' ORDER BY id"
    return [tuple(row) for row in await site.resources.db.read(sql)]


# --- list ---------------------------------------------------------------------------------------------------------


async def test_list_shows_callbacks_without_secrets(site: ConsoleSite) -> None:
    callback_id = await given_up(site, HOSTILE)
    await given_up(site, "theirs", who=STRANGER)
    text = await site.page(PATH)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE not in text
    assert "hidden" not in text.replace(" hidden>", "")
    assert "https://hooks.example.com/cs2?token=***" in text
    assert f'href="/console/deliveries/{callback_id}"' in text
    assert f'href="/console/matches/{callback_id.removeprefix("msg_")}"' in text
    assert ">given up</span>" in text
    assert ">500</span>" in text
    assert "1 in total" in text
    assert ">theirs<" not in text


async def test_tabs_and_fields_filter_the_list(site: ConsoleSite) -> None:
    failed, waiting = await given_up(site, "failed one"), await ended_match(site, "waiting one")
    delivered = await ended_match(site, "delivered one")
    await record_attempt(site, delivered, status=204)
    for query, expected in (
        ("", {failed, waiting, delivered}),
        ("?state=delivered", {delivered}),
        ("?state=&serverId=&since=&until=", {failed, waiting, delivered}),
        (f"?serverId={waiting.removeprefix('msg_')}", {waiting}),
        ("?since=2020-01-01T00:00:00Z&state=given_up", {failed}),
    ):
        text = await site.page(PATH + query)
        assert set(re.findall(r'href="/console/deliveries/(msg_\w+)"', text)) == expected, query
    text = await site.page(f"{PATH}?since=2020-01-01&page=2")
    assert 'href="/console/deliveries?since=2020-01-01&amp;state=waiting"' in text


# --- details ------------------------------------------------------------------------------------------------------


async def test_details_show_attempts_headers_and_body(site: ConsoleSite) -> None:
    callback_id = await ended_match(site, "final", result=b'{"name":"<b>\xe2\x80\xae"}')
    await record_attempt(site, callback_id, status=None, error="the connection was refused")
    await record_attempt(site, callback_id, number=2, status=204)
    text = await site.page(f"{PATH}/{callback_id}")
    assert "the connection was refused" in text
    assert ">204</span>" in text
    assert "v1,***" in text
    assert "Bearer hidden" not in text
    assert "    &#34;name&#34;: &#34;&lt;b&gt;" in text
    assert f"<code>{callback_id}.{AT_S}.</code>" in text
    line = unescape(re.findall(r'data-copy="(curl[^"]*)"', text)[0])
    assert line == f'curl -s {site.public_url}/api/v1/callbacks/{callback_id} -H "Authorization: Bearer $KEY"'


async def test_callback_without_attempts_has_nothing_to_verify(site: ConsoleSite) -> None:
    text = await site.page(f"{PATH}/{await ended_match(site, 'new')}")
    assert "There is nothing to verify" in text
    assert "An attempt is under way or scheduled." in text
    assert '<form method="post" action="/console/deliveries' not in text


async def test_body_is_returned_exactly_as_sent(site: ConsoleSite) -> None:
    result = b'{ "spaced" :  "\\u00e9" }'
    response = await site.request("GET", f"{PATH}/{await ended_match(site, 'x', result=result)}/body", who=MEMBER)
    assert result in response.content
    assert response.headers["content-disposition"] == 'attachment; filename="callback-body.json"'
    assert response.headers["content-type"] == "application/json"
    assert "default-src 'none'" in response.headers["content-security-policy"]


# --- sending again ------------------------------------------------------------------------------------------------


async def test_redelivery_acts_once(site: ConsoleSite) -> None:
    callback_id = await given_up(site, "again")
    form = {"attempts": "1"}
    assert 'name="attempts" value="1"' in await site.page(f"{PATH}/{callback_id}")
    done = await site.request("POST", f"{PATH}/{callback_id}/redeliver", who=ADMIN, form=form)
    assert (done.status_code, done.headers["location"]) == (303, f"{PATH}/{callback_id}")
    assert await scheduled(site) == {callback_id}
    assert "The callback is being sent again." in (await site.follow(done, who=ADMIN)).text
    # A second click while it waits, and one after it was sent.
    waiting = await site.request("POST", f"{PATH}/{callback_id}/redeliver", who=OWNER, form=form)
    assert waiting.status_code == 409
    assert "<p>An attempt to deliver this callback is due" in waiting.text
    await record_attempt(site, callback_id, number=2)
    stale = await site.request("POST", f"{PATH}/{callback_id}/redeliver", who=OWNER, form=form)
    assert stale.status_code == 409
    assert "was sent since you opened the page" in stale.text
    assert 'name="attempts" value="2"' in stale.text
    assert await scheduled(site) == set()
    assert await audited(site) == [(callback_id, "")]


async def test_those_who_may_only_read_see_no_buttons(site: ConsoleSite) -> None:
    callback_id = await given_up(site, "read only")
    for path in (PATH, f"{PATH}/{callback_id}"):
        assert "/redeliver" not in await site.page(path, who=MEMBER)
        assert "/redeliver" in await site.page(path)


async def test_rate_limit_is_shown_on_the_page(site: ConsoleSite) -> None:
    callback_id = await given_up(site, "often")
    for _ in range(10 * SINGLE_PER_MINUTE):  # every half a second, one more is allowed
        last = await site.request("POST", f"{PATH}/{callback_id}/redeliver", who=OWNER, form={"attempts": ""})
        if last.status_code == 429:
            break
    assert last.status_code == 429
    assert 'class="fault" role="alert"' in last.text
    assert "Callback of" in last.text
    for _ in range(MANY_PER_MINUTE + 2):
        last = await site.request("POST", f"{PATH}/redeliver", who=OWNER, form={"since": LONG_AGO})
    assert last.status_code == 429
    assert "<h1>Deliveries</h1>" in last.text
    assert f'value="{LONG_AGO}"' in last.text


async def test_form_continues_where_the_last_request_ended(site: ConsoleSite) -> None:
    services, db, clock = site.service.console.services, site.resources.db, site.resources.clock
    limited = CallbackDeliveries(db=db, clock=clock, wake=lambda: None, audit=services.audit, max_redelivered=2)
    site = site.with_parts(services=msgspec.structs.replace(services, callbacks=limited))
    for number in range(3):
        await given_up(site, f"match {number}")
    done = await site.request("POST", f"{PATH}/redeliver", who=OWNER, form={"since": LONG_AGO})
    text = (await site.follow(done, who=OWNER)).text
    assert "2 callbacks are being sent again." in text
    assert "More remain" in text
    (since,) = re.findall(r'type="datetime-local" step="any" required value="([^"]+)"', text)
    done = await site.request("POST", f"{PATH}/redeliver", who=OWNER, form={"since": since})
    assert len(await scheduled(site)) == 3
    assert "1 callback is being sent again. None remains." in (await site.follow(done, who=OWNER)).text
    none = await site.request("POST", f"{PATH}/redeliver", who=OWNER, form={"since": since})
    assert "so none was sent" in (await site.follow(none, who=OWNER)).text


async def test_default_time_is_a_day_ago_in_utc(site: ConsoleSite) -> None:
    (since,) = re.findall(r'type="datetime-local" step="any" required value="([^"]+)"', await site.page(PATH))
    ago = datetime.now(UTC) - datetime.fromisoformat(since).replace(tzinfo=UTC)
    assert timedelta(hours=24) <= ago < timedelta(hours=24, minutes=5)


async def test_address_cannot_put_text_into_the_page(site: ConsoleSite) -> None:
    for since in ("all", "-1", "%D9%A3", "%3Cb%3E"):
        text = await site.page(f"{PATH}?resendSince={since}")
        assert f'value="{unquote(since)}"' not in text
        assert '<details class="action again">' in text
