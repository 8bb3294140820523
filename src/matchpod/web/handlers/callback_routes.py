"""The endpoints for callbacks; `routes` adds them to its list."""

from __future__ import annotations

from typing import Final

from matchpod.core.errors import CallbackWaitingError
from matchpod.core.requests.callback_query import read_callbacks_query
from matchpod.service.callbacks.deliveries import MAX_REDELIVERED
from matchpod.service.reading.callbacks import CallbackDetail, CallbackItem, CallbacksPage, Redelivery
from matchpod.web.endpoint import Call, Endpoint, Site, api_act, api_read
from matchpod.web.handlers import parameters, use_cases
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json

_SAME: Final = "With the same id, the same bytes and the same `Authorization` header; the signature is new."


async def _redeliver_given_up(site: Site, call: Call) -> Response:
    body = await call.read_body(site.services.limits.max_body_bytes)
    return private_json(await site.services.callbacks.redeliver_given_up(call.caller, body))


CALLBACKS: Final[tuple[Endpoint, ...]] = (
    api_read(
        path="/api/v1/callbacks",
        name="listCallbacks",
        summary="List callbacks",
        text="The callbacks of matches that have ended, newest first, with the state of their delivery.",
        parameters=parameters.CALLBACKS_LIST,
        returns=CallbacksPage,
        links=("getListedCallback",),
        handler=use_cases.view(lambda services: services.callbacks.list, read_callbacks_query),
    ),
    api_read(
        path="/api/v1/callbacks/{id}",
        name="getCallback",
        summary="Get a callback and its attempts",
        text="The sent request, and the responses of the receiver. Secrets in the URL and in headers are hidden.",
        parameters=(parameters.CALLBACK_ID,),
        returns=CallbackDetail,
        links=("redeliverCallback",),
        handler=use_cases.view(lambda services: services.callbacks.get),
    ),
    api_act(
        path="/api/v1/callbacks/{id}/redeliver",
        name="redeliverCallback",
        summary="Send a callback again",
        text=f"Makes one more attempt at once, whether the callback was delivered or given up. {_SAME}",
        parameters=(parameters.CALLBACK_ID,),
        returns=CallbackItem,
        links=("getCallback",),
        errors=(CallbackWaitingError,),
        handler=use_cases.view(lambda services: services.callbacks.redeliver),
    ),
    api_act(
        path="/api/v1/callbacks/redeliver",
        name="redeliverCallbacks",
        summary="Send given-up callbacks again",
        text="Makes one more attempt for each given-up callback that was created since a time, oldest first, at most "
        f"{MAX_REDELIVERED} per request. If there are more, `nextSince` is the `since` of the next request. {_SAME}",
        body="RedeliverCallbacks",
        returns=Redelivery,
        handler=_redeliver_given_up,
    ),
)
