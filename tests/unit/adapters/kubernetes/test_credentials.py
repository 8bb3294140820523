"""Credentials are kept up to date: token files are read again, exec programs run again."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from matchpod.adapters.kubernetes.api_errors import ClusterConfigError
from matchpod.adapters.kubernetes.cluster import ExecPlugin, UserAccount
from matchpod.adapters.kubernetes.credentials import Credentials, Login
from tests.clocks import ManualClock

VERSION = "client.authentication.k8s.io/v1"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def counting_plugin(folder: Path, expires_at: str | None = None) -> ExecPlugin:
    """Return a program that prints a new token at each run."""
    status = {"token": "token-N"} | ({"expirationTimestamp": expires_at} if expires_at else {})
    printed = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})
    runs = folder / "runs"
    script = (
        f"import pathlib; runs = pathlib.Path({str(runs)!r}); n = len(runs.read_text()) if runs.exists() else 0; "
        f"runs.write_text('x' * (n + 1)); print({printed!r}.replace('-N', str(n + 1)))"
    )
    return ExecPlugin(command=sys.executable, args=("-c", script), api_version=VERSION)


async def test_fixed_token_is_used_as_it_is() -> None:
    assert await Credentials(UserAccount(token="t")).login() == Login("t")


async def test_token_file_is_read_again_after_a_minute_or_a_rejection(tmp_path: Path) -> None:
    file, time = tmp_path / "token", ManualClock(0)
    file.write_text("first\n")
    credentials = Credentials(UserAccount(token_file=file), clock_s=time)
    assert (await credentials.login()).token == "first"
    file.write_text("second\n")
    time.at_ms = 59_000
    assert (await credentials.login()).token == "first"
    time.at_ms = 60_000
    assert (await credentials.login()).token == "second"
    file.write_text("third\n")
    credentials.expire(Login("second"))
    assert (await credentials.login()).token == "third"


async def test_last_token_is_used_while_its_file_cannot_be_read(tmp_path: Path) -> None:
    file, time = tmp_path / "token", ManualClock(0)
    file.write_text("first")
    credentials = Credentials(UserAccount(token_file=file), clock_s=time)
    await credentials.login()
    file.unlink()
    time.at_ms = 100_000
    assert (await credentials.login()).token == "first"


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read: No such file"), (b" \n", "is empty"), (b"\xff", "not text")]
)
async def test_unusable_token_file_is_reported(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ClusterConfigError, match=f"The token file {file} .*{message}"):
        await Credentials(UserAccount(token_file=file)).login()


async def test_exec_program_runs_once_for_all_until_its_token_is_rejected(tmp_path: Path) -> None:
    credentials = Credentials(UserAccount(exec_plugin=counting_plugin(tmp_path)))
    logins = await asyncio.gather(*(credentials.login() for _ in range(5)))
    assert {login.token for login in logins} == {"token1"}
    for _ in range(2):  # two calls were rejected with the same token
        credentials.expire(logins[0])
        assert (await credentials.login()).token == "token2"


async def test_exec_program_runs_again_before_its_token_expires(tmp_path: Path) -> None:
    time = ManualClock(0)
    plugin = counting_plugin(tmp_path, "2026-11-15T13:00:00Z")
    credentials = Credentials(
        UserAccount(exec_plugin=plugin), clock_s=time, now=lambda: NOW + timedelta(seconds=time())
    )
    assert (await credentials.login()).token == "token1"
    time.at_ms = 3_500_000
    assert (await credentials.login()).token == "token1"
    time.at_ms = 3_541_000
    assert (await credentials.login()).token == "token2"
