"""Handlers for game servers: store log posts, plugin reports and detections, and return the match file.

For a game server, 200 means that the post is stored, and 410 that it must stop sending. After any other status it
retries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, assert_never

from matchpod.core.errors import InvalidParamsError, UnauthorizedError
from matchpod.service.ingest.posts import MAX_BODY_BYTES, MAX_REPORT_BYTES, TOKEN_HEADER, Receipt
from matchpod.web.auth import LOOPBACK, client_address
from matchpod.web.endpoint import Call, Site
from matchpod.web.errors import GoneError
from matchpod.web.handlers.use_cases import OK_BODY
from matchpod.web.http.responses import Response
from matchpod.web.json_responses import NO_STORE
from matchpod.web.request_bodies import read_body

_TOKEN_HEADER = TOKEN_HEADER.lower().encode()
_STORED = Response(OK_BODY)
_NO_MATCH: Final = "This match has ended or does not exist."


async def post_log(site: Site, call: Call) -> Response:
    source = client_address(call) or "an unknown address"
    receipt = await site.services.ingest.store_log(
        call.params[0], call.scope["headers"], _body(call), source="this machine" if source == LOOPBACK else source
    )
    if receipt is Receipt.UNKNOWN_SENDER:  # 410 is the only status after which a game server stops sending
        raise GoneError(_NO_MATCH)
    return _response(receipt)


async def post_report(site: Site, call: Call) -> Response:
    return _response(await site.services.ingest.store_report(call.header(_TOKEN_HEADER), _report(call)))


async def post_detection(site: Site, call: Call) -> Response:
    return _response(await site.services.ingest.store_detection(call.params[0], _report(call)))


async def post_shots(site: Site, call: Call) -> Response:
    return _response(await site.services.ingest.store_shots(call.params[0], _report(call)))


async def get_match_file(site: Site, call: Call) -> Response:
    found = await site.services.ingest.match_file(call.header(_TOKEN_HEADER))
    if found is None:
        raise UnauthorizedError(f"The token in the header {TOKEN_HEADER} belongs to no open match.")
    return Response(found, headers=NO_STORE)


def _body(call: Call) -> Callable[[], Awaitable[bytes]]:
    return partial(read_body, call.scope, call.receive, MAX_BODY_BYTES)


def _report(call: Call) -> Callable[[], Awaitable[bytes]]:
    return partial(read_body, call.scope, call.receive, MAX_REPORT_BYTES)


def _response(receipt: Receipt) -> Response:
    match receipt:
        case Receipt.STORED:
            return _STORED
        case Receipt.MATCH_ENDED:
            raise GoneError(_NO_MATCH)
        case Receipt.UNKNOWN_SENDER:
            raise UnauthorizedError("The token is missing or belongs to no match.")
        case Receipt.EMPTY:
            raise InvalidParamsError("The request body is empty.")
        case _:
            assert_never(receipt)
