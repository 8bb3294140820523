"""Find the endpoint of a request.

Paths are split at slashes before they are decoded, so a parameter may contain an encoded slash. The router follows the
segments of the path through a tree, so its cost does not depend on the number of endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote_to_bytes

from matchpod.core.errors import MethodNotAllowedError, NotFoundError
from matchpod.web.endpoint import Endpoint
from matchpod.web.http.asgi import Scope

OPTIONS = "OPTIONS"
"""The HTTP method with which clients ask which methods a path supports."""

MAX_PATH_BYTES = 4096
"""Maximum number of bytes of a path; enough for an external id of 255 characters of four bytes each, percent-encoded.
"""


class _Node:
    """A node of the tree: its child nodes by next segment, and the endpoints at this path by method."""

    __slots__ = ("fixed", "methods", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[bytes, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, Endpoint] = {}


class Router:
    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._root = _Node()
        self._methods = {endpoint.method for endpoint in endpoints}
        for endpoint in endpoints:
            node = self._add_path(endpoint.path)
            if endpoint.method in node.methods:
                raise ValueError(f"{endpoint.method} {endpoint.path} is defined twice")
            node.methods[endpoint.method] = endpoint

    def find(self, scope: Scope) -> tuple[Endpoint, tuple[str, ...]]:
        """Return an endpoint and its path parameters; raise NotFoundError or MethodNotAllowedError if there is none."""
        node, values = self._walk(scope.get("raw_path") or scope["path"].encode())
        method = scope["method"]
        # HEAD is handled as GET; only the body is not sent.
        endpoint = node.methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = _allowed(node.methods)
            useful = " and ".join(name for name in allowed if name != OPTIONS)
            raise MethodNotAllowedError(f"This path only supports {useful}.", allowed)
        try:
            return endpoint, tuple([value.decode() for value in values])
        except UnicodeDecodeError as exc:
            raise _not_found() from exc

    def options(self, scope: Scope) -> tuple[Endpoint | None, tuple[str, ...]]:
        """Return an endpoint at the path, and the methods that the path supports; NotFoundError for an unknown path.

        The path `*` stands for the whole service: it supports all methods, and has no endpoint.
        """
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        if raw_path == b"*":
            return None, _allowed(self._methods)
        methods = self._walk(raw_path)[0].methods
        return next(iter(methods.values())), _allowed(methods)

    def _walk(self, raw_path: bytes) -> tuple[_Node, list[bytes]]:
        if len(raw_path) > MAX_PATH_BYTES:
            raise _not_found()
        is_encoded = b"%" in raw_path
        node = self._root
        values: list[bytes] = []
        for segment in raw_path.split(b"/")[1:]:
            if is_encoded:
                segment = unquote_to_bytes(segment)
            child = node.fixed.get(segment)
            if child is None:
                child = node.parameter
                if child is None or not segment:
                    raise _not_found()
                values.append(segment)
            node = child
        if not node.methods:
            raise _not_found()
        return node, values

    def _add_path(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.fixed.setdefault(segment.encode(), _Node())
        return node


def _allowed(methods: Iterable[str]) -> tuple[str, ...]:
    known = {*methods, OPTIONS}
    return tuple(sorted({*known, "HEAD"} if "GET" in known else known))


def _not_found() -> NotFoundError:
    return NotFoundError("There is no endpoint at this path. See /docs for all endpoints.")
