"""List callbacks with their delivery attempts, and send callbacks again: `matchpod callbacks`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import command_group, print_listing, print_note, short_time
from matchpod.core.requests.callback_query import CallbackState, read_callback_id, state_of
from matchpod.core.requests.text_rules import printable
from matchpod.ports import Database
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit
from matchpod.service.row_views import time_text, view_of
from matchpod.storage import organizations, outbox
from matchpod.storage.outbox import AttemptRow, CallbackRow

MAX_LISTED: Final = 10_000
"""Maximum value of `--limit`, because each listed callback needs a separate query."""

app = command_group("Callbacks and their delivery attempts.")


class AttemptView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    number: int
    at: str
    status: int | None
    duration_ms: int
    error: str | None


class CallbackView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    callback_id: str
    organization: str
    server_id: str
    url: str
    state: CallbackState
    created_at: str
    next_attempt_at: str | None
    attempts: Sequence[AttemptView]


@app.command("list")
def list_callbacks(
    *,
    org: Annotated[
        str | None, typer.Option("--org", metavar="NAME", help="Only callbacks of this organization.")
    ] = None,
    state: Annotated[CallbackState | None, typer.Option("--state", help="Only callbacks in this state.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MAX_LISTED, help="Maximum number of callbacks.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
) -> None:
    """List callbacks and their delivery attempts, newest first."""
    views = run_with_resources(lambda resources: _views(resources.db, org, state, limit))
    if views is None:
        fail(f"There is no organization {printable(org or '')}.", code=2)
    print_listing(views, _COLUMNS, as_json=json)


@app.command()
def redeliver(
    callback_id: Annotated[
        str, typer.Argument(metavar="CALLBACK_ID", help="The id of the callback, as `list` shows it.")
    ],
) -> None:
    """Send a callback again, with the same id and the same bytes."""

    async def make_due(resources: Resources) -> bool:
        org_id = await outbox.org_of(resources.db, callback_id)
        audit = Audit(db=resources.db, clock=resources.clock)
        record = audit.entry(Action.CALLBACK_REDELIVERED, org_id=org_id, actor=COMMAND_LINE, target=callback_id)
        return await outbox.redeliver(resources.db, callback_id, resources.clock.now_ms(), record)

    # An argument that is not UTF-8 has surrogates, which databases reject, so it cannot be an id.
    if read_callback_id(callback_id) is None or not run_with_resources(make_due, needs_original=True):
        fail(f"There is no callback {printable(callback_id)}.", code=2)
    print_note(f"{callback_id} is due now; a running service on this database sends it within seconds.")


async def _views(db: Database, org: str | None, state: CallbackState | None, limit: int) -> list[CallbackView] | None:
    """Return the matching callbacks; None if `org` is not the name of an organization."""
    names = {organization.id: organization.name for organization in await organizations.list(db)}
    org_id = next((key for key, name in names.items() if name == org), None)
    if org is not None and org_id is None:
        return None
    rows = await outbox.list_callbacks(db, org_id=org_id, state=state, limit=limit)
    return [_view(row, names.get(row.org_id, row.org_id), await outbox.attempts_of(db, row.id)) for row in rows]


def _view(row: CallbackRow, organization: str, attempts: Sequence[AttemptRow]) -> CallbackView:
    return view_of(
        CallbackView,
        row,
        callback_id=row.id,
        organization=organization,
        state=state_of(next_at_ms=row.next_at_ms, delivered_at_ms=row.delivered_at_ms),
        next_attempt_at=time_text(row.next_at_ms),
        attempts=[view_of(AttemptView, attempt) for attempt in attempts],
    )


def _attempts_cell(attempts: Sequence[AttemptView]) -> str:
    """Format the delivery attempts of a callback for a table cell: status, duration and error of each."""
    return "; ".join(
        f"{attempt.number}: {attempt.status or 'no reply'} in {attempt.duration_ms} ms"
        + (f" ({attempt.error})" if attempt.error else "")
        for attempt in attempts
    )


_COLUMNS: Final[Mapping[str, Callable[[CallbackView], str | None]]] = {
    "id": lambda view: view.callback_id,
    "state": lambda view: view.state,
    "created": lambda view: short_time(view.created_at),
    "organization": lambda view: view.organization,
    "server": lambda view: view.server_id,
    "url": lambda view: view.url,
    "attempts": lambda view: _attempts_cell(view.attempts),
}
