"""How do game servers reach us? Log posts, plugin reports and detections are stored; the match file is handed out.

A game server knows two statuses: 200 is taken, 410 is never send again. Everything else it repeats.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from matchpod.core.errors import InvalidParamsError, MatchpodError, UnauthorizedError
from matchpod.service.ingest import BAD_REQUEST, GONE, MAX_BODY_BYTES, STORED, TOKEN_HEADER, UNKNOWN
from matchpod.web.bodies import read_body
from matchpod.web.endpoint import Answer, Call, Site
from matchpod.web.errors import GoneError, ServerFault
from matchpod.web.matches import NO_STORE, OK_BODY

_TOKEN_HEADER = TOKEN_HEADER.lower().encode()
_TAKEN = Answer(OK_BODY)


async def take_log(site: Site, call: Call) -> Answer:
    """Store a piece of a server's log."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.scope["headers"]}
    return _answer(await site.services.ingest.take_log(call.params[0], headers, _body(call)))


async def take_report(site: Site, call: Call) -> Answer:
    """Store a report of the match plugin."""
    return _answer(await site.services.ingest.take_report(call.header(_TOKEN_HEADER), _body(call)))


async def take_detection(site: Site, call: Call) -> Answer:
    """Store a detection of an anti-cheat plugin."""
    return _answer(await site.services.ingest.take_detection(call.params[0], _body(call)))


async def match_file(site: Site, call: Call) -> Answer:
    """Hand out the match file that the match plugin loads."""
    found = await site.services.ingest.match_file(call.header(_TOKEN_HEADER))
    if found is None:
        raise UnauthorizedError(f"The header {TOKEN_HEADER} names no match that is being played.")
    return Answer(found, headers=NO_STORE)


def _body(call: Call) -> Callable[[], Awaitable[bytes]]:
    return partial(read_body, call.scope, call.receive, MAX_BODY_BYTES)


def _answer(status: int) -> Answer:
    if status == STORED:
        return _TAKEN
    raise _error(status)


def _error(status: int) -> MatchpodError:
    if status == GONE:
        return GoneError("Nothing more is wanted here: the match is over, or there never was one.")
    if status == UNKNOWN:
        return UnauthorizedError("The token is missing, or names no match.")
    if status == BAD_REQUEST:
        return InvalidParamsError("This is not what a game server sends.")
    return ServerFault(f"unexpected outcome {status}")
