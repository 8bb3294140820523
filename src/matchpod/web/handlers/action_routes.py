"""The endpoints for actions on matches; `routes` adds them to its list."""

from __future__ import annotations

from typing import Final

from matchpod.core import errors
from matchpod.service.actions.views import ActionView, MatchActionsView
from matchpod.web.endpoint import Call, Endpoint, Site, api_act, api_read
from matchpod.web.handlers import parameters, use_cases
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json

_PATH: Final = "/api/v1/servers/{id}/actions"


async def _request_action(site: Site, call: Call) -> Response:
    key, body = await use_cases.keyed_body(site, call)
    accepted = await site.services.actions.request(call.caller, call.params[0], body, key)
    return private_json(accepted.action, 202, is_replayed=accepted.is_replayed)


ACTIONS: Final[tuple[Endpoint, ...]] = (
    api_act(
        path=_PATH,
        name="requestAction",
        summary="Act on a match",
        text="Pauses, restores, substitutes and more, on a match that is running. An action is `done` when the "
        "server's log or its plugin confirms it, not when it was sent. It is `failed` if that takes longer than 60 s, "
        "for a pause 60 s after the end of the round. If the state of the match does not allow the action, the status "
        "is 409, with the reason and, if it is known, `retryAfter`. An `Idempotency-Key` counts for this server and "
        "endpoint.",
        parameters=(parameters.SERVER_ID, parameters.IDEMPOTENCY_KEY),
        body="ActOnMatch",
        status=202,
        returns=ActionView,
        links=("getAction",),
        errors=(errors.ActionNotPossibleError,),
        handler=_request_action,
    ),
    api_read(
        path=_PATH,
        name="listActions",
        summary="List the actions on a match",
        text="All actions, each with the reason if it is not possible now. Also the rounds that can be restored, and "
        "the requested actions, newest first.",
        parameters=(parameters.SERVER_ID,),
        returns=MatchActionsView,
        handler=use_cases.view(lambda services: services.actions.list),
    ),
    api_read(
        path=f"{_PATH}/{{actionId}}",
        name="getAction",
        summary="Get an action on a match",
        parameters=(parameters.SERVER_ID, parameters.ACTION_ID),
        returns=ActionView,
        handler=use_cases.view(lambda services: services.actions.get),
    ),
)
