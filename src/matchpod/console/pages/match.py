"""Show a match, live or with its result, and handle the forms on its page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from matchpod.console.feed import KINDS
from matchpod.console.match_actions import ACTION_NOTICES, ACTIONS, Revealed
from matchpod.console.match_order import AgainForm, again_body, again_form, order_of, read_again, with_error
from matchpod.console.match_result import MatchResult, map_result, result_of
from matchpod.console.match_view import MatchScreen, match_services, team_names
from matchpod.console.match_wording import REASONS
from matchpod.console.notices import notice_header
from matchpod.console.page_updates import Broadcast
from matchpod.console.pages.create import ALREADY_CREATED, new_once
from matchpod.console.rendering import HEADERS, NOT_STORED, redirect
from matchpod.console.requested_actions import OF_A_ROW, ActionForm, Rejection, prefilled, read_body
from matchpod.console.requested_actions import read_given as read_action
from matchpod.console.requested_actions import with_faults as with_action_faults
from matchpod.console.ruling_form import read_given, ruling_form, with_faults
from matchpod.console.visit import Visit, Who
from matchpod.core.errors import (
    ActionNotPossibleError,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidParamsError,
    MatchNotEndedError,
    MatchpodError,
    NotFoundError,
    ServerNotRunningError,
)
from matchpod.core.match.actions import ActionType
from matchpod.core.model import MatchType
from matchpod.core.requests.demo_query import read_demo_query
from matchpod.core.server_status import ServerStatus
from matchpod.service.acknowledgements import Acknowledged
from matchpod.service.reading.match_details import FailureDetail, MadeRuling, MatchDetail
from matchpod.service.reading.match_lists import MatchMap
from matchpod.web.handlers.demos import demo_response
from matchpod.web.handlers.matches import log_response
from matchpod.web.http.responses import PartedResponse, Response
from matchpod.web.query_strings import query_of

KIND: Final = "match"
"""First part of a match's name in streams; the second part is the id of its server."""

_Rejected = tuple[Mapping[str, str], InvalidParamsError]
"""The values that were entered in the form of a ruling, and the error with which the ruling was rejected."""
_NotAccepted = tuple[Mapping[str, str], Rejection]
"""The values that were entered in the form of an action, and why the action was not accepted."""
_NUMBER: Final = re.compile(r"[0-9]{1,3}")


async def act(visit: Visit) -> Response:
    """Execute the action whose button was clicked on the page."""
    server_id, name = visit.call.params
    action = next((known for known in ACTIONS if known.name == name), None)
    match = await visit.deps.details.get(visit.principal, server_id)
    if action is None:
        raise NotFoundError("There is no such action.")
    if fault := visit.fault(action.who):
        raise ForbiddenError(fault)
    if not action.is_allowed(match):
        raise ServerNotRunningError("The match has changed, so this is no longer possible. Load its page again.")
    revealed = await action.perform(visit, match)
    if isinstance(revealed, Revealed):
        await _refresh(visit, server_id)
        return await show(visit, revealed=revealed)
    undo_ms = revealed.at_ms if isinstance(revealed, Acknowledged) else 0
    return await _done(visit, server_id, action.notice, number=undo_ms)


async def rule(visit: Visit) -> Response:
    """Rule on an ended match. If the ruling is rejected, show the page again, with the faults in the form."""
    server_id, given = visit.call.params[0], read_given(await visit.form())
    body = msgspec.json.encode({name: text for name, text in given.items() if text})
    try:
        await visit.deps.services.rulings.rule(visit.principal, server_id, body, None)
    except InvalidParamsError as exc:
        return await show(visit, rejected=(given, exc))
    return await _done(visit, server_id, "ruled")


async def request_action(visit: Visit) -> Response:
    """Request an action on a running match. If it is not accepted, show the page again, with the error in the form."""
    form = await visit.form()
    server_id, given = visit.call.params[0], read_action(form)
    body = msgspec.json.encode(read_body(given))
    try:
        await visit.deps.services.actions.request(visit.principal, server_id, body, None)
    except (InvalidParamsError, ActionNotPossibleError) as exc:
        if given["type"] not in tuple(ActionType):
            raise
        return await show(visit, not_accepted=(given, exc))
    return await _done(visit, server_id, "action-requested", place="chat-title" if form.get("place") == "chat" else "")


async def create_again(visit: Visit) -> Response:
    """Create the same match again. If that is rejected, show the page again, with the error in the form."""
    given, match = await visit.form(), await visit.deps.details.get(visit.principal, visit.call.params[0])
    if not match.has_ended:
        raise MatchNotEndedError("The match has not ended.")
    secrets, form = read_again(again_form(match, given.get("once") or new_once()), given)
    if form.faults:
        return await show(visit, anew=form, status=InvalidParamsError.status)
    body = msgspec.json.encode(again_body(match, secrets))
    try:
        created = await visit.deps.services.matches.create(visit.principal, body, form.once)
    except IdempotencyConflictError as exc:
        again = msgspec.structs.replace(form, once=new_once(), general=(ALREADY_CREATED,))
        return await show(visit, anew=again, status=exc.status)
    except MatchpodError as exc:
        return await show(visit, anew=with_error(form, exc), status=exc.status)
    return visit.done(f"/console/matches/{created.server.server_id}", "created")


async def result(visit: Visit) -> Response:
    """Return the result of a match as JSON, with the same content as in the callback."""
    found = await visit.deps.services.records.result(visit.principal, visit.call.params[0])
    return Response(found, headers=(*HEADERS, NOT_STORED))


