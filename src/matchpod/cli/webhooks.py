"""Create, change and test webhooks, list their deliveries and send them again: `matchpod webhooks`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, command_group, print_listing, print_note, short_time
from matchpod.core.errors import MatchpodError
from matchpod.core.requests.callback_query import CallbackState
from matchpod.core.requests.text_rules import printable
from matchpod.core.requests.webhook_request import DeliveriesQuery, read_delivery_id, read_webhook_id
from matchpod.core.webhook_events import ALL_EVENTS, WebhookFormat
from matchpod.service.access.audit import COMMAND_LINE, Audit
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.webhooks.management import Webhooks
from matchpod.service.webhooks.views import DeliveryItem, WebhookView, webhook_view
from matchpod.storage import organizations, webhook_deliveries, webhooks

MAX_LISTED: Final = 1_000
"""Maximum value of `--limit`. All listed deliveries are read as one page."""

app = command_group("Webhooks, which send the events of an organization's matches as they happen.")

WebhookId = Annotated[str, typer.Argument(metavar="WEBHOOK_ID", help="The id of the webhook, as `list` shows it.")]
Events = Annotated[list[str] | None, typer.Option("--event", help="An event type to send; repeatable. Default: all.")]
Org = Annotated[str, typer.Option("--org", metavar="NAME", help="The organization.")]

_T = TypeVar("_T")


class OwnedWebhook(WebhookView, frozen=True, kw_only=True, rename="camel"):
    """A webhook with the name of its organization."""

    organization: str


_WEBHOOKS: Final[Columns[OwnedWebhook]] = {
    "id": lambda webhook: webhook.id,
    "organization": lambda webhook: webhook.organization,
    "state": lambda webhook: "on" if webhook.enabled else f"off ({webhook.disabled_reason})",
    "format": lambda webhook: webhook.format.value,
    "events": lambda webhook: " ".join(webhook.events),
    "url": lambda webhook: webhook.url,
}
_DELIVERIES: Final[Columns[DeliveryItem]] = {
    "id": lambda delivery: delivery.id,
    "event": lambda delivery: delivery.event_type,
    "state": lambda delivery: delivery.state.value,
    "created": lambda delivery: short_time(delivery.created_at),
    "server": lambda delivery: delivery.server_id,
    "attempts": lambda delivery: str(delivery.attempt_count),
    "last answer": lambda delivery: (
        delivery.last_error or (None if delivery.last_status is None else str(delivery.last_status))
    ),
}


@app.command("list")
def list_webhooks(
    *,
    org: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Only webhooks of this organization.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List the webhooks of all organizations or, with --org, of one organization."""

    async def work(resources: Resources) -> list[OwnedWebhook]:
        names = {organization.id: organization.name for organization in await organizations.list(resources.db)}
        org_id = None if org is None else await _organization(resources, org)
        now_ms = resources.clock.now_ms()
        return [
            OwnedWebhook(
                **msgspec.structs.asdict(webhook_view(row, now_ms=now_ms)),
                organization=names.get(row.org_id, row.org_id),
            )
            for row in await webhooks.all_of(resources.db, org_id=org_id)
        ]

    print_listing(run_with_resources(work), _WEBHOOKS, as_json=json)


@app.command()
def create(
    url: Annotated[str, typer.Argument(help="The URL that receives the events.")],
    org: Org,
    events: Events = None,
    format: Annotated[WebhookFormat, typer.Option("--format", help="The format of the requests.")] = WebhookFormat.JSON,
) -> None:
    """Create a webhook. Print its id and its secret; the secret is not shown again."""
    body = msgspec.json.encode({"url": url, "events": events or [ALL_EVENTS], "format": format.value})

    async def work(resources: Resources) -> tuple[str, str]:
        principal = _principal(await _organization(resources, org))
        created = await _management(resources).create(principal, body)
        return created.id, created.secret

    webhook_id, secret = _run(work, needs_key=True)
    typer.echo(webhook_id)
    typer.echo(secret)
    print_note("the second line is its secret, which is not shown again")


@app.command()
def update(
    webhook_id: WebhookId,
    url: Annotated[str | None, typer.Option("--url", help="Send to this URL.")] = None,
    events: Annotated[list[str] | None, typer.Option("--event", help="Send only these types, repeatable.")] = None,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Switch it on or off.")] = None,
) -> None:
    """Change a webhook."""
    given = {"url": url, "events": events or None, "enabled": on}
    body = msgspec.json.encode({name: value for name, value in given.items() if value is not None})

    async def work(resources: Resources) -> WebhookView:
        principal = await _owner(resources, webhook_id)
        return await _management(resources).change(principal, webhook_id, body)

    found = _run(work, needs_key=url is not None)
    print_note(f"{found.id} is {'on' if found.enabled else 'off'} and sends {' '.join(found.events)} to {found.url}")


