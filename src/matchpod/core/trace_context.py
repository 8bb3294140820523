"""Read and write the W3C trace context: the trace of a request, and the span that sent it.

The ids of our own spans are derived from the id of the match, so that every process knows them, even after a restart.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

TRACEPARENT: Final = "traceparent"
"""The name of the header, and of the field in the stored settings of a match."""

MAX_CHARS: Final = 256
"""Maximum length of a `traceparent` header that is read. Version 00 has 55 characters; later versions may have more."""

_SAMPLED: Final = 0x01
_FORM: Final = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[ -~]*)?")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16


class TraceContext(msgspec.Struct, frozen=True):
    """The ids of a trace and of a span in it, as hexadecimal digits."""

    trace_id: str
    span_id: str
    is_sampled: bool = True
    """False if the caller does not record the trace. In this case the service does not record it either."""

    @property
    def header(self) -> str:
        """The value of the header `traceparent`."""
        return f"00-{self.trace_id}-{self.span_id}-{int(self.is_sampled):02x}"


class _Traced(msgspec.Struct):
    traceparent: str | None = None


def read_traceparent(header: str | None) -> TraceContext | None:
    """Return the context in a header; None if there is none, or if it is invalid and so must be ignored."""
    found = None if header is None or len(header) > MAX_CHARS else _FORM.fullmatch(header.strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if trace_id == _NO_TRACE or span_id == _NO_SPAN or (version == "00" and rest is not None):
        return None
    return TraceContext(trace_id, span_id, is_sampled=bool(int(flags, 16) & _SAMPLED))


def with_context(settings: bytes, context: TraceContext | None) -> bytes:
    """Add the context of a match's creation to its stored settings. Readers of the settings ignore it."""
    if context is None:
        return settings
    return b'%b,"%b":"%b"}' % (settings.removesuffix(b"}"), TRACEPARENT.encode(), context.header.encode())


def context_in(settings: bytes) -> TraceContext | None:
    """Return the context in which a match was created; None if its caller sent no context."""
    try:
        return read_traceparent(msgspec.json.decode(settings, type=_Traced).traceparent)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def match_context(server_id: str, caller: TraceContext | None) -> TraceContext:
    """Return the trace context of a match: the match's own span, in the caller's trace or in a new trace."""
    trace_id = caller.trace_id if caller is not None else _digest(server_id, "trace", 16)
    return TraceContext(trace_id, span_id_of(server_id, "match"), is_sampled=caller is None or caller.is_sampled)


def span_id_of(server_id: str, name: str) -> str:
    return _digest(server_id, name, 8)


def _digest(server_id: str, name: str, size: int) -> str:
    return hashlib.sha256(f"{server_id} {name}".encode()).digest()[:size].hex()
