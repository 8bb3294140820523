"""Names of secrets are recognized in any case, other names are not; the secrets in callback URLs are hidden."""

from __future__ import annotations

import time
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.secrets import is_secret_name, mask_path, mask_url

SECRETS = [
    "password", "sv_password", "tv_password1", "tv_relaypassword", "rconPassword", "RCON_PASSWORD", "Sv_PassWord",
    "db_passwd", "secret", "logaddress_token_secret", "webhook_secret", "clientSecret", "SECRET_KEY",
    "sv_setsteamaccount", "matchzy_remote_log_header_value", "RemoteLogHeaderValue",
    "token", "log_token", "callbackAuthToken", "AUTHTOKEN",
    "steam_key", "STEAM_API_KEY", "apiKey", "Authorization",
    "pass", "sv_pass", "rconPass", "pass1", "passphrase", "pwd", "mysql_pwd", "PWD_HASH", "sv_pw", "rconPw", "pw",
    "webhook", "discord_webhook", "webhookUrl", "auth", "http_auth", "authHeader", "AUTH_CODE", "oauth",
]  # fmt: skip
OTHERS = [
    "", "mp_freezetime", "key", "key_id", "new_key_id", "monkey", "map_key_count", "tokens_spent", "token_count",
    "kills", "steamid", "name", "server_id", "side", "passed", "passes", "passive", "bypass", "compass", "author", "authority", "authid",
    "webhook_id", "webhookId", "webhook_deliveries", "auth_id", "passengers", "spawn", "spw_count",
]  # fmt: skip


def test_secret_is_recognized_by_its_name() -> None:
    for name in SECRETS:
        assert is_secret_name(name)
        assert is_secret_name(name.upper())
        assert is_secret_name(name.lower())


def test_other_name_is_no_secret() -> None:
    for name in OTHERS:
        assert not is_secret_name(name)


def test_cost_of_an_overlong_name_is_linear() -> None:
    began_s = time.thread_time()
    assert not is_secret_name("_tokenx_author" * 100_000 + "-")
    assert time.thread_time() - began_s < 2.0


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


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://caller.example", "https://caller.example"),
        ("https://caller.example/", "https://caller.example/"),
        ("https://caller.example/hooks/s3cret?a=b", "https://caller.example/***"),
        ("https://ann:s3cret@caller.example:8443/in", "https://***@caller.example:8443/***"),
        ("https://caller.example?s3cret", "https://caller.example/***"),
    ],
)
def test_only_the_origin_of_a_receiver_is_shown(url: str, masked: str) -> None:
    assert mask_path(url) == masked


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=4)), min_size=1, max_size=4))
def test_no_value_of_any_query_is_shown(pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    shown = parse_qsl(urlsplit(mask_url(f"https://caller.example/over?{query}")).query)
    assert shown == [(name, "***") for name, _ in pairs]
