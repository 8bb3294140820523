"""Names of secrets are recognized in any case, other names are not."""

from __future__ import annotations

import time

from matchpod.core.requests.secret_names import is_secret_name

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
    "auth_id", "passengers", "spawn", "spw_count",
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
