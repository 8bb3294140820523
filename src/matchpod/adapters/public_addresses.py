"""Decide whether an address is on the public internet, by the IANA registries of special-purpose addresses.

An IPv6 address that contains an IPv4 address is judged by that address: a tunnel or translator forwards to it. Versions
of Python differ in which special addresses they know, so the tables add what at least one supported version lacks.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
"""The only part of IPv6 that is allocated to the internet; most special addresses are outside."""

# As of November 2026. Receivers have none of the few addresses in them that the registries call globally reachable.
_IPV6_SPECIAL: Final = (
    IPv6Network("2001::/23"),  # protocol assignments
    IPv6Network("3fff::/20"),  # documentation
)
_IPV4_SPECIAL: Final = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments; one cloud serves its metadata here
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
    IPv4Network("168.63.129.16/32"),  # looks public, but is the host of a cloud's virtual machines
)

_NAT64: Final = (
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/96"),  # of the local prefixes in 64:ff9b:1::/48, the one with a known position of the IPv4
)


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
