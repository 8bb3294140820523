"""Split a query string into names and values, without interpreting them."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from matchpod.core.errors import InvalidParamsError
from matchpod.core.requests.query_fields import QueryFields
from matchpod.web.endpoint import Call, Endpoint

MAX_QUERY_BYTES = 12 * 1024
"""Maximum number of bytes of a query string: enough for all parameters of an endpoint at their maximum length,
percent-encoded."""


def query_of(call: Call) -> list[tuple[str, str]]:
    """Return names and values in the order of the query. A name without a value gets an empty value."""
    query: bytes = call.scope.get("query_string", b"")
    if not query:
        return []
    if len(query) > MAX_QUERY_BYTES:
        raise InvalidParamsError(f"The query string exceeds the limit of {MAX_QUERY_BYTES} bytes.")
    pairs = [part.partition(b"=") for part in query.split(b"&") if part]
    return [(_text(name), _text(value)) for name, _, value in pairs]


def check_names(endpoint: Endpoint, call: Call) -> None:
    """Raise InvalidParamsError if there are query parameters, although this endpoint has none.

    The handler of an endpoint that has query parameters reports unknown ones itself, with all other faults of the
    query.
    """
    if endpoint.reads_query or any(parameter.place == "query" for parameter in endpoint.parameters):
        return
    QueryFields(query_of(call), ()).check()


def _text(encoded: bytes) -> str:
    # Invalid UTF-8 becomes lone surrogates. All validation rules reject these, so the error can name the parameter.
    return unquote_to_bytes(encoded.replace(b"+", b" ")).decode(errors="surrogateescape")
