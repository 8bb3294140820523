"""List, show, cancel and rule on matches of all organizations: `matchpod match`.

Secrets are never shown: neither passwords, nor the tokens with which game servers post.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Final, TypeVar

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable
from matchpod.app import Resources
from matchpod.cli.actions import ServerId, act_on_match, find_server, list_actions
from matchpod.cli.demos import show_demos
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import Columns, command_group, print_listing, short_time
from matchpod.core.effects import CancelReason
from matchpod.core.errors import InvalidParamsError, MatchpodError
from matchpod.core.labels import MAX_LABELS, Label, read_label
from matchpod.core.requests.callback_query import CallbacksQuery
from matchpod.core.requests.ruling_request import read_ruling_request
from matchpod.core.requests.text_rules import label_fault, printable
from matchpod.core.rulings import RuledWinner, ruling_words
from matchpod.core.secrets import mask_url
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database
from matchpod.service.access.audit import COMMAND_LINE, Action, Audit
from matchpod.service.cancellation import Cancellation
from matchpod.service.end_match import MATCH_CANCELED, MATCH_OVER
from matchpod.service.reading.callbacks import CallbackAttempt, CallbackDetail, detail_of
from matchpod.service.reading.history_views import SeriesDetailMap, map_view
from matchpod.service.reading.match_head import ServerItem
from matchpod.service.reading.match_records import log_parts
from matchpod.service.reading.server_lists import server_items
from matchpod.service.row_views import view_of
from matchpod.service.rulings import Rulings
from matchpod.storage import callback_lists, history, outbox, rulings, servers, unfinished
from matchpod.storage.servers import ServerRow

MAX_LISTED: Final = 1_000
"""Maximum value of `--limit`. More matches would not be useful in a terminal."""

_T = TypeVar("_T")

app = command_group("List, show, cancel, rule on and act on matches of all organizations.")
app.command("act")(act_on_match)
app.command("actions")(list_actions)
app.command("demo")(show_demos)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


class OperatorServer(ServerItem, frozen=True, kw_only=True, rename="camel"):
    """A server as the API returns it, with additional fields for operators."""

    org_id: str
    server_phase: ServerPhase
    running_at: str | None
    slot: str | None
    held_by: str | None
    tries: int
    server_error: str | None


class SetAsideLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A log entry that was skipped, because it could not be applied, or because processes died while applying it."""

    seq: int
    kind: str
    begun: int


class RulingLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ruling on a match, with its author. If it was withdrawn, also when and by whom."""

    id: str
    winner: RuledWinner
    reason: str | None
    by: str | None
    ruled_at: str
    ruled_by: str
    withdrawn_at: str | None
    withdrawn_by: str | None


class MatchPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All that is known about a match except its secrets, mostly in the format of the API."""

    server: OperatorServer
    settings: msgspec.Raw
    result: msgspec.Raw | None
    callback: CallbackDetail | None
    maps: list[SeriesDetailMap]
    set_aside: list[SetAsideLine]
    rulings: list[RulingLine]
    """All rulings on the match, newest first, including rulings that were withdrawn or replaced."""


_COLUMNS: Final[Columns[OperatorServer]] = {
    "server": lambda server: server.server_id,
    "status": lambda server: server.status,
    "region": lambda server: server.region,
    "created": lambda server: short_time(server.created_at),
    "ended": lambda server: short_time(server.ended_at),
    "external id": lambda server: server.external_match_id,
}


