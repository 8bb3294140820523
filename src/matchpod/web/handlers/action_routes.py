"""The endpoints for actions on matches; part of the list in `routes`."""

from __future__ import annotations

from functools import partial
from typing import Final

from matchpod.core import errors
from matchpod.service.actions.views import ActionView, MatchActionsView
from matchpod.service.identity.principals import MANAGERS, Scope
from matchpod.web.endpoint import Endpoint, Tag
from matchpod.web.errors import WITH_KEY, UnsupportedMediaTypeError
from matchpod.web.handlers import actions, parameters, use_cases

_PATH: Final = "/api/v1/servers/{id}/actions"
_reading: Final = partial(
    Endpoint, method="GET", tag=Tag.API, access=Scope.SERVERS_READ, errors=(*WITH_KEY, errors.NotFoundError)
)

ACTIONS: Final[tuple[Endpoint, ...]] = (
    Endpoint(
        method="POST",
        path=_PATH,
        name="requestAction",
        tag=Tag.API,
        summary="Act on a match",
        text="Pauses, restores, substitutes and more, on a match that is running. It is `done` when the server's log "
        "or its plugin says so, not when it was sent, and `failed` if that takes too long: 60 s, or for a pause 60 s "
        "after the end of the round. A state of the match that does not allow it is 409, with the reason and, if it "
        "is known, `retryAfter`. An `Idempotency-Key` counts for this server and endpoint.",
        access=Scope.SERVERS_WRITE,
        roles=MANAGERS,
        parameters=(parameters.SERVER_ID, parameters.IDEMPOTENCY_KEY),
        body="ActOnMatch",
        status=202,
        returns=ActionView,
        links=("getAction",),
        errors=(
            *WITH_KEY,
            errors.NotFoundError,
            errors.ActionNotPossibleError,
            errors.IdempotencyConflictError,
            errors.PayloadTooLargeError,
            UnsupportedMediaTypeError,
        ),
        handler=actions.request_action,
    ),
    _reading(
        path=_PATH,
        name="listActions",
        summary="List the actions on a match",
        text="What can be done now, with the reason where not; the rounds that can be restored; and what was asked "
        "for, newest first.",
        parameters=(parameters.SERVER_ID,),
        returns=MatchActionsView,
        handler=use_cases.view(lambda services: services.actions.list),
    ),
    _reading(
        path=f"{_PATH}/{{actionId}}",
        name="getAction",
        summary="Get an action on a match",
        parameters=(parameters.SERVER_ID, parameters.ACTION_ID),
        returns=ActionView,
        handler=use_cases.view(lambda services: services.actions.get),
    ),
)
