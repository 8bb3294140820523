"""The log addresses of a server say which match and which installation use it."""

from __future__ import annotations

import pytest

from matchpod.core.servers.log_addresses import installation_in, log_tokens_in

OURS = "mp-00000000000000aa"


@pytest.mark.parametrize("token", [f"{OURS}-a_B-9", "a_B-9"], ids=["now", "early version"])
def test_token_of_a_match_is_the_end_of_its_log_address(token: str) -> None:
    addresses = ("http://198.51.100.4/statistics", f"https://matchpod.example/behind/proxy/ingest/logs/{token}")
    assert log_tokens_in(addresses) == (token,)


@pytest.mark.parametrize("path", ["/ingest/logs/", "/ingest/logs", "/ingest/shots/a", "/ingest/logs/a/b", "/logs/a"])
def test_other_addresses_have_no_token(path: str) -> None:
    assert log_tokens_in([f"http://198.51.100.4{path}"]) == ()


def test_token_begins_with_the_id_of_its_installation_except_in_early_versions() -> None:
    assert installation_in(f"{OURS}-a_B-9") == OURS
    assert installation_in("a_B-9") is None
    assert installation_in("mp-a_B-9") is None
