"""The types of the web layer: endpoints, their requests and their responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from enum import StrEnum
from functools import partial
from typing import Final, Protocol

import msgspec

from matchpod.core.errors import (
    IdempotencyConflictError,
    InvalidParamsError,
    MatchpodError,
    NotFoundError,
    PayloadTooLargeError,
)
from matchpod.service.access.rate_limit import FairPacer
from matchpod.service.fair_turns import TurnKey
from matchpod.service.identity.principals import MANAGERS, Principal, Role
from matchpod.service.identity.principals import Scope as AccessScope
from matchpod.service.telemetry.prometheus import RenderedMetrics
from matchpod.web.errors import WITH_KEY, UnsupportedMediaTypeError
from matchpod.web.http.asgi import Receive, Scope
from matchpod.web.http.responses import JSON, Header, PartedResponse, Response
from matchpod.web.request_bodies import read_body
from matchpod.web.request_turns import RequestTurn
from matchpod.web.services import Services

KEY_HEADER: Final = "Idempotency-Key"


class Tag(StrEnum):
    """The audience of an endpoint."""

    API = "api"
    INGEST = "ingest"
    OPERATIONS = "operations"
    CONSOLE = "console"


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What all requests of an application share: services, API description, documentation pages and metrics."""

    services: Services
    openapi: Callable[[], bytes]
    """Returns the API description for callers. The first call builds it."""
    internal_openapi: Callable[[], bytes]
    """Returns the description of the endpoints for game servers and for operators."""
    pages: dict[str, Response]
    metrics: RenderedMetrics
    metrics_pace: FairPacer


class Call(msgspec.Struct, kw_only=True):
    """A request; `principal` is set if the endpoint needs a key."""

    scope: Scope
    receive: Receive
    endpoint: Endpoint | None = None
    params: tuple[str, ...] = ()
    principal: Principal | None = None
    turn: RequestTurn | None = None
    """The turn of the request; None if the request does not have to wait for a turn."""
    _body: bytes | None = None

    async def take_turn(self, key: TurnKey) -> None:
        """Wait until the turn of the request begins, in the queue with this key."""
        if self.turn is not None:
            await self.turn.begin(key)

    async def read_body(self, limit: int) -> bytes:
        """Return the body and cache it; raise PayloadTooLargeError if it exceeds the limit."""
        if self._body is None:
            self._body = await read_body(self.scope, self.receive, limit)
        return self._body

    @property
    def method(self) -> str:
        method: str = self.scope["method"]
        return method

    @property
    def caller(self) -> Principal:
        """The principal of the request; RuntimeError if the endpoint needs no key."""
        if self.principal is None:
            raise RuntimeError("there is no principal, because this endpoint needs no key")
        return self.principal

    def header(self, name: bytes) -> str | None:
        """Return the first header with this (lower-case) name; None if there is none."""
        for found, value in self.scope["headers"]:
            if found == name:
                text: str = value.decode("latin-1")
                return text
        return None

    def list_header(self, name: bytes) -> str | None:
        """Return the values of all headers with this (lower-case) name, joined by commas; None if there are none."""
        values = [value for found, value in self.scope["headers"] if found == name]
        return b", ".join(values).decode("latin-1") if values else None

    def single_header(self, name: bytes) -> str | None:
        """Return the header with this name, or None. Raise InvalidParamsError if there are several different values."""
        values = {value for found, value in self.scope["headers"] if found == name}
        if len(values) > 1:
            shown = name.decode().title()
            raise InvalidParamsError(f"The request has {len(values)} different {shown} headers; send one.")
        return self.header(name)


class Frames(Protocol):
    """The source of the frames (events as bytes) that a stream sends."""

    @property
    def is_over(self) -> bool:
        """True if `next` has returned the last frames."""

    async def next(self, within_s: float) -> bytes | None:
        """Return the next frames; empty bytes if none arrived within `within_s`, None after the last frame."""

    def close(self) -> None:
        """End the frames. Calling it twice is fine."""

    def when_closed(self, act: Callable[[], None]) -> None:
        """Register `act`, to be called when the frames are closed."""


