"""Which addresses are public, compared with the IANA registries, and which hosts in URLs are private or loopback."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.requests.addresses import is_loopback, is_public, private_host

# The registries as of November 2026: every block that is not globally reachable, or for which that is undefined.
# Blocks of IPv6 addresses that contain an IPv4 address are in tests of their own.
SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.0.0/29", "192.0.0.8/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.88.99.0/24"),
    *("192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:2::/48", "2001:10::/28"),
    *("2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10"),
)

# Not in these registries, but not public either: multicast, addresses that are not allocated, metadata of clouds.
OTHERS = (
    *("224.0.0.0/4", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32"),
    *("::/96", "200::/7", "4000::/3", "8000::/1", "fec0::/10", "ff00::/8", "fd00:ec2::254/128"),
)

# Globally reachable parts of special blocks, for anycast and identifiers: no receiver has such an address, and only some
# versions of Python know them.
WITHOUT_RECEIVERS = (
    *("192.0.0.9/32", "192.0.0.10/32"),
    *("2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48"),
    *("2001:20::/28", "2001:30::/28"),
)


def ends_of(block: str) -> set[str]:
    network = ip_network(block)
    return {str(network[0]), str(network[-1])}


@pytest.mark.parametrize("block", [*SPECIAL, *OTHERS, *WITHOUT_RECEIVERS])
def test_special_blocks_are_not_public(block: str) -> None:
    assert {address for address in ends_of(block) if is_public(address)} == set()


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
        *("126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "223.255.255.255"),
        *("2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"),
        *("3ffe:ffff::", "3fff:1000::"),
        *("192.31.196.1", "192.52.193.1", "192.175.48.1", "2620:4f:8000::1"),  # special, but globally reachable
    ],
)
def test_internet_addresses_are_public(address: str) -> None:
    assert is_public(address)


def containers_of(ipv4: str) -> dict[str, str]:
    """Return IPv6 addresses whose packets a tunnel, a translator or the system forwards to an IPv4 address."""
    number = int(IPv4Address(ipv4))
    public = int(IPv4Address("8.8.8.8"))
    numbers = {
        "mapped": 0xFFFF << 32 | number,
        "NAT64": 0x64FF9B << 96 | number,
        "local NAT64": 0x64FF9B0001 << 80 | number,
        "6to4": 0x2002 << 112 | number << 80 | 1,
        "Teredo server": 0x20010000 << 96 | number << 64 | (public ^ 0xFFFFFFFF),
        "Teredo client": 0x20010000 << 96 | public << 64 | (number ^ 0xFFFFFFFF),
    }
    return {name: str(IPv6Address(value)) for name, value in numbers.items()}


@pytest.mark.parametrize("ipv4", ["8.8.8.8", "93.184.216.34", "223.255.255.255"])
def test_ipv6_address_that_contains_a_public_address_is_public(ipv4: str) -> None:
    containers = containers_of(ipv4)
    assert {name for name, address in containers.items() if is_public(address)} == set(containers)


@pytest.mark.parametrize("block", [block for block in (*SPECIAL, *OTHERS) if ":" not in block])
def test_ipv6_address_that_contains_a_special_address_is_not_public(block: str) -> None:
    for ipv4 in ends_of(block):
        assert {name for name, address in containers_of(ipv4).items() if is_public(address)} == set()


def test_local_translator_with_an_unknown_prefix_length_is_not_public() -> None:
    # To a translator with the prefix 64:ff9b:1::/48 this is 127.0.0.1.
    assert not is_public("64:ff9b:1:7f00:0:100:808:808")


@pytest.mark.parametrize(
    "text", ["", "nonsense", "8.8.8", "8.8.8.8/32", "[2606::1]", "fe80::1%1", "::1%lo", "2130706433"]
)
def test_invalid_and_scoped_addresses_are_not_public(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:9000/", "127.0.0.1"),
        ("https://10.1.2.3", "10.1.2.3"),
        ("http://192.168.0.1./over", "192.168.0.1"),
        ("http://169.254.169.254/latest", "169.254.169.254"),
        ("http://[::1]:9000/", "::1"),
        ("http://[fd00::1]/", "fd00::1"),
        ("http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1"),
        ("http://LOCALHOST:9000/", "localhost"),
        ("http://api.localhost/", "api.localhost"),
        ("http://localhost./", "localhost"),
        ("http://127.1/", "127.1"),
        ("http://0x7f.1/", "0x7f.1"),
        ("http://0177.0.0.01/", "0177.0.0.01"),
        ("http://2130706433/", "2130706433"),
        ("http://0/", "0"),
        ("http://8.8.8.8/", None),
        ("http://134744072/", None),
        ("http://[2606:4700::1111]/", None),
        ("https://caller.example/127.0.0.1", None),
        ("https://localhost.example/", None),
        ("https://10.example/", None),
        ("https://1.2.3.4.5/", None),
        ("https://127.0.0.256/", None),
        ("https://4294967296/", None),
        ("https://08.1/", None),
    ],
)
def test_host_of_a_url_is_private_if_it_is_an_address_that_is_not_public_in_any_notation(
    url: str, host: str | None
) -> None:
    assert private_host(url) == host


@given(st.ip_addresses(v=4))
def test_address_is_private_in_every_notation_if_it_is_in_one(ip: IPv4Address) -> None:
    number = int(ip)
    notations = (str(ip), str(number), hex(number), f"0{number:o}", f"{number >> 24}.{number & 0xFFFFFF}")
    assert {private_host(f"http://{text}/") is None for text in notations} == {is_public(str(ip))}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::", "::ffff:10.0.0.1", "localhost.example", "", "x"])
def test_other_addresses_and_names_are_not(host: str) -> None:
    assert not is_loopback(host)
