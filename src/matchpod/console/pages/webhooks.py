"""List, create, change, test and delete webhooks, and send their deliveries again.

The secret of a webhook is contained in one response only, which browsers do not store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from matchpod.console.filters import Filters, read_filters, storable
from matchpod.console.pages.deliveries import DAY_MS, STATES
from matchpod.console.rendering import iso
from matchpod.console.visit import Visit, Who
from matchpod.core.errors import CallbackWaitingError, InvalidParamsError, MatchpodError, RateLimitError
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.webhook_request import DeliveriesQuery, read_deliveries_query
from matchpod.core.webhook_events import ALL_EVENTS, WebhookEvent, WebhookFormat
from matchpod.service.callbacks.deliveries import MAX_REDELIVERED
from matchpod.web.http.responses import Response

PATH: Final = "/console/webhooks"
EVENT: Final = "event-"
"""Prefix of the name of a checkbox that selects an event type."""
FIELDS: Final = {"url": "URL", "events": "Events", "since": "Created since"}
WHICH: Final = (ALL_EVENTS, *(event.value for event in WebhookEvent))


async def show_list(
    visit: Visit, *, given: Mapping[str, str] | None = None, fault: MatchpodError | None = None
) -> Response:
    """Show all webhooks, and the form that creates a webhook."""
    found = await visit.deps.services.webhooks.list(visit.principal)
    wrong, text = _words(fault)
    return visit.page(
        "webhooks.html",
        status=200 if fault is None else fault.status,
        found=found,
        failing=[one for one in found.items if one.disabled_reason == "failing"],
        given=given or {EVENT + ALL_EVENTS: "on"},
        formats=list(WebhookFormat),
        events=WHICH,
        event=EVENT,
        fault=text,
        wrong=wrong,
    )


async def create(visit: Visit) -> Response:
    """Create a webhook, and show its secret once."""
    given = await visit.form()
    body = {"url": given.get("url", "").strip(), "events": _events(given), "format": given.get("format") or None}
    try:
        created = await visit.deps.services.webhooks.create(visit.principal, _json(body))
    except (InvalidParamsError, RateLimitError) as exc:
        return await show_list(visit, given=given, fault=exc)
    return _secret(visit, "The webhook was created", created.id, created.secret)


async def show(visit: Visit, *, given: Mapping[str, str] | None = None, fault: MatchpodError | None = None) -> Response:
    """Show a webhook and its deliveries."""
    webhook_id = visit.call.params[0]
    one = await visit.deps.services.webhooks.get(visit.principal, webhook_id)
    filters: Filters[DeliveriesQuery] = read_filters(visit.query(), read_deliveries_query, {})
    wrong, text = _words(fault)
    found = None
    if filters.query is not None:
        found = await visit.deps.services.webhooks.deliveries(visit.principal, webhook_id, filters.query)
    return visit.page(
        "webhook.html",
        status=(400 if found is None else 200) if fault is None else fault.status,
        one=one,
        found=found,
        filters=filters,
        states=STATES,
        given=given or {EVENT + name: "on" for name in one.events},
        since=iso(visit.deps.now_ms() - DAY_MS).removesuffix("Z"),
        max_redelivered=MAX_REDELIVERED,
        events=WHICH,
        event=EVENT,
        fault=text,
        wrong=wrong,
    )


async def change(visit: Visit) -> Response:
    """Change the URL or the event types of a webhook."""
    given, webhook_id = await visit.form(), visit.call.params[0]
    url = given.get("url", "").strip()
    body = {"events": _events(given)} | ({"url": url} if url else {})
    try:
        await visit.deps.services.webhooks.change(visit.principal, webhook_id, _json(body))
    except InvalidParamsError as exc:
        return await show(visit, given=given, fault=exc)
    return visit.done(f"{PATH}/{webhook_id}", "webhook-changed")


async def switch_on(visit: Visit) -> Response:
    return await _switch(visit, enabled=True)


async def switch_off(visit: Visit) -> Response:
    return await _switch(visit, enabled=False)


async def test(visit: Visit) -> Response:
    """Send a test event to a webhook, and show its delivery."""
    try:
        sent = await visit.deps.services.webhooks.test(visit.principal, visit.call.params[0])
    except RateLimitError as exc:
        return await show(visit, fault=exc)
    return visit.done(f"{PATH}/{sent.webhook_id}/deliveries/{sent.id}", "webhook-tested")


async def rotate(visit: Visit) -> Response:
    """Replace the secret of a webhook, and show the new secret once."""
    rotated = await visit.deps.services.webhooks.rotate_secret(visit.principal, visit.call.params[0])
    return _secret(visit, "The secret was replaced", rotated.id, rotated.secret)


async def delete(visit: Visit) -> Response:
    await visit.deps.services.webhooks.delete(visit.principal, visit.call.params[0])
    return visit.done(PATH, "webhook-deleted")


async def redeliver_given_up(visit: Visit) -> Response:
    """Send given-up deliveries of a webhook again: the oldest created since the time in `since`, up to a limit."""
    webhook_id, since = visit.call.params[0], storable((await visit.form()).get("since", "").strip())
    try:
        body = _json({"since": since})
        done = await visit.deps.services.webhooks.redeliver_given_up(visit.principal, webhook_id, body)
    except (InvalidParamsError, RateLimitError) as exc:
        return await show(visit, fault=exc)
    return visit.done(f"{PATH}/{webhook_id}", "deliveries-sent" if done.count else "no-deliveries-sent")


async def show_delivery(visit: Visit, fault: MatchpodError | None = None) -> Response:
    """Show a delivery, with its attempts and its body."""
    webhook_id, delivery_id = visit.call.params
    found = await visit.deps.services.webhooks.delivery(visit.principal, webhook_id, delivery_id)
    return visit.page(
        "webhook_delivery.html",
        status=200 if fault is None else fault.status,
        one=found,
        fault=None if fault is None else str(fault),
        body=msgspec.json.format(bytes(found.body), indent=2).decode(errors="replace"),
        may_redeliver=visit.may(Who.MANAGER) and found.state is not CallbackState.WAITING,
    )


async def redeliver(visit: Visit) -> Response:
    """Send a delivery again."""
    webhook_id, delivery_id = visit.call.params
    try:
        await visit.deps.services.webhooks.redeliver(visit.principal, webhook_id, delivery_id)
    except (CallbackWaitingError, RateLimitError) as exc:
        return await show_delivery(visit, exc)
    return visit.done(f"{PATH}/{webhook_id}/deliveries/{delivery_id}", "delivery-redelivered")


async def _switch(visit: Visit, *, enabled: bool) -> Response:
    webhook_id = visit.call.params[0]
    await visit.deps.services.webhooks.change(visit.principal, webhook_id, _json({"enabled": enabled}))
    return visit.done(f"{PATH}/{webhook_id}", "webhook-on" if enabled else "webhook-off")


def _secret(visit: Visit, title: str, webhook_id: str, secret: str) -> Response:
    return visit.page(
        "secret.html",
        title=title,
        text=secret,
        label="secret of the webhook",
        key=None,
        back=f"{PATH}/{webhook_id}",
    )


def _words(fault: MatchpodError | None) -> tuple[str, str]:
    """Return the name of the field with the fault (empty if there is none), and the fault in words."""
    faults = fault.faults if isinstance(fault, InvalidParamsError) else ()
    if not faults:
        return "", str(fault or "")
    field = str(faults[0].path).partition("[")[0]
    known = FIELDS.get(field)
    return "" if known is None else field, f"{known or field} {faults[0].message}."


def _events(given: Mapping[str, str]) -> list[str]:
    return [name for name in WHICH if EVENT + name in given]


def _json(body: Mapping[str, object]) -> bytes:
    return msgspec.json.encode({name: value for name, value in body.items() if value is not None})
