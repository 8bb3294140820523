"""List, show and cancel matches of all organizations: `matchpod match`.

Secrets are never shown: neither passwords nor the tokens that game servers post with.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable
from matchpod.app import Resources
from matchpod.cli.attempts import AttemptView, attempt_views
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import Columns, command_group, print_listing, short_time
from matchpod.core.effects import CancelReason
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import printable
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit
from matchpod.service.cancellation import Cancellation
from matchpod.service.reading.history_views import SeriesDetailMap, map_view
from matchpod.service.row_views import view_of
from matchpod.storage import history, outbox, servers, unfinished
from matchpod.storage.outbox import AttemptRow, CallbackRow, OutcomeRow
from matchpod.storage.servers import ServerRow

MAX_LISTED: Final = 1_000
"""Largest `--limit`: more is not useful in a terminal."""

app = command_group("List, show and cancel matches of all organizations.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ServerId = Annotated[str, typer.Argument(metavar="SERVER_ID", help="The id of the server, srv_…")]


class ServerLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server as shown to operators."""

    server_id: str
    org_id: str
    region: str
    status: ServerStatus
    phase: ServerPhase
    match_phase: PublicPhase
    external_match_id: str | None
    created_at: str
    created_by: str | None
    running_at: str | None
    ended_at: str | None
    ip: str | None
    port: int | None
    slot: str | None
    held_by: str | None
    tries: int
    error: str | None


class OutcomeLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a match ended."""

    kind: str
    reason: str | None
    at: str
    result: msgspec.Raw | None


class CallbackLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of a callback's delivery."""

    id: str
    url: str
    delivered_at: str | None
    next_at: str | None
    attempts: list[AttemptView]


class SetAsideLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry of the log that was set aside: it could not be applied, or processes died during it."""

    seq: int
    kind: str
    begun: int


class MatchPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Everything about a match except its secrets."""

    server: ServerLine
    settings: msgspec.Raw
    outcome: OutcomeLine | None
    callback: CallbackLine | None
    maps: list[SeriesDetailMap]
    set_aside: list[SetAsideLine]


_COLUMNS: Final[Columns[ServerLine]] = {
    "server": lambda one: one.server_id,
    "status": lambda one: one.status,
    "region": lambda one: one.region,
    "created": lambda one: short_time(one.created_at),
    "ended": lambda one: short_time(one.ended_at),
    "external id": lambda one: one.external_match_id,
}


@app.command("list")
def list_matches(
    status: Annotated[ServerStatus | None, typer.Option(help="Only matches with this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Maximum number.")] = 20,
    json: AsJson = False,
) -> None:
    """List matches, newest first."""
    found = run_with_resources(lambda resources: servers.newest(resources.db, status=status, limit=limit))
    print_listing([_server_line(row) for row in found], _COLUMNS, as_json=json)


@app.command("show")
def show_match(server_id: ServerId, json: AsJson = False) -> None:
    """Show one match: its state or outcome, and the delivery of its callback."""

    async def read(resources: Resources) -> MatchPage | None:
        row = await _server(resources.db, server_id)
        if row is None:
            return None
        callback = await outbox.callback_of(resources.db, server_id)
        attempts = await outbox.attempts_of(resources.db, callback.id) if callback else []
        page = _page(row, await outbox.outcome_of(resources.db, server_id), callback, attempts)
        set_aside = await unfinished.of_server(resources.db, server_id)
        return msgspec.structs.replace(
            page,
            maps=[map_view(one) for one in await history.maps_of(resources.db, server_id)],
            set_aside=[view_of(SetAsideLine, one) for one in set_aside],
        )

    page = run_with_resources(read)
    if page is None:
        fail(f"There is no server {printable(server_id)}.", code=2)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(page), indent=2))
    else:
        _print_page(page)