StillValid = Callable[[Sequence[str]], Awaitable[Set[str]]]
"""Returns which ids (of keys, sessions or tokens) are still valid; raises UnavailableError if that is unknown."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """The key, session or token with which a stream was opened."""

    id: str
    still_valid: StillValid


class EventStream(msgspec.Struct, frozen=True, kw_only=True):
    """A response that sends frames until they end, or until its credential is no longer valid."""

    call: Call
    frames: Frames
    credential: Credential
    headers: tuple[Header, ...] = ()


Answer = Response | PartedResponse | EventStream
Handler = Callable[[Site, Call], Awaitable[Answer]]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A path parameter, query parameter or header, as documented; `schema` is its JSON Schema."""

    name: str
    place: str
    text: str
    schema: dict[str, object]
    is_required: bool = True
    is_deprecated: bool = False
    """True if this is a deprecated alias of another parameter."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One method of one path: its permissions, parameters, response and errors."""

    method: str
    path: str
    name: str
    tag: Tag
    summary: str
    handler: Handler
    access: AccessScope | None = None
    """The scope that a key needs for this endpoint; None if no key is needed."""
    roles: tuple[Role, ...] = ()
    """The roles that may use this endpoint; empty if all roles may."""
    parameters: tuple[Parameter, ...] = ()
    reads_query: bool = False
    """True if the handler itself rejects unknown query parameters, because `parameters` does not list all that it
    reads."""
    body: str | None = None
    """The schema name of the JSON request body; None for requests without a JSON body."""
    raw_body: str | None = None
    """The media type of a request body that is stored unparsed; None for other requests."""
    status: int = 200
    returns: object = None
    """The type of the JSON response; None if the response is not JSON, or is stored JSON (see `stored`)."""
    stored: str | None = None
    """The schema name of a response that is stored JSON; None for other responses."""
    content_type: str = JSON
    events: str = "TimelineItem"
    """The schema name of the events of a stream."""
    is_queued: bool = True
    """False if requests do not wait for a turn."""
    is_read: bool = False
    """True for a POST that changes nothing, so that a read-only process answers it as well."""
    has_etag: bool = False
    """True if the response has an ETag, and may be 304, once the match, map or series has ended."""
    is_file: bool = False
    """True if the response is a file: clients may request a part of it, or be redirected to it."""
    any_origin: bool = False
    """True if pages of any origin may read the response, whatever the settings allow."""
    alias_of: str | None = None
    """If this path is an alias: the name of the endpoint that it stands for. The alias is documented as deprecated."""
    links: tuple[str, ...] = ()
    errors: tuple[type[MatchpodError], ...] = ()
    """The errors that do not follow from the other fields; `all_errors` has all of them."""
    text: str = ""

    @property
    def is_repeatable(self) -> bool:
        """True if a request may have an `Idempotency-Key`, so that callers can repeat it safely."""
        return any(parameter.name == KEY_HEADER for parameter in self.parameters)

    @property
    def all_errors(self) -> tuple[type[MatchpodError], ...]:
        """All errors of the endpoint. If it needs no key, these are just `errors`."""
        if self.access is None:
            return self.errors
        has_id = any(parameter.place == "path" for parameter in self.parameters)
        return (
            *WITH_KEY,
            *((NotFoundError,) if has_id else ()),
            *self.errors,
            *((IdempotencyConflictError,) if self.is_repeatable else ()),
            *((PayloadTooLargeError, UnsupportedMediaTypeError) if self.body else ()),
        )


api_read: Final = partial(Endpoint, method="GET", tag=Tag.API, access=AccessScope.SERVERS_READ)
"""An endpoint of the API that only reads."""
api_act: Final = partial(Endpoint, method="POST", tag=Tag.API, access=AccessScope.SERVERS_WRITE, roles=MANAGERS)
"""An endpoint of the API that changes something."""