@app.command()
def delete(webhook_id: WebhookId) -> None:
    """Delete a webhook and its deliveries."""

    async def work(resources: Resources) -> None:
        await _management(resources).delete(await _owner(resources, webhook_id), webhook_id)

    _run(work)
    print_note(f"{webhook_id} is deleted")


@app.command("rotate-secret")
def rotate_secret(webhook_id: WebhookId) -> None:
    """Replace the secret of a webhook and print the new secret. For a day, the old secret signs as well."""

    async def work(resources: Resources) -> str:
        principal = await _owner(resources, webhook_id)
        return (await _management(resources).rotate_secret(principal, webhook_id)).secret

    typer.echo(_run(work, needs_key=True))


@app.command()
def test(webhook_id: WebhookId) -> None:
    """Send a test event, and print the id of its delivery."""

    async def work(resources: Resources) -> str:
        return (await _management(resources).test(await _owner(resources, webhook_id), webhook_id)).id

    typer.echo(_run(work, needs_original=True))
    print_note(
        f"a running service on this database sends it within seconds; see matchpod webhooks deliveries {webhook_id}"
    )


@app.command()
def deliveries(
    webhook_id: WebhookId,
    state: Annotated[CallbackState | None, typer.Option("--state", help="Only deliveries in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MAX_LISTED, help="Maximum number of deliveries.")] = 20,
    json: AsJson = False,
) -> None:
    """List the deliveries of a webhook, newest first."""

    async def work(resources: Resources) -> list[DeliveryItem]:
        principal = await _owner(resources, webhook_id)
        query = DeliveriesQuery(state=state, page_size=limit)
        return [*(await _management(resources).deliveries(principal, webhook_id, query)).items]

    print_listing(_run(work), _DELIVERIES, as_json=json)


@app.command()
def redeliver(
    delivery_id: Annotated[
        str, typer.Argument(metavar="DELIVERY_ID", help="The id of the delivery, as `deliveries` shows it.")
    ],
) -> None:
    """Send a delivery again, with the same id and the same bytes."""

    async def work(resources: Resources) -> None:
        key = read_delivery_id(delivery_id)
        webhook_id = None if key is None else await webhook_deliveries.webhook_of(resources.db, key)
        if webhook_id is None:
            fail(f"There is no delivery {printable(delivery_id)}.", code=2)
        principal = await _owner(resources, webhook_id)
        await _management(resources).redeliver(principal, webhook_id, delivery_id)

    _run(work, needs_original=True)
    print_note(f"{delivery_id} is due now; a running service on this database sends it within seconds.")


def _run(work: Callable[[Resources], Awaitable[_T]], *, needs_key: bool = False, needs_original: bool = False) -> _T:
    async def guarded(resources: Resources) -> _T:
        try:
            return await work(resources)
        except MatchpodError as exc:
            fail(str(exc), code=2)

    return run_with_resources(guarded, needs_key=needs_key, needs_original=needs_original)


def _management(resources: Resources) -> Webhooks:
    settings, db, clock = resources.settings, resources.db, resources.clock
    return Webhooks(
        db=db,
        clock=clock,
        vault=resources.vault,
        audit=Audit(db=db, clock=clock),
        private_callbacks=PrivateCallbacks(
            db=db,
            by_settings=settings.allows_private_callbacks,
            is_explicit=settings.callback_private is not None,
        ),
        max_webhooks=settings.max_webhooks,
    )


def _principal(org_id: str) -> Principal:
    """Return a principal with all rights in an organization, on behalf of the operator."""
    return Principal(org_id=org_id, key_id=COMMAND_LINE, role=Role.OWNER, scopes=frozenset(Scope))


async def _organization(resources: Resources, name: str) -> str:
    found = next(
        (organization.id for organization in await organizations.list(resources.db) if organization.name == name), None
    )
    if found is None:
        fail(f"There is no organization {printable(name)}.", code=2)
    return found


async def _owner(resources: Resources, webhook_id: str) -> Principal:
    key = read_webhook_id(webhook_id)
    row = None if key is None else await webhooks.get(resources.db, key)
    if row is None:
        fail(f"There is no webhook {printable(webhook_id)}.", code=2)
    return _principal(row.org_id)
