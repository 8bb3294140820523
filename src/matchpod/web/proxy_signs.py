"""Find signs of a proxy in a request: a Host that is another machine, or a header that proxies add."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from matchpod.core.requests.addresses import is_loopback
from matchpod.core.requests.text_rules import printable
from matchpod.web.http.responses import Header

KEPT: Final = 16
"""Maximum number of headers (each of at most 64 KiB) whose results are cached. Local clients send only a few different
headers."""

_NAMES: Final = frozenset({b"host", b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"})
_FORWARDED: Final = re.compile(r'(?i)(?:^|[;,\s])(?:for|host)\s*=\s*("[^"]*"|[^;,\s]*)')
"""Finds the addresses and hosts in a Forwarded header (RFC 7239)."""
_PORT: Final = re.compile(r"\[(?P<ipv6>[^\]]*)\](?::\d*)?|(?P<host>[^:]*):\d*")
_UNSPECIFIED: Final = ("0.0.0.0", "::")
"""Addresses that stand for all addresses of a machine. Local programs can use them to reach this machine."""


def proxy_sign(headers: Sequence[Header]) -> str | None:
    """Return the first header that names another machine, as `header: machine`; None if no header does."""
    for header in headers:
        if header[0] in _NAMES and (sign := _sign(header)) is not None:
            return sign
    return None


@lru_cache(KEPT)  # polls repeat their headers, and parsing one takes as long as the rest of the answer
def _sign(header: Header) -> str | None:
    name, text = header[0], header[1].decode("latin-1")
    found = next((host for host in _hosts(name, text) if not _is_local(host)), None)
    return None if found is None else f"{name.decode()}: {printable(found.strip())}"


def _hosts(name: bytes, text: str) -> Sequence[str]:
    if name == b"forwarded":
        return [part.strip('"') for part in _FORWARDED.findall(text)]
    return text.split(",")


def _is_local(text: str) -> bool:
    host = text.strip()
    if parts := _PORT.fullmatch(host):
        host = parts["ipv6"] or parts["host"] or ""
    host = host.lower().removesuffix(".")
    return not host or host in _UNSPECIFIED or is_loopback(host) or host.endswith(".localhost")
