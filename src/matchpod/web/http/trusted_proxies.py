"""Find the address of a client whose request came through proxies, from the headers that they add.

Each proxy appends the address of its client, so the headers are read from right to left. An entry counts only if a
trusted proxy added it, because clients can send any entries further to the left. A proxy usually adds either
`X-Forwarded-For` or `Forwarded`, and forwards the other header as the client sent it. If a request has both and they
differ, neither is trusted, and the request counts toward the limit of the proxy. So the request cannot escape the
limits, and cannot count toward an address that its sender has chosen.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from matchpod.web.http.responses import Header

LOOPBACK_NETWORKS: Final = ("127.0.0.0/8", "::1")
MAX_PROXIES: Final = 16
"""Maximum number of proxies to read from the headers. If there are more, the last address that was read counts as the
client."""

MAX_NODE_BYTES: Final = 64
"""Maximum number of bytes of an entry. Longer entries are not addresses, and are not cached."""

KEPT: Final = 4096
"""Maximum number of parsed addresses to cache, because parsing takes as long as the rest of accepting a connection."""

_QUOTED: Final = rb'"((?:[^"\\]|\\.)*+)"'
_WITH_CLOSED_QUOTES: Final = re.compile(rb'(?:[^"]|%b)*+' % _QUOTED)
_ELEMENT: Final = re.compile(rb'(?:[^",]|%b)++' % _QUOTED)
_PARAMETER: Final = re.compile(rb'\s*([^\s"=;]+)\s*=\s*(?:%b|([^\s";]*))\s*(?:;|\Z)' % _QUOTED)
"""A name and its value in an element of a Forwarded header (RFC 7239)."""
_ESCAPED: Final = re.compile(rb"\\(.)")
_WITH_PORT: Final = re.compile(r"\[(?P<ipv6>[^\]]*)\](?::\d{1,5})?|(?P<ipv4>[\d.]+):\d{1,5}")

_Address = IPv4Address | IPv6Address


class TrustedProxies:
    """The proxies whose headers we trust."""

    def __init__(self, networks: Iterable[str] = LOOPBACK_NETWORKS) -> None:
        """Trust these networks: IP addresses, or networks such as `10.0.0.0/8`."""
        self._networks = tuple(map(ip_network, networks))
        self._known = lru_cache(KEPT)(self._look_up)

    def has(self, host: str) -> bool:
        """True if this is the address of a trusted proxy."""
        return self._known(host)[1]

    def client(self, proxy: str, headers: Sequence[Header]) -> str:
        """Return the client address that a trusted proxy reports; the address of the proxy if the client is unknown."""
        named = self._named(proxy, headers)
        return (named.pop() if len(named) == 1 else None) or proxy

    def is_disputed(self, proxy: str, headers: Sequence[Header]) -> bool:
        """True if the headers differ or cannot be read. Only a client that hides its address causes that."""
        named = self._named(proxy, headers)
        return len(named) > 1 or None in named

    def _named(self, proxy: str, headers: Sequence[Header]) -> set[str | None]:
        """Return the client addresses that the headers name. None stands for a header that cannot be read."""
        forwarded_for = [value for name, value in headers if name == b"x-forwarded-for"]
        forwarded = [value for name, value in headers if name == b"forwarded"]
        named: set[str | None] = set()
        if forwarded_for:
            named.add(self._walk(proxy, b",".join(forwarded_for).rsplit(b",", MAX_PROXIES)[-MAX_PROXIES:]))
        if forwarded:
            named.add(self._walk(proxy, _nodes(b",".join(forwarded))))
        return named

    def _walk(self, proxy: str, nodes: Sequence[bytes | None]) -> str | None:
        """Return the nearest machine that is not a trusted proxy or, if none is known, the farthest trusted proxy.

        Return None if an entry on the way to that machine cannot be read.
        """
        client = proxy
        for node in reversed(nodes):
            if node is None:
                return None
            is_short = len(node) <= MAX_NODE_BYTES
            host, is_proxy = self._known(node.decode("latin-1").strip(" \t")) if is_short else (None, False)
            client = host or client
            if not is_proxy:
                break
        return client

    def _look_up(self, host: str) -> tuple[str | None, bool]:
        """Return the address in its usual notation (None if it is invalid), and whether it is a trusted proxy."""
        address = _read(host)
        if address is None:
            return None, False
        return str(address), any(address in network for network in self._networks)


def _nodes(forwarded: bytes) -> Sequence[bytes | None]:
    """Return the nodes in a Forwarded header; a single None if it has an open quote, which hides the rest of it."""
    if not _WITH_CLOSED_QUOTES.fullmatch(forwarded):
        return (None,)
    elements = (element[0] for element in _ELEMENT.finditer(forwarded))
    return [_node(element) for element in deque(elements, MAX_PROXIES)]


def _node(element: bytes) -> bytes | None:
    """Return the `for` node of an element; empty bytes without a `for`, None if the element is invalid or has two."""
    node, at = None, 0
    while at < len(element):
        parameter = _PARAMETER.match(element, at)
        if parameter is None:
            return None
        name, quoted, token = parameter.groups()
        if name.lower() == b"for":
            if node is not None:
                return None
            node = token if quoted is None else _ESCAPED.sub(rb"\1", quoted)
        at = parameter.end()
    return node or b""


def _read(host: str) -> _Address | None:
    """Return the IP address of a node, without the port if it has one; None for a name or an obfuscated node."""
    if parts := _WITH_PORT.fullmatch(host):
        host = parts["ipv6"] or parts["ipv4"] or ""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