@app.command("list")
def list_matches(
    status: Annotated[ServerStatus | None, typer.Option(help="Only matches with this status.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:VALUE", help="Only matches with this label; may be repeated for several."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Maximum number of matches.")] = 20,
    json: AsJson = False,
) -> None:
    """List the matches of all organizations, newest first."""
    labels = read_label_options(label or ())

    async def read(resources: Resources) -> list[OperatorServer]:
        found = await servers.newest(resources.db, status=status, labels=labels, limit=limit)
        return await _views(resources.db, found)

    print_listing(run_with_resources(read), _COLUMNS, as_json=json)


@app.command("show")
def show_match(server_id: ServerId, json: AsJson = False) -> None:
    """Show a match: its state or outcome, and the delivery of its callback."""

    async def read(resources: Resources, row: ServerRow) -> MatchPage:
        db = resources.db
        outcome = await outbox.outcome_of(db, row.id)
        _, callbacks = await callback_lists.list_page(db, row.org_id, CallbacksQuery(server_id=row.id))
        return MatchPage(
            server=(await _views(db, [row]))[0],
            settings=msgspec.Raw(row.settings),
            result=None if outcome is None or outcome.result is None else msgspec.Raw(outcome.result),
            callback=await detail_of(db, callbacks[0]) if callbacks else None,
            maps=[map_view(map_row) for map_row in await history.maps_of(db, row.id)],
            set_aside=[view_of(SetAsideLine, entry) for entry in await unfinished.of_server(db, row.id)],
            rulings=[view_of(RulingLine, ruling, by=ruling.person) for ruling in await rulings.of_server(db, row.id)],
        )

    page = _run_on_match(server_id, read)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(page), indent=2))
    else:
        _print_page(page)


@app.command("result")
def show_result(server_id: ServerId) -> None:
    """Print the result of a finished match in JSON, as in its callback."""

    async def read(resources: Resources, row: ServerRow) -> bytes:
        outcome = await outbox.outcome_of(resources.db, row.id)
        if outcome is None or outcome.result is None:
            why = "it has not ended" if outcome is None else f"it was canceled ({outcome.reason})"
            fail(f"The match on {server_id} has no result: {why}.")
        return outcome.result

    typer.echo(_run_on_match(server_id, read))


@app.command("log")
def print_log(server_id: ServerId) -> None:
    """Print the log of a game server as it was received, but without passwords."""

    async def read(resources: Resources, row: ServerRow) -> None:
        async for part in log_parts(resources.db, row):
            typer.echo(part, nl=False)

    _run_on_match(server_id, read)


@app.command("cancel")
def cancel_match(server_id: ServerId) -> None:
    """Cancel a match and release its server. Its callback has the reason `canceled_by_operator`."""

    async def cancel(resources: Resources, row: ServerRow) -> ServerRow:
        db, clock = resources.db, resources.clock
        record = Audit(db=db, clock=clock).entry(
            Action.MATCH_CANCELED, org_id=row.org_id, actor=COMMAND_LINE, target=row.id
        )
        cancellation = Cancellation(db=db, clock=clock, random_bytes=secrets.token_bytes)
        if not await cancellation.cancel(row, CancelReason.CANCELED_BY_OPERATOR, record):
            fail(f"The match on {server_id} has already ended.")
        return row

    row = _run_on_match(server_id, cancel, needs_original=True)
    callback = "a callback will be sent" if row.callback_url else "no callback was requested"
    typer.echo(f"The match on {server_id} is canceled; {callback}.")


@app.command("rule")
def rule_match(
    server_id: ServerId,
    winner: Annotated[
        RuledWinner | None, typer.Option(help="Who wins. With `none` the match is void, and counts for no team.")
    ] = None,
    *,
    reason: Annotated[str | None, typer.Option(help="The reason, as text for people.")] = None,
    by: Annotated[str | None, typer.Option(help="The person who decided.")] = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Withdraw the current ruling.")] = False,
) -> None:
    """Rule on a match that has ended. Its result stays as it is, and no callback is sent."""
    if withdraw == (winner is not None) or (withdraw and (reason or by)):
        fail("Give --winner, or --withdraw alone.", code=2)

    async def rule(resources: Resources, row: ServerRow) -> str:
        audit = Audit(db=resources.db, clock=resources.clock)
        own = Rulings(db=resources.db, clock=resources.clock, audit=audit)
        try:
            if winner is None:
                await own.end(row, actor=COMMAND_LINE, key_id=COMMAND_LINE)
                return f"The ruling on {server_id} is withdrawn."
            request = read_ruling_request({"winner": winner, "reason": reason, "by": by})
            ruling = await own.make(row, request, actor=COMMAND_LINE, key_id=COMMAND_LINE)
        except MatchpodError as exc:
            fail(f"{str(exc).removesuffix('.')}.", code=2 if isinstance(exc, InvalidParamsError) else 1)
        return f"Ruling {ruling.id}: {ruling_words(ruling)}."

    typer.echo(escape_unprintable(_run_on_match(server_id, rule, needs_original=True)))


