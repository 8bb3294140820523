"""Hiding the secrets in callback URLs."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.requests.masked_urls import mask_url


def test_user_info_query_values_and_fragment_are_hidden() -> None:
    for url, masked in [
        ("https://caller.example", "https://caller.example"),
        ("https://caller.example:8443/over/1", "https://caller.example:8443/over/1"),
        ("https://caller.example/over?token=s3cret", "https://caller.example/over?token=***"),
        ("https://caller.example?code=s3cret&match=7", "https://caller.example?code=***&match=***"),
        ("https://caller.example/?s3cret", "https://caller.example/?***"),
        ("https://caller.example/?a=&b&&c=s3=cret", "https://caller.example/?a=&***&&c=***"),
        ("https://caller.example/?", "https://caller.example/?"),
        ("https://caller.example/over#s3cret", "https://caller.example/over"),
        ("https://ann:s3cret@caller.example/over", "https://***@caller.example/over"),
        ("https://s3cret@caller.example?k=v", "https://***@caller.example?k=***"),
        ("https://ann:s3@cret@caller.example/", "https://***@caller.example/"),
        ("http://[2001:db8::1]:80/over/@me?x=1", "http://[2001:db8::1]:80/over/@me?x=***"),
    ]:
        assert mask_url(url) == masked


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=4)), min_size=1, max_size=4))
def test_no_value_of_any_query_is_shown(pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    shown = parse_qsl(urlsplit(mask_url(f"https://caller.example/over?{query}")).query)
    assert shown == [(name, "***") for name, _ in pairs]
