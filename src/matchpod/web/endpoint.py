"""What is an endpoint, what does it get and what does it give back? The three values that the web is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec
from starlette.types import Receive, Scope

from matchpod.core.errors import MatchpodError
from matchpod.service.principals import Principal, Role
from matchpod.service.principals import Scope as AccessScope
from matchpod.web.services import Services

JSON = "application/json"

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
    openapi: bytes
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


Handler = Callable[[Site, Call], Awaitable[Answer]]


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A path parameter or header as the documentation shows it; `schema` is JSON Schema."""

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
