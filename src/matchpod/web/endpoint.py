"""What is an endpoint, what does it get and what does it give back? The values that the web is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol

import msgspec
from starlette.types import Receive, Scope

from matchpod.core.errors import MatchpodError
from matchpod.service.principals import Principal, Role
from matchpod.service.principals import Scope as AccessScope
from matchpod.web.services import Services

JSON = "application/json"
EVENT_STREAM = "text/event-stream"

LINE: Final = "matchpod.line"
"""The extension of a request's scope under which the connection hands itself to a stream."""

Header = tuple[bytes, bytes]


class Tag(StrEnum):
    """Who an endpoint is for."""

    API = "api"
    INGEST = "ingest"
    OPERATIONS = "operations"


class Answer(msgspec.Struct, frozen=True):
    """A whole response; length and request id are added when it is sent."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON.encode()
    headers: tuple[Header, ...] = ()


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What all requests share: the use cases, and the pages that were made once."""

    services: Services
    openapi: Callable[[], bytes]
    """Describes the API; the description is built when it is first asked for."""
    pages: dict[str, Answer]


class Call(msgspec.Struct, kw_only=True):
    """One request. `principal` is there when the endpoint asks for a key."""

    scope: Scope
    receive: Receive
    params: tuple[str, ...]
    principal: Principal | None = None

    @property
    def caller(self) -> Principal:
        """Who asks; only for endpoints with a key."""
        if self.principal is None:
            raise RuntimeError("this endpoint asks for no key")
        return self.principal

    def header(self, name: bytes) -> str | None:
        """The first header of this name, given in lower case."""
        for found, value in self.scope["headers"]:
            if found == name:
                text: str = value.decode("latin-1")
                return text
        return None


class Line(Protocol):
    """The connection under a stream."""

    @property
    def has_room(self) -> bool:
        """True when sending does not have to wait for the caller."""

    def begin_stream(self) -> None:
        """Answer with a body without end from here on; the caller can only hang up."""

    def end_stream(self) -> None:
        """The body is at its end."""

    def cut(self) -> None:
        """Drop the connection with whatever was not sent."""


class Frames(Protocol):
    """Where a stream gets what it sends."""

    @property
    def is_over(self) -> bool:
        """True when everything was given and nothing more will come."""

    async def next(self, within_s: float) -> bytes | None:
        """What comes next; empty when nothing came within the time, None at the end."""

    def close(self) -> None:
        """End it, from wherever; closing twice changes nothing."""

    def when_closed(self, act: Callable[[], None]) -> None:
        """Do this when somebody closes it."""


class EventStream(msgspec.Struct, frozen=True, kw_only=True):
    """A response that goes on as long as something happens."""

    call: Call
    frames: Frames
    is_welcome: Callable[[], Awaitable[bool]]
    """Asked now and then: may the caller still read this?"""


Handler = Callable[[Site, Call], Awaitable[Answer | EventStream]]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A path or query parameter or header as the documentation shows it; `schema` is JSON Schema."""

    name: str
    place: str
    text: str
    schema: dict[str, object]
    is_required: bool = True


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path: who may use it, what it takes and gives, how it can fail."""

    method: str
    path: str
    name: str
    tag: Tag
    summary: str
    handler: Handler
    access: AccessScope | None = None
    """The scope that a key needs; None where no key is asked for."""
    roles: tuple[Role, ...] = ()
    """The roles that a key needs one of; none where any will do."""
    parameters: tuple[Parameter, ...] = ()
    body: str | None = None
    """The schema of a JSON body."""
    raw_body: str | None = None
    """The media type of a body that is stored as it is."""
    status: int = 200
    returns: object = None
    """The type that is encoded as JSON; None where it is something else."""
    content_type: str = JSON
    links: tuple[str, ...] = ()
    errors: tuple[type[MatchpodError], ...] = ()
    text: str = ""
