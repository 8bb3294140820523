"""Count connections and decide, near the limits, which of them are served. This module has no sockets.

Most connection slots are ordinary. The other slots are reserved for priority requests, such as probes of operators. If
an address has more connections than its limit, the excess connections are also reserved for priority requests.
"""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.web.http.trusted_proxies import LOOPBACK_NETWORKS

MAX_PIPELINED: Final = 32
"""Maximum number of requests that wait on a connection while an earlier request is being answered. Common clients and
proxies do not pipeline requests."""
RESERVED_PART: Final = 8
"""Part of the connection slots that is reserved for priority requests: one slot in 8. Such requests are short."""
ADDRESS_EXCESS: Final = 2
"""Connections of an address stay open up to this multiple of its limit; further connections are closed at once. Whether
a request has priority is known only once it arrives, and an error response explains more than a closed connection."""

PROBE_BYTES: Final = 32
"""Number of bytes at the start of a request that are needed to recognize a probe."""

_IPV6_NETWORK: Final = 64
"""Prefix length of the IPv6 network that a provider usually assigns to one customer, who can use all addresses in it.
"""


class Excess(StrEnum):
    """The reason for rejecting a connection, or for closing it early."""

    LIMIT = "limit"
    ADDRESS = "address"
    IDLE = "idle"
    FILES = "files"
    UNREAD = "unread"


class PriorityPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of priority requests, which are answered even if there are too many connections."""

    trusted: str
    """The prefix of the paths where status 200 proves that the client is trusted. Connections of trusted clients do not
    count toward the limit of their address."""
    probes: frozenset[str]
    """The paths of liveness and readiness probes. Probes use GET or HEAD."""
    others: frozenset[str]

    def is_trusted(self, path: str) -> bool:
        return path.startswith(self.trusted)

    def has(self, path: str) -> bool:
        return self.is_trusted(path) or path in self.probes or path in self.others

    def is_probe(self, begin: bytes) -> bool:
        """True if `begin`, the first bytes of a request, are those of a probe."""
        method, _, rest = begin.partition(b" ")
        path, space, _ = rest.partition(b" ")
        if not space or method not in (b"GET", b"HEAD"):
            return False
        return path.partition(b"?")[0].decode("latin-1") in self.probes


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for open connections and their requests. `per_address` is None if there is no limit per address."""

    total: int
    per_address: int | None = None
    pipelined: int = MAX_PIPELINED
    trusted_proxies: tuple[str, ...] = LOOPBACK_NETWORKS
    """Networks of trusted proxies. Their connections do not count toward a limit per address. Instead, their requests
    count toward the limit of the client's address."""
    probes: ConnectionLimits | None = None
    """Limits of additional slots, for connections that begin with a probe and carry only this request. If set, the
    limit per address applies to this machine too."""

    @property
    def ordinary(self) -> int:
        """Maximum number of connections for requests without priority. The other connections are reserved."""
        return self.total - max(1, self.total // RESERVED_PART)

    @property
    def of_address(self) -> int | None:
        """Maximum number of connections per address for requests without priority; at most half the ordinary slots."""
        return None if self.per_address is None else max(1, min(self.per_address, self.ordinary // 2))


def address_group(host: str) -> str | None:
    """Return the key under which connections of this address are counted; None if the address has no limit.

    Loopback addresses have no limit, because proxies on this machine use them. All addresses of an IPv6 network share a
    key.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(address), _IPV6_NETWORK), strict=False))
    return str(address)


class Seat:
    """The slot of an open connection. `address` is None if the connection counts toward no limit per address."""

    __slots__ = ("address", "admission", "is_ordinary")

    def __init__(self, admission: Admission, address: str | None) -> None:
        self.admission = admission
        self.address = address
        self.is_ordinary = False


class Admission:
    """Counts the open connections, in total and per address. With `is_single`, each carries only one request."""

    def __init__(self, limits: ConnectionLimits, *, is_single: bool = False) -> None:
        self.limits = limits
        self.is_single = is_single
        self.open = 0
        self._ordinary = limits.ordinary
        self._of_address = limits.of_address
        self._by_address: dict[str, int] = {}

    @property
    def is_crowded(self) -> bool:
        """True if all ordinary slots are in use."""
        return self.open >= self._ordinary

    @property
    def is_full(self) -> bool:
        """True if all slots are in use."""
        return self.open >= self.limits.total

    def is_barred(self, address: str | None) -> bool:
        """True if new connections of this address must be closed at once, because it has far too many."""
        if self._of_address is None or address is None:
            return False
        return self._by_address.get(address, 0) >= ADDRESS_EXCESS * self._of_address

    def enter(self, address: str | None) -> Seat:
        self.open += 1
        seat = Seat(self, None if self._of_address is None else address)
        if seat.address is not None:
            self._by_address[seat.address] = self._by_address.get(seat.address, 0) + 1
        self.excess(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        self.open -= 1
        self.trust(seat)

    def trust(self, seat: Seat) -> None:
        """Stop counting a trusted client's connection toward its address, because one machine may have many of them."""
        if seat.address is not None:
            self.end(seat.address)
            seat.address = None

    def begin(self, address: str) -> bool:
        """Count a request that a proxy forwards for this address. Return False if the address has reached its limit."""
        count = self._by_address.get(address, 0)
        if self._of_address is not None and count >= self._of_address:
            return False
        self._by_address[address] = count + 1
        return True

    def end(self, address: str) -> None:
        """Stop counting one connection or request of this address."""
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]

    def excess(self, seat: Seat) -> Excess | None:
        """Return why this connection is limited to priority requests at the moment; None if it is not."""
        if seat.is_ordinary:
            return None
        limit = self._of_address
        if limit is not None and seat.address is not None and self._by_address[seat.address] > limit:
            return Excess.ADDRESS
        if self.open > self._ordinary:
            return Excess.LIMIT
        seat.is_ordinary = True
        return None
