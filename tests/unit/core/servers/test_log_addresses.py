"""The log addresses of a server say which match and which installation use it."""

from __future__ import annotations

import pytest

from matchpod.core.servers.log_addresses import check_token, installation_in, log_tokens_in, may_be_check_token

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


@pytest.mark.parametrize("installation", [OURS, ""])
def test_token_of_a_check_is_told_from_that_of_a_match(installation: str) -> None:
    token = check_token(installation, "a_B-9")
    assert may_be_check_token(token)
    assert installation_in(token) == (installation or None)
    assert not may_be_check_token(f"{OURS}-a_B-9")
    assert not may_be_check_token("a_B-9")
