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
    """The objects that all requests share: the services, the API description and the documentation pages."""

    services: Services
    openapi: Callable[[], bytes]
    """Returns the description of the API for callers, which is built at the first call."""
    internal_openapi: Callable[[], bytes]
    """Returns the description of the endpoints for game servers and operators."""
    pages: dict[str, Response]
    metrics: RenderedMetrics
    metrics_pace: FairPacer


class Call(msgspec.Struct, kw_only=True):
    """One request; `principal` is set if the endpoint needs a key."""

    scope: Scope
    receive: Receive
    endpoint: Endpoint | None = None
    params: tuple[str, ...] = ()
    principal: Principal | None = None
    turn: RequestTurn | None = None
    """The turn of the request; None if the request does not wait for a turn."""
    _body: bytes | None = None

    async def take_turn(self, key: TurnKey) -> None:
        """Wait for the turn of the request, in the queue of this key."""
        if self.turn is not None:
            await self.turn.begin(key)

    async def read_body(self, limit: int) -> bytes:
        """Return the body, which is cached; PayloadTooLargeError if it exceeds the limit."""
        if self._body is None:
            self._body = await read_body(self.scope, self.receive, limit)
        return self._body

    @property
    def method(self) -> str:
        method: str = self.scope["method"]
        return method

    @property
    def caller(self) -> Principal:
        """The principal; RuntimeError if the endpoint needs no key."""
        if self.principal is None:
            raise RuntimeError("there is no principal, because this endpoint needs no key")
        return self.principal

    def header(self, name: bytes) -> str | None:
        """Return the first header with this name (in lower case), or None."""
        for found, value in self.scope["headers"]:
            if found == name:
                text: str = value.decode("latin-1")
                return text
        return None

    def list_header(self, name: bytes) -> str | None:
        """Return the values of all headers with this name (in lower case), joined by commas; None without any."""
        values = [value for found, value in self.scope["headers"] if found == name]
        return b", ".join(values).decode("latin-1") if values else None

    def single_header(self, name: bytes) -> str | None:
        """Return the header with this name, or None; InvalidParamsError if it is repeated with different values."""
        values = {value for found, value in self.scope["headers"] if found == name}
        if len(values) > 1:
            shown = name.decode().title()
            raise InvalidParamsError(f"The request has {len(values)} different {shown} headers; send one.")
        return self.header(name)


class Frames(Protocol):
    """The source of the frames that a stream sends."""

    @property
    def is_over(self) -> bool:
        """True if all frames were returned, and none will follow."""

    async def next(self, within_s: float) -> bytes | None:
        """Return the next frames; empty if none arrived within `within_s`, None at the end."""

    def close(self) -> None:
        """End the frames; closing twice has no effect."""

    def when_closed(self, act: Callable[[], None]) -> None:
        """Call `act` when the frames are closed."""


StillValid = Callable[[Sequence[str]], Awaitable[Set[str]]]
"""Returns which of these ids of keys, sessions or tokens are still valid; UnavailableError if that is unknown."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """The key, session or token that a stream was opened with."""

    id: str
    still_valid: StillValid


class EventStream(msgspec.Struct, frozen=True, kw_only=True):
    """A response that continues until its frames end or its credential is no longer valid."""

    call: Call
    frames: Frames
    credential: Credential
    headers: tuple[Header, ...] = ()


Answer = Response | PartedResponse | EventStream
Handler = Callable[[Site, Call], Awaitable[Answer]]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A path or query parameter or a header, as documented; `schema` is JSON Schema."""

    name: str
    place: str
    text: str
    schema: dict[str, object]
    is_required: bool = True
    is_deprecated: bool = False
    """True for a second name of another parameter."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One method of one path: its permissions, parameters, response and errors."""

    method: str
    path: str
    name: str
    tag: Tag
    summary: str
    handler: Handler
    access: AccessScope | None = None
    """The scope that the key needs; None if no key is needed."""
    roles: tuple[Role, ...] = ()
    """The roles of which the key needs one; empty if any role is allowed."""
    parameters: tuple[Parameter, ...] = ()
    reads_query: bool = False
    """True if the handler checks the names of query parameters itself, because `parameters` does not list them."""
    body: str | None = None
    """The schema name of a JSON request body."""
    raw_body: str | None = None
    """The media type of a request body that is stored without being parsed."""
    status: int = 200
    returns: object = None
    """The type that is encoded as JSON; None if the response is not JSON, or is stored JSON."""
    stored: str | None = None
    """The schema name of a response that is stored JSON."""
    content_type: str = JSON
    events: str = "TimelineItem"
    """The schema name of a stream's events."""
    is_queued: bool = True
    """False if requests are answered at once, without waiting for a turn."""
    is_read: bool = False
    """True for a POST that only reads, so that a read-only process answers it too."""
    has_etag: bool = False
    """True if the response, once its match, map or series has ended, has an ETag and may be 304."""
    is_file: bool = False
    """True if the response is a file, of which clients may request a part, or to which they may be redirected."""
    any_origin: bool = False
    """True if pages of every origin may read the response, regardless of the settings."""
    alias_of: str | None = None
    """The name of the endpoint that this path is an alias of; documented as deprecated."""
    links: tuple[str, ...] = ()
    errors: tuple[type[MatchpodError], ...] = ()
    """Errors that do not follow from the other fields; `all_errors` is the full list."""
    text: str = ""

    @property
    def is_repeatable(self) -> bool:
        """True if a request may have an `Idempotency-Key`."""
        return any(parameter.name == KEY_HEADER for parameter in self.parameters)

    @property
    def all_errors(self) -> tuple[type[MatchpodError], ...]:
        """All errors of the endpoint. Without a key, `errors` already lists all of them."""
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
