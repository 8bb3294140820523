"""Find the address of a client whose request came through proxies, from the headers that they add.

Each proxy appends the address that it was called from, so the headers are read from right to left: an entry counts only
if the machine that added it is a trusted proxy. What stands further left may be invented. A proxy usually adds one of
the two headers and passes the other on as the client sent it: if both are there and differ, neither counts. Such
requests count for the proxy, all together: neither may they escape the limits, nor may they count for an address that
their sender has chosen.
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
"""Most proxies that a request may pass; beyond them, the last address that was read counts as the client."""

MAX_NODE_BYTES: Final = 64
"""Longer entries are not addresses, and are not cached."""

KEPT: Final = 4096
"""Parsed addresses that are kept: parsing takes as long as the rest of accepting a connection."""

_QUOTED: Final = rb'"((?:[^"\\]|\\.)*+)"'
_WITH_CLOSED_QUOTES: Final = re.compile(rb'(?:[^"]|%b)*+' % _QUOTED)
_ELEMENT: Final = re.compile(rb'(?:[^",]|%b)++' % _QUOTED)
_PARAMETER: Final = re.compile(rb'\s*([^\s"=;]+)\s*=\s*(?:%b|([^\s";]*))\s*(?:;|\Z)' % _QUOTED)
"""A name and its value, in an element of a Forwarded header (RFC 7239)."""
_ESCAPED: Final = re.compile(rb"\\(.)")
_WITH_PORT: Final = re.compile(r"\[(?P<ipv6>[^\]]*)\](?::\d{1,5})?|(?P<ipv4>[\d.]+):\d{1,5}")

_Address = IPv4Address | IPv6Address


class TrustedProxies:
    """The trusted machines, whose headers count."""

    def __init__(self, networks: Iterable[str] = LOOPBACK_NETWORKS) -> None:
        """`networks` are addresses, or networks such as `10.0.0.0/8`."""
        self._networks = tuple(map(ip_network, networks))
        self._known = lru_cache(KEPT)(self._look_up)

    def has(self, host: str) -> bool:
        """True if the machine at this address is a trusted proxy."""
        return self._known(host)[1]

    def client(self, proxy: str, headers: Sequence[Header]) -> str:
        """Return the address of the client that a trusted proxy forwards a request for; its own if that is unknown."""
        named = self._named(proxy, headers)
        return (named.pop() if len(named) == 1 else None) or proxy

    def is_disputed(self, proxy: str, headers: Sequence[Header]) -> bool:
        """True if the headers hide the client, as only the client can make them do: they differ, or cannot be read."""
        named = self._named(proxy, headers)
        return len(named) > 1 or None in named

    def _named(self, proxy: str, headers: Sequence[Header]) -> set[str | None]:
        """Return the addresses that the headers name; None stands for a header that cannot be read."""
        forwarded_for = [value for name, value in headers if name == b"x-forwarded-for"]
        forwarded = [value for name, value in headers if name == b"forwarded"]
        named: set[str | None] = set()
        if forwarded_for:
            named.add(self._walk(proxy, b",".join(forwarded_for).rsplit(b",", MAX_PROXIES)[-MAX_PROXIES:]))
        if forwarded:
            named.add(self._walk(proxy, _nodes(b",".join(forwarded))))
        return named

    def _walk(self, proxy: str, nodes: Sequence[bytes | None]) -> str | None:
        """Return the nearest machine that is not a trusted proxy, or the last known one.

        None if an entry before it cannot be read.
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
        """Return the usual notation of an address, and whether it is a trusted proxy's; None if it is no address."""
        address = _read(host)
        if address is None:
            return None, False
        return str(address), any(address in network for network in self._networks)


def _nodes(forwarded: bytes) -> Sequence[bytes | None]:
    """Return the nodes in a Forwarded header; only None if a client left a quote open, which hides all after it."""
    if not _WITH_CLOSED_QUOTES.fullmatch(forwarded):
        return (None,)
    elements = (element[0] for element in _ELEMENT.finditer(forwarded))
    return [_node(element) for element in deque(elements, MAX_PROXIES)]


def _node(element: bytes) -> bytes | None:
    """Return the node that an element is for, empty if it names none; None if it cannot be read, or names two."""
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
    """Return an address, which may have a port; None if it is a name, or hidden."""
    if parts := _WITH_PORT.fullmatch(host):
        host = parts["ipv6"] or parts["ipv4"] or ""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
