"""Which endpoint is meant? Paths are cut at their slashes before they are decoded, so a parameter may contain one.

The look-up is a walk down a tree of segments: it costs the same however many endpoints there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from matchpod.core.errors import MethodNotAllowedError, NotFoundError
from matchpod.web.endpoint import Endpoint

MAX_PATH_BYTES = 4096
"""An external id of 255 characters, four bytes each and percent-encoded, with room for the rest of the path."""


class _Node:
    """One place in the tree: where a segment leads, and what is there."""

    __slots__ = ("fixed", "methods", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[bytes, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, Endpoint] = {}


class Lookup:
    """All endpoints, by path and method."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._root = _Node()
        for endpoint in endpoints:
            node = self._place(endpoint.path)
            if endpoint.method in node.methods:
                raise ValueError(f"{endpoint.method} {endpoint.path} is there twice")
            node.methods[endpoint.method] = endpoint

    def find(self, scope: Scope) -> tuple[Endpoint, tuple[str, ...]]:
        """The endpoint and its path parameters; NotFoundError or MethodNotAllowedError where there is none."""
        node, values = self._walk(scope.get("raw_path") or scope["path"].encode())
        method = scope["method"]
        # What can be got can be asked about; the body is left out when the answer is sent.
        endpoint = node.methods.get("GET" if method == "HEAD" else method)
        if endpoint is None:
            allowed = tuple(sorted({*node.methods, *(("HEAD",) if "GET" in node.methods else ())}))
            raise MethodNotAllowedError(f"This path answers {' and '.join(allowed)} only.", allowed)
        try:
            return endpoint, tuple([value.decode() for value in values])
        except UnicodeDecodeError as exc:
            raise _not_found() from exc

    def _walk(self, raw_path: bytes) -> tuple[_Node, list[bytes]]:
        if len(raw_path) > MAX_PATH_BYTES:
            raise _not_found()
        is_encoded = b"%" in raw_path
        node = self._root
        values: list[bytes] = []
        for segment in raw_path.split(b"/")[1:]:
            if is_encoded:
                segment = unquote_to_bytes(segment)
            following = node.fixed.get(segment)
            if following is None:
                following = node.parameter
                if following is None or not segment:
                    raise _not_found()
                values.append(segment)
            node = following
        if not node.methods:
            raise _not_found()
        return node, values

    def _place(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.fixed.setdefault(segment.encode(), _Node())
        return node


def _not_found() -> NotFoundError:
    return NotFoundError("There is nothing at this path; /docs lists what there is.")
