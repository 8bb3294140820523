"""Act on a match from the command line: `matchpod match act`, `matchpod match actions`.

The command stores its request in the database. The service that drives the match finds it there within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
import typer

from matchpod.app import Resources
from matchpod.cli.resources import fail, run_with_resources
from matchpod.cli.terminal import AsJson, Columns, print_listing, print_note, short_time
from matchpod.core.errors import ActionNotPossibleError, InvalidParamsError
from matchpod.core.match.actions import ACTIONS, CONFIRM_MS, ActionState, ActionType
from matchpod.core.requests.action_request import FIELDS, read_action_request
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import printable
from matchpod.core.server_status import ServerPhase
from matchpod.service.access.audit import COMMAND_LINE, Audit
from matchpod.service.actions.requests import ActionRequests
from matchpod.service.actions.views import ActionView, action_view
from matchpod.storage import match_actions, servers
from matchpod.storage.servers import ServerRow

POLL_S: Final = 0.25
MAX_WAIT_S: Final = 3 * CONFIRM_MS / 1000
"""Timeout in seconds for an action to be done. A pause, for example, may have to wait for the end of a round."""
UNSENT_S: Final = 10.0
"""Time in seconds after which the command reports that the action was not sent yet. The service may not be running."""
NOT_SENT: Final = "It was not sent yet. The service may not be running, or the action waits for a map load."
ServerId = Annotated[str, typer.Argument(metavar="SERVER_ID", help="The id of the server, srv_…")]
_NUMBERS: Final = ("round", "seconds")

_COLUMNS: Final[Columns[ActionView]] = {
    "action": lambda view: view.action_id,
    "type": lambda view: view.type,
    "state": lambda view: view.state,
    "requested": lambda view: short_time(view.requested_at),
    "by": lambda view: view.by or view.requested_by,
    "detail": lambda view: view.detail,
}


def _fields_help() -> str:
    uses = [f"{kind}: {' '.join(field.name for field in rule.fields)}" for kind, rule in ACTIONS.items() if rule.fields]
    return f"Its fields, such as round=9 or steamId=7656…; {'; '.join(uses)}."


def act_on_match(
    server_id: ServerId,
    action: Annotated[ActionType, typer.Argument(help="The type of the action.")],
    fields: Annotated[list[str] | None, typer.Argument(metavar="FIELD=VALUE", help=_fields_help())] = None,
    *,
    reason: Annotated[str | None, typer.Option(help="The reason, as text for people.")] = None,
    by: Annotated[str | None, typer.Option(help="The person who requested it.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is done or has failed.")] = True,
    json: AsJson = False,
) -> None:
    """Pause a match, restore a round, substitute a player, and more. The service must be running.

    Exit code 1 if the action fails.
    """
    body = {"type": action.value, **_given(fields or ()), "reason": reason, "by": by}

    async def request(resources: Resources) -> ActionView:
        row = await find_server(resources, server_id)
        db, clock = resources.db, resources.clock
        requests = ActionRequests(db, clock, Audit(db=db, clock=clock))
        wanted = read_action_request(body, requests.new_id())
        if row.phase is not ServerPhase.RUNNING:
            fail("The match has ended." if row.has_ended else "The server of the match is not running yet.")
        stored = await requests.store(row, wanted, created_by=COMMAND_LINE, actor=COMMAND_LINE, org_id=row.org_id)
        return await _wait_for(resources, server_id, stored.id) if wait else _view(row, stored)

    try:
        view = run_with_resources(request, needs_original=True)
    except InvalidParamsError as exc:
        fail(*(f"{str(fault.path) or 'the request'} {fault.message}" for fault in exc.faults), code=2)
    except ActionNotPossibleError as exc:
        fail(str(exc))
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(view), indent=2))
    else:
        typer.echo(f"{view.type} {view.state}" + (f": {view.detail}" if view.detail else "."))
    if view.state is ActionState.FAILED:
        raise typer.Exit(1)
    if wait and not view.state.is_final:
        asks = f" {NOT_SENT}" if view.state is ActionState.REQUESTED else ""
        print_note(
            f"The action is neither done nor failed yet.{asks} See: matchpod match actions {printable(server_id)}"
        )
        raise typer.Exit(1)


def list_actions(
    server_id: ServerId,
    json: AsJson = False,
) -> None:
    """List the actions on a match, newest first."""

    async def read(resources: Resources) -> list[ActionView]:
        row = await find_server(resources, server_id)
        return [_view(row, stored) for stored in await match_actions.of_server(resources.db, row.id)]

    print_listing(run_with_resources(read), _COLUMNS, as_json=json)


async def find_server(resources: Resources, server_id: str) -> ServerRow:
    """Return the server with this id. If there is none, exit with an error."""
    # The id is invalid if the argument is not UTF-8: it then has surrogates, which databases reject.
    row = await servers.get(resources.db, server_id) if read_server_id(server_id) else None
    if row is None:
        fail(f"There is no server {printable(server_id)}.", code=2)
    return row


async def _wait_for(resources: Resources, server_id: str, action_id: str) -> ActionView:
    """Wait until the action is done or has failed, at most MAX_WAIT_S; return it in its latest state."""
    shown: str | None = None
    loop = asyncio.get_running_loop()
    ask_s, until_s = loop.time() + UNSENT_S, loop.time() + MAX_WAIT_S
    while True:
        row, stored = (
            await find_server(resources, server_id),
            await match_actions.get(resources.db, server_id, action_id),
        )
        if stored is None:
            fail("The action was deleted with its match.")
        view = _view(row, stored)
        if view.state.is_final or loop.time() >= until_s:
            return view
        if view.state is ActionState.REQUESTED and loop.time() >= ask_s:
            print_note(NOT_SENT)
            ask_s = until_s
        now = view.detail or view.state.value
        if now != shown:
            print_note(f"{view.type} {view.state}" + (f": {view.detail}" if view.detail else ""))
            shown = now
        await asyncio.sleep(POLL_S)


def _view(row: ServerRow, stored: match_actions.ActionRow) -> ActionView:
    return action_view(stored, has_ended=row.has_ended, shows_actor=True)


def _given(fields: Sequence[str]) -> dict[str, str | int]:
    """Parse `name=value` arguments. Unknown names are rejected later, with the most similar name as a suggestion."""
    given: dict[str, str | int] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if not equals:
            known = ", ".join(known.name for known in FIELDS)
            fail(f"{printable(field)} is not of the form FIELD=VALUE. Fields: {known}.", code=2)
        given[name] = int(value) if name in _NUMBERS and value.isdecimal() else value
    return given