@app.command("cancel")
def cancel_match(server_id: ServerId) -> None:
    """Cancel a match and release its server; the callback has the reason `canceled_by_operator`."""

    async def cancel(resources: Resources) -> ServerRow | None:
        db, clock = resources.db, resources.clock
        row = await _server(db, server_id)
        if row is None:
            return None
        record = Audit(db=db, clock=clock).entry(
            Action.MATCH_CANCELED, org_id=row.org_id, actor=COMMAND_LINE, target=row.id
        )
        cancellation = Cancellation(db=db, clock=clock, random_bytes=secrets.token_bytes)
        if not await cancellation.cancel(row, CancelReason.CANCELED_BY_OPERATOR, record):
            fail(f"The match on {server_id} has already ended.")
        return row

    row = run_with_resources(cancel, needs_original=True)
    if row is None:
        fail(f"There is no server {printable(server_id)}.", code=2)
    callback = "a callback will be sent" if row.callback_url else "no callback was requested"
    typer.echo(f"The match on {server_id} is canceled; {callback}.")


async def _server(db: Database, server_id: str) -> ServerRow | None:
    # An argument that is not UTF-8 has surrogates, which databases reject.
    return await servers.get(db, server_id) if read_server_id(server_id) else None


# --- rows as pages ------------------------------------------------------------------------------------------------


def _page(
    row: ServerRow, outcome: OutcomeRow | None, callback: CallbackRow | None, attempts: Sequence[AttemptRow]
) -> MatchPage:
    return MatchPage(
        server=_server_line(row),
        settings=msgspec.Raw(row.settings),
        outcome=_outcome_line(outcome) if outcome else None,
        callback=view_of(CallbackLine, callback, attempts=attempt_views(attempts)) if callback else None,
        maps=[],
        set_aside=[],
    )


def _server_line(row: ServerRow) -> ServerLine:
    return view_of(ServerLine, row, server_id=row.id, match_phase=row.public_phase, held_by=row.lease_owner)


def _outcome_line(outcome: OutcomeRow) -> OutcomeLine:
    return view_of(OutcomeLine, outcome, result=None if outcome.result is None else msgspec.Raw(outcome.result))


# --- pages as text ------------------------------------------------------------------------------------------------


def _print_page(page: MatchPage) -> None:
    fields = msgspec.to_builtins(page.server)
    rows = [(name, str(value)) for name, value in fields.items() if value is not None]
    rows.append(("settings", bytes(page.settings).decode()))
    if page.outcome:
        reason = f", {page.outcome.reason}" if page.outcome.reason else ""
        rows.append(("outcome", f"{page.outcome.kind}{reason} at {page.outcome.at}"))
    if page.callback:
        rows += [("callback", f"{page.callback.id} to {page.callback.url}: {_delivery(page.callback)}")]
        rows += [(f"attempt {one.number}", _attempt(one)) for one in page.callback.attempts]
    rows += [(f"map {one.map_number}", _map_text(one)) for one in page.maps]
    for one in page.set_aside:
        why = f"{one.begun} processes died during it" if one.begun > 1 else "it could not be applied"
        rows.append(("set aside", f"entry {one.seq} ({one.kind}): {why}"))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        typer.echo(f"{name:<{width}}  {escape_unprintable(text)}")


def _map_text(one: SeriesDetailMap) -> str:
    text = f"{one.map_name}, {one.status}, {one.team1_score}:{one.team2_score}"
    if one.complete is False:
        rounds = ", ".join(map(str, one.missing_rounds))
        text += "; parts of the log are missing" + (f" in rounds {rounds}" if rounds else "")
    return text


def _delivery(callback: CallbackLine) -> str:
    if callback.delivered_at:
        return f"delivered at {callback.delivered_at}"
    return f"next attempt at {callback.next_at}" if callback.next_at else "given up"


def _attempt(attempt: AttemptView) -> str:
    result = attempt.error if attempt.status is None else f"status {attempt.status}"
    return f"{attempt.at}  {result}  {attempt.duration_ms} ms"
