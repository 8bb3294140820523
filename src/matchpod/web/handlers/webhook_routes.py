"""The endpoints for webhooks; `routes` adds them to its list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from matchpod.core.errors import CallbackWaitingError
from matchpod.core.requests.webhook_request import read_deliveries_query
from matchpod.service.callbacks.deliveries import MAX_REDELIVERED
from matchpod.service.reading.callbacks import Redelivery
from matchpod.service.webhooks import views
from matchpod.service.webhooks.management import Webhooks
from matchpod.web.endpoint import Call, Endpoint, Handler, Site, api_act, api_read
from matchpod.web.handlers import parameters, use_cases
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import private_json

_PATH: Final = "/api/v1/webhooks"
_ONE: Final = f"{_PATH}/{{webhookId}}"
_DELIVERIES: Final = f"{_ONE}/deliveries"
_SAME: Final = "With the same id and the same bytes; the signature is new."


def _with_body(use_case: Callable[[Webhooks], Callable[..., Awaitable[Any]]], *, status: int = 200) -> Handler:
    """Return a handler that calls a use case with the caller, the path parameters and the request body."""

    async def handle(site: Site, call: Call) -> Response:
        body = await call.read_body(site.services.limits.max_body_bytes)
        return private_json(await use_case(site.services.webhooks)(call.caller, *call.params, body), status)

    return handle


async def _test(site: Site, call: Call) -> Response:
    return private_json(await site.services.webhooks.test(call.caller, *call.params), 202)


WEBHOOKS: Final[tuple[Endpoint, ...]] = (
    api_act(
        path=_PATH,
        name="createWebhook",
        summary="Create a webhook",
        text="The webhook sends the events that happen from now on. The response has its secret, which is not shown "
        "again.",
        body="CreateWebhook",
        status=201,
        returns=views.CreatedWebhook,
        links=("getWebhook", "changeWebhook", "testWebhook", "listDeliveries"),
        handler=_with_body(lambda webhooks: webhooks.create, status=201),
    ),
    api_read(
        path=_PATH,
        name="listWebhooks",
        summary="List the webhooks",
        text="All webhooks of the organization. A webhook whose deliveries have all failed for three days is switched "
        "off, with the `disabledReason` `failing`.",
        returns=views.WebhookList,
        links=("getListedWebhook",),
        handler=use_cases.view(lambda services: services.webhooks.list),
    ),
    api_read(
        path=_ONE,
        name="getWebhook",
        summary="Get a webhook",
        parameters=(parameters.WEBHOOK_ID,),
        returns=views.WebhookView,
        links=("changeWebhook", "deleteWebhook", "listDeliveries"),
        handler=use_cases.view(lambda services: services.webhooks.get),
    ),
    api_act(
        method="PATCH",
        path=_ONE,
        name="changeWebhook",
        summary="Change a webhook",
        text="Fields that are left out stay as they are. Waiting deliveries are sent to the new URL.",
        parameters=(parameters.WEBHOOK_ID,),
        body="ChangeWebhook",
        returns=views.WebhookView,
        links=("getWebhook",),
        handler=_with_body(lambda webhooks: webhooks.change),
    ),
    api_act(
        method="DELETE",
        path=_ONE,
        name="deleteWebhook",
        summary="Delete a webhook",
        text="Its deliveries are deleted too; waiting ones are not sent.",
        parameters=(parameters.WEBHOOK_ID,),
        returns=use_cases.Accepted,
        handler=use_cases.act(lambda services: services.webhooks.delete),
    ),
    api_act(
        path=f"{_ONE}/rotate-secret",
        name="rotateWebhookSecret",
        summary="Replace the secret of a webhook",
        text="The new secret is used from the next attempt on. For a day, requests also have a signature with the old "
        "secret. The response has the new secret, which is not shown again.",
        parameters=(parameters.WEBHOOK_ID,),
        returns=views.CreatedWebhook,
        links=("getWebhook",),
        handler=use_cases.view(lambda services: services.webhooks.rotate_secret),
    ),
    api_act(
        path=f"{_ONE}/test",
        name="testWebhook",
        summary="Send a test",
        text="Sends an event of the type `webhook.test` at once, even if the webhook is switched off. Get the delivery "
        "to see what its receiver answered.",
        parameters=(parameters.WEBHOOK_ID,),
        status=202,
        returns=views.DeliveryItem,
        links=("getDelivery",),
        handler=_test,
    ),
    api_read(
        path=_DELIVERIES,
        name="listDeliveries",
        summary="List the deliveries of a webhook",
        text="Newest first, with the state of each delivery. Deliveries are kept for a week.",
        parameters=parameters.DELIVERIES_LIST,
        returns=views.DeliveriesPage,
        links=("getListedDelivery",),
        handler=use_cases.view(lambda services: services.webhooks.deliveries, read_deliveries_query),
    ),
    api_read(
        path=f"{_DELIVERIES}/{{id}}",
        name="getDelivery",
        summary="Get a delivery and its attempts",
        text="The sent request, and the responses of the receiver. Secrets in headers are hidden.",
        parameters=(parameters.WEBHOOK_ID, parameters.DELIVERY_ID),
        returns=views.DeliveryDetail,
        links=("redeliverDelivery",),
        handler=use_cases.view(lambda services: services.webhooks.delivery),
    ),
    api_act(
        path=f"{_DELIVERIES}/{{id}}/redeliver",
        name="redeliverDelivery",
        summary="Send a delivery again",
        text=f"Makes one more attempt at once, whether the delivery was successful or given up. {_SAME}",
        parameters=(parameters.WEBHOOK_ID, parameters.DELIVERY_ID),
        returns=views.DeliveryItem,
        links=("getDelivery",),
        errors=(CallbackWaitingError,),
        handler=use_cases.view(lambda services: services.webhooks.redeliver),
    ),
    api_act(
        path=f"{_ONE}/redeliver",
        name="redeliverDeliveries",
        summary="Send given-up deliveries of a webhook again",
        text="Makes one more attempt for each given-up delivery that was created since a time, oldest first, at most "
        f"{MAX_REDELIVERED} per request. If there are more, `nextSince` is the `since` of the next request. {_SAME}",
        parameters=(parameters.WEBHOOK_ID,),
        body="RedeliverCallbacks",
        returns=Redelivery,
        handler=_with_body(lambda webhooks: webhooks.redeliver_given_up),
    ),
)