async def demo(visit: Visit) -> Response | PartedResponse:
    """Return a demo file of a map, or a redirect to the URL of its download."""
    number = read_demo_query(query_of(visit.call))
    services = visit.deps.services
    file = await services.demos.download(visit.principal, visit.call.params[0], number)
    return demo_response(services, visit.call, file, headers=(*HEADERS, NOT_STORED))


async def log(visit: Visit) -> PartedResponse:
    services, server_id = visit.deps.services, visit.call.params[0]
    return await log_response(services, visit.principal, server_id, headers=(*HEADERS, NOT_STORED))


async def _refresh(visit: Visit, server_id: str) -> None:
    with suppress(MatchpodError):  # the change is stored, and the page shows it within a second anyway
        await (await broadcast_of(visit, server_id)).refresh()


async def _done(visit: Visit, server_id: str, notice: str, *, place: str = "", number: int = 0) -> Response:
    """Redirect to the match's page; with `place`, to the element with this id on the page."""
    await _refresh(visit, server_id)
    path = f"/console/matches/{server_id}"
    if not place:
        return visit.done(path, notice, number=number)
    return redirect(f"{path}#{place}", notice_header(visit.deps.origins, path, notice))


async def show(
    visit: Visit,
    *,
    revealed: Revealed | None = None,
    rejected: _Rejected | None = None,
    not_accepted: _NotAccepted | None = None,
    anew: AgainForm | None = None,
    status: int = 200,
) -> Response:
    broadcast, view = await _viewed(visit)
    match, query = view.match, visit.query()
    form = ruling_form(match, visit.deps.now_ms()) if visit.may(Who.MANAGER) else None
    form = form if form is None or rejected is None else with_faults(form, *rejected)
    error = (rejected or not_accepted or (None, None))[1]
    chosen = _chosen_map(match, query)
    map_number = view.map_number if chosen is None else chosen.map_number
    return visit.page(
        "match.html",
        status=status if error is None else error.status,
        notices=ACTION_NOTICES,
        m=match,
        view=view,
        position="" if match.has_ended else broadcast.position,
        round=_number(query.get("round", "")),
        map_number=map_number,
        is_chosen=chosen is not None,
        kinds=KINDS,
        revealed=revealed,
        result=await _result(visit, view, chosen),
        order=order_of(match),
        anew=(anew or again_form(match, new_once())) if match.has_ended and visit.may(Who.MANAGER) else None,
        form=form,
        again=_prefilled(view, query) if not_accepted is None else _again(view, *not_accepted),
        names=team_names(match),
        reasons=REASONS,
        is_scored=match.settings.match_type is not MatchType.DEATHMATCH,
        created_by=await visit.deps.details.created_by(visit.principal, match.server_id),
        rulings=await _rulings(visit, match),
        failure=await _failure(visit, match),
    )


def _chosen_map(match: MatchDetail, query: Mapping[str, str]) -> MatchMap | None:
    number = _number(query.get("map", ""))
    return next((one for one in match.maps if one.map_number == number and one.started_at_ms is not None), None)


async def _rulings(visit: Visit, match: MatchDetail) -> Sequence[MadeRuling]:
    """Return the rulings on an ended match; none if the user may not act on matches."""
    if not (match.has_ended and visit.may(Who.REFEREE)):
        return ()
    return await visit.deps.details.rulings(visit.principal, match.server_id)


async def _failure(visit: Visit, match: MatchDetail) -> FailureDetail | None:
    """Return the error of a failed server; None if the server did not fail, or the user may not read its log."""
    if match.status is not ServerStatus.FAILED or not visit.may(Who.MANAGER):
        return None
    return await visit.deps.details.failure(visit.principal, match.server_id)


def _number(text: str) -> int:
    """Return the number that a query parameter contains; 0 if it is not a number."""
    return int(text) if _NUMBER.fullmatch(text) else 0


async def _result(visit: Visit, view: MatchScreen, chosen: MatchMap | None) -> MatchResult | None:
    """Return the result of an ended match, or of an earlier map that the user chose in a live match; else None."""
    match = view.match
    if match.has_ended:
        return await result_of(visit, match, view.map_number if chosen is None else chosen.map_number)
    if chosen is None or chosen.map_number == view.map_number:
        return None
    return MatchResult(shown=await map_result(visit, match, chosen))


def _prefilled(view: MatchScreen, query: Mapping[str, str]) -> ActionForm | None:
    """Return the form that a link in the table of players opens. With scripts, it opens without loading a page."""
    found = next((form for form in view.action_forms() if form.type == query.get("act") in OF_A_ROW), None)
    return None if found is None else prefilled(found, query.get("player", ""), query.get("as", ""))


def _again(view: MatchScreen, given: Mapping[str, str], error: Rejection) -> ActionForm:
    """Return the form of an action that was not accepted, with the values that were submitted."""
    form = next(form for form in view.action_forms() if form.type == given["type"])
    return with_action_faults(form, given, error)


async def _viewed(visit: Visit) -> tuple[Broadcast, MatchScreen]:
    broadcast = await broadcast_of(visit, visit.call.params[0])
    view = broadcast.subject
    if not isinstance(view, MatchScreen):
        raise TypeError(f"{type(view).__name__} is not a MatchScreen")
    return broadcast, view


async def broadcast_of(visit: Visit, server_id: str) -> Broadcast:
    """Return the broadcast of a match; ForbiddenError or NotFoundError if the user may not see the match."""
    deps, principal = visit.deps, visit.principal
    services = match_services(deps)
    # Users with the same rights in the same organization share one broadcast.
    owner = f"{principal.org_id} {principal.audience}"
    return await deps.broadcasts.find(
        f"{KIND}/{server_id}", owner, partial(MatchScreen, services, principal, server_id)
    )
