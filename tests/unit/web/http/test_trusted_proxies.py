"""Whose request a trusted proxy forwards: headers are read from right to left, and no other sender is believed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchpod.web.http.trusted_proxies import MAX_PROXIES, TrustedProxies

PROXIES = TrustedProxies(("10.0.0.0/8", "2001:db8:aaaa::/48", "127.0.0.1"))
PROXY = "10.0.0.1"
CLIENT = "203.0.113.7"
INVENTED = "198.51.100.9"


def client_by(*headers: tuple[str, str]) -> str:
    return PROXIES.client(PROXY, [(name.encode(), value.encode("latin-1")) for name, value in headers])


def forwarded_for(*values: str) -> str:
    return client_by(*(("x-forwarded-for", value) for value in values))


def forwarded(*values: str) -> str:
    return client_by(*(("forwarded", value) for value in values))


@pytest.mark.parametrize(
    ("host", "is_trusted"),
    [
        ("10.255.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("2001:db8:aaaa:7::1", True),
        ("127.0.0.1", True),
        ("127.0.0.2", False),
        ("11.0.0.1", False),
        ("2001:db8:aaab::1", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_proxies_are_known_by_their_networks(host: str, is_trusted: bool) -> None:
    assert PROXIES.has(host) is is_trusted


@pytest.mark.parametrize(
    ("values", "client"),
    [
        ((CLIENT,), CLIENT),
        ((f"{INVENTED}, {CLIENT}",), CLIENT),
        ((INVENTED, CLIENT), CLIENT),
        ((f"{CLIENT}, 10.1.2.3",), CLIENT),
        ((f"{INVENTED},{CLIENT} , 10.1.2.3", "10.4.5.6"), CLIENT),
        ((f"{INVENTED}, {CLIENT}, {CLIENT}",), CLIENT),
        (("::ffff:203.0.113.7",), CLIENT),
        ((f"{CLIENT}:50000",), CLIENT),
        (("[2001:db8::7]:443",), "2001:db8::7"),
        (("2001:db8::7",), "2001:db8::7"),
        (("10.9.9.9, 10.1.2.3",), "10.9.9.9"),  # a program behind the proxies
        ((f"{INVENTED}, unknown",), PROXY),
        ((f"{INVENTED}, ",), PROXY),
        ((f"{INVENTED}, unknown, 10.1.2.3",), "10.1.2.3"),
        (("\xff\x00",), PROXY),
        (("",), PROXY),
        ((), PROXY),
    ],
)
def test_nearest_machine_that_is_no_proxy_is_the_client(values: tuple[str, ...], client: str) -> None:
    assert forwarded_for(*values) == client


@pytest.mark.parametrize(
    ("values", "client"),
    [
        ((f"for={CLIENT}",), CLIENT),
        ((f"For={CLIENT};proto=https;by=10.0.0.1",), CLIENT),
        ((f'proto=https; for="{CLIENT}:1234"',), CLIENT),
        (('for="[2001:db8::7]:443"',), "2001:db8::7"),
        ((f"for={INVENTED}, for={CLIENT}", "for=10.1.2.3"), CLIENT),
        ((f"for={INVENTED}, host=cup.example",), PROXY),
        ((f"for={INVENTED}, for=_hidden",), PROXY),
        ((f'for={INVENTED};x="a,b", for={CLIENT}',), CLIENT),
        ((f"x-for={INVENTED}",), PROXY),
        ((f'host="x;for={INVENTED};y";for={CLIENT}',), CLIENT),
        ((f'host="x;for={INVENTED};y";proto=https',), PROXY),
        ((f'host="\\";for={INVENTED};x=\\"";for={CLIENT}',), CLIENT),
        ((f'host="x, for={INVENTED}";FOR = "203.0.113\\.7" ; proto=https',), CLIENT),
        ((f"for={CLIENT};host=x;for={INVENTED}",), PROXY),
        ((f"for={INVENTED} x, for={CLIENT}",), CLIENT),
        (("",), PROXY),
    ],
)
def test_forwarded_is_read_like_the_other_header(values: tuple[str, ...], client: str) -> None:
    assert forwarded(*values) == client


def test_an_open_quote_hides_no_entry_of_a_proxy() -> None:
    assert forwarded(f'for={INVENTED};x="', 'for="[2001:db8::7]"') == PROXY
    assert forwarded(f'for={INVENTED};x="", for="[2001:db8::7]"') == "2001:db8::7"


def test_a_header_that_the_proxy_only_passes_on_makes_nobody_another_client() -> None:
    assert client_by(("x-forwarded-for", CLIENT), ("forwarded", f"for={INVENTED}")) == PROXY
    assert client_by(("forwarded", f"for={CLIENT}"), ("x-forwarded-for", INVENTED)) == PROXY
    assert client_by(("x-forwarded-for", CLIENT), ("forwarded", f"for={CLIENT}")) == CLIENT


@pytest.mark.parametrize(
    ("headers", "is_disputed"),
    [
        ((("x-forwarded-for", CLIENT), ("forwarded", f"for={INVENTED}")), True),
        ((("x-forwarded-for", CLIENT), ("forwarded", "for=unknown")), True),
        ((("x-forwarded-for", "10.1.2.3"), ("forwarded", f"for={CLIENT}")), True),
        ((("forwarded", f'x=", for={CLIENT}'),), True),
        ((("forwarded", f"for={CLIENT};host=x;for={INVENTED}"),), True),
        ((("forwarded", f"for={CLIENT};host=x y"),), True),
        ((("forwarded", f"for={INVENTED} x, for={CLIENT}"),), False),
        ((("x-forwarded-for", CLIENT), ("forwarded", f"for={CLIENT}")), False),
        ((("x-forwarded-for", "unknown"),), False),
        ((("forwarded", "for=_hidden"),), False),
        ((("x-forwarded-for", "10.1.2.3"),), False),
        ((), False),
    ],
)
def test_headers_by_which_a_client_hides_are_disputed(headers: tuple[tuple[str, str], ...], is_disputed: bool) -> None:
    sent = [(name.encode(), value.encode()) for name, value in headers]
    assert PROXIES.is_disputed(PROXY, sent) is is_disputed
    if is_disputed:
        assert PROXIES.client(PROXY, sent) == PROXY


def test_a_long_chain_is_read_up_to_a_limit() -> None:
    chain = [CLIENT, *(f"10.1.0.{number}" for number in range(MAX_PROXIES))]
    assert forwarded_for(", ".join(chain)) == "10.1.0.0"
    assert forwarded_for(", ".join(chain[:-1])) == CLIENT
    assert forwarded(", ".join(f"for={node}" for node in chain[:-1])) == CLIENT


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["x-forwarded-for", "forwarded"])), st.text(st.characters(codec="latin-1")))
def test_no_text_before_the_entry_of_the_proxy_changes_the_client(names: list[str], text: str) -> None:
    for name in names:
        entry = CLIENT if name == "x-forwarded-for" else f"for={CLIENT}"
        assert client_by((name, text), (name, entry)) in (CLIENT, PROXY)
        assert client_by((name, f"{text}, {entry}")) in (CLIENT, PROXY)


def test_long_entries_are_no_addresses_and_are_not_kept() -> None:
    proxies = TrustedProxies(("10.0.0.0/8",))
    for number in range(3):
        assert proxies.client(PROXY, [(b"x-forwarded-for", b"%d" % number * 1_000)]) == PROXY
    assert proxies._known.cache_info().currsize == 0