def read_label_options(texts: Sequence[str]) -> tuple[Label, ...]:
    """Parse the --label options. If an option is invalid, exit with an error."""
    for text in texts:
        if fault := label_fault(text):
            fail(f"--label {fault.message}, not {printable(text)!r}.", code=2)
    if len(texts) > MAX_LABELS:
        fail(f"Give --label at most {MAX_LABELS} times.", code=2)
    return tuple(map(read_label, texts))


def _run_on_match(
    server_id: str, work: Callable[[Resources, ServerRow], Awaitable[_T]], *, needs_original: bool = False
) -> _T:
    """Run `work` on the match of a server. If there is no such server, exit with an error."""

    async def run(resources: Resources) -> _T:
        return await work(resources, await find_server(resources, server_id))

    return run_with_resources(run, needs_original=needs_original)


async def _views(db: Database, rows: Sequence[ServerRow]) -> list[OperatorServer]:
    return [
        view_of(
            OperatorServer,
            item,
            row,
            callback_url=None if row.callback_url is None else mask_url(row.callback_url),
            server_phase=row.phase,
            held_by=row.lease_owner,
            server_error=row.error,
        )
        for item, row in zip(await server_items(db, rows), rows, strict=True)
    ]


# --- pages as text ------------------------------------------------------------------------------------------------


def _print_page(page: MatchPage) -> None:
    server = page.server
    fields = msgspec.to_builtins(server)
    rows = [
        (name, str(value))
        for name, value in fields.items()
        if value is not None and not isinstance(value, (dict, list, tuple))
    ]
    rows += [("label", f"{name}: {value}") for name, value in fields.get("labels", {}).items()]
    rows.append(("settings", bytes(page.settings).decode()))
    if server.ended_at is not None:
        kind = MATCH_OVER if server.reason is None else f"{MATCH_CANCELED}, {server.reason}"
        rows.append(("outcome", f"{kind} at {server.ended_at}"))
    if page.callback:
        rows += [("callback", f"{page.callback.id} to {page.callback.url}: {_delivery(page.callback)}")]
        rows += [(f"attempt {attempt.number}", _attempt(attempt)) for attempt in page.callback.attempts]
    rows += [(f"map {played.map_number}", _map_text(played)) for played in page.maps]
    rows += [("ruling", _ruling_text(ruling)) for ruling in page.rulings]
    for entry in page.set_aside:
        why = f"{entry.begun} processes died applying it" if entry.begun > 1 else "it could not be applied"
        rows.append(("set aside", f"entry {entry.seq} ({entry.kind}): {why}"))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        typer.echo(f"{name:<{width}}  {escape_unprintable(text)}")


def _ruling_text(ruling: RulingLine) -> str:
    text = f"{ruling_words(ruling)} ({ruling.id}, {ruling.ruled_at}, {ruling.ruled_by})"
    return (
        text if ruling.withdrawn_at is None else f"{text}; withdrawn at {ruling.withdrawn_at} ({ruling.withdrawn_by})"
    )


def _map_text(played: SeriesDetailMap) -> str:
    text = f"{played.map_name}, {played.status}, {played.team1_score}:{played.team2_score}"
    if played.complete is False:
        rounds = ", ".join(map(str, played.missing_rounds))
        text += "; parts of the log are missing" + (f" in rounds {rounds}" if rounds else "")
    return text


def _delivery(callback: CallbackDetail) -> str:
    if callback.delivered_at:
        return f"delivered at {callback.delivered_at}"
    return f"next attempt at {callback.next_attempt_at}" if callback.next_attempt_at else "given up"


def _attempt(attempt: CallbackAttempt) -> str:
    result = attempt.error if attempt.status is None else f"status {attempt.status}"
    return f"{attempt.at}  {result}  {attempt.duration_ms} ms"
