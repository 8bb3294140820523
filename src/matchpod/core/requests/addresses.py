"""Decide whether an address, or the host in a URL, is public or is this machine, without DNS lookups.

An address is public unless the IANA registries of special-purpose addresses list it. An IPv6 address that contains an
IPv4 address is public if the IPv4 address is, because a tunnel or translator forwards to it. Python versions differ in
the special addresses that they know, so the tables add the addresses that a supported version lacks.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import urlsplit

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""The only part of IPv6 that is allocated to the internet. Most special addresses are outside this network."""

# As of November 2026. A few addresses in these networks are public, but callback receivers do not use them.
_IPV6_SPECIAL: Final = (
    IPv6Network("2001::/23"),  # protocol assignments
    IPv6Network("3fff::/20"),  # documentation
)
_IPV4_SPECIAL: Final = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments; 192.0.0.192 is a metadata service of Oracle Cloud
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
    IPv4Network("168.63.129.16/32"),  # Azure's platform endpoint (WireServer), reachable only from Azure VMs
)

_NAT64: Final = (
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/96"),  # the only prefix in 64:ff9b:1::/48 with a known position of the IPv4 address
)

_NUMBER: Final = re.compile(r"0[xX](?P<hex>[0-9A-Fa-f]*)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]*)")
"""Matches a part of an IPv4 address in every notation that systems accept: `127.1`, `0x7f.1` and `2130706433` are
loopback too."""


def is_public(address: str) -> bool:
    """True for an address on the public internet, not in a private or special network."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return _is_public_ipv4(ip)
    if embedded := _embedded_addresses(ip):
        return all(map(_is_public_ipv4, embedded))
    return ip in _GLOBAL_UNICAST and ip.is_global and not any(ip in network for network in _IPV6_SPECIAL)


def is_loopback(host: str) -> bool:
    """True for an address or name that only reaches this machine."""
    try:
        ip = ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    return ip.is_loopback if mapped is None else mapped.is_loopback


def private_host(url: str) -> str | None:
    """Return the host of a valid URL if it is a non-public address or a name of this machine.

    Return None for public addresses, and for all other names, because their addresses are known only after a DNS
    lookup.
    """
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if ":" in host:
        return None if is_public(host) else host
    if host == "localhost" or host.endswith(".localhost"):
        return host
    number = _ipv4_number(host)
    return None if number is None or _is_public_ipv4(IPv4Address(number)) else host


def _ipv4_number(host: str) -> int | None:
    """Return the IPv4 address in a host, in any notation that `inet_aton` reads; None if it is a name."""
    found = [_NUMBER.fullmatch(part) for part in host.split(".")]
    numbers = [_number(part) for part in found if part is not None]
    if len(numbers) < len(found) or len(numbers) > 4:
        return None
    *first, last = numbers
    if any(number > 0xFF for number in first) or last >= 1 << 8 * (4 - len(first)):
        return None
    return sum(number << 8 * (3 - place) for place, number in enumerate(first)) + last


def _number(part: re.Match[str]) -> int:
    if part["hex"] is not None:
        return int(part["hex"] or "0", 16)
    return int(part["decimal"]) if part["decimal"] else int(part["octal"] or "0", 8)


def _is_public_ipv4(ip: IPv4Address) -> bool:
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _IPV4_SPECIAL)


def _embedded_addresses(ip: IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that packets to this address may be forwarded to."""
    if ip.teredo is not None:
        return ip.teredo  # the server and the client
    if any(ip in network for network in _NAT64):
        return (IPv4Address(int(ip) & 0xFFFFFFFF),)
    embedded = ip.ipv4_mapped or ip.sixtofour
    return () if embedded is None else (embedded,)
