"""`matchpod listen` as a process: it prints callbacks and ends quietly."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KeyFileVault
from matchpod.ports import CallbackRequest, Delivery
from matchpod.service.access.webhook_signature import attempt_headers, new_secret
from matchpod.storage import organizations
from matchpod.storage.migrate import migrate
from matchpod.storage.organizations import Organization
from tests.vaults import VAULT

SECRET = new_secret(bytes(range(32)))
BODY = json.dumps(
    {"eventType": "match_canceled", "gameId": "cs2", "externalMatchId": "mine", "serverId": "srv_1", "reason": "x"}
).encode()
TIMEOUT_S = 300.0


class ListenProcess:
    """A running `matchpod listen`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r'"callbackUrl": "(http://127\.0\.0\.1:[0-9]+/)"', line)
        assert found, line
        self.url = found[1]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].rstrip("/"))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def interrupt(self) -> tuple[int, str, str]:
        """Interrupt it; return the exit code and the rest of its output."""
        self.process.send_signal(signal.SIGINT)
        output, notes = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, output, notes


@contextmanager
def run_listen(folder: Path, *args: str) -> Iterator[ListenProcess]:
    process = subprocess.Popen(
        [sys.executable, "-m", "matchpod", "listen", "--port", "0", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MATCHPOD_DATA_DIR": str(folder)},
    )
    with process:
        try:
            yield ListenProcess(process)
        finally:
            process.kill()


def send(url: str, secret: str = SECRET, authorization: str | None = None) -> Delivery:
    async def attempt() -> Delivery:
        sender = HttpCallbackSender()
        headers = attempt_headers(
            [secret], "cb_1", BODY, timestamp_s=int(time.time()), attempt=1, version="1", authorization=authorization
        )
        try:
            return await sender.send(CallbackRequest(url=url, headers=headers, body=BODY, allow_private=True))
        finally:
            await sender.close()

    return asyncio.run(attempt())


def make_organization(folder: Path, name: str) -> None:
    async def make() -> None:
        db = await SqliteDatabase.open(folder / "matchpod.sqlite3")
        try:
            await migrate(db, VAULT.seal)
            sealed = KeyFileVault.from_file(folder / "secret.key").seal(SECRET)
            await organizations.create(db, Organization(id="org_1", name=name, webhook_secret=sealed, created_at_ms=1))
        finally:
            await db.close()

    asyncio.run(make())


def test_callback_is_printed_and_ctrl_c_ends_the_command_quietly(tmp_path: Path) -> None:
    with run_listen(tmp_path, "--secret", SECRET) as receiver:
        assert send(receiver.url, authorization="Bearer t").status == 204
        line = receiver.line()
        assert "match_canceled  srv_1  external id: mine  reason: x  attempt 1" in line
        assert "Authorization: yes  signature: ok" in line
        assert "Bearer" not in line
        assert send(receiver.url, new_secret(b"x" * 32)).status == 204
        assert "signature: wrong" in receiver.line()
        assert receiver.interrupt() == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_status_can_be_chosen_and_json_output_is_the_body(tmp_path: Path) -> None:
    with run_listen(tmp_path, "--status", "503", "--json") as receiver:
        assert send(receiver.url).status == 503
        assert receiver.line() == BODY.decode() + "\n"
        assert receiver.interrupt() == (0, "", "")


@pytest.mark.parametrize("args", [(), ("--org", "demo")])
def test_secret_of_the_organization_is_read_from_the_data_folder(tmp_path: Path, args: tuple[str, ...]) -> None:
    make_organization(tmp_path, "demo")
    with run_listen(tmp_path, *args) as receiver:
        send(receiver.url)
        assert "signature: ok" in receiver.line()


def test_closed_output_pipe_ends_the_command(tmp_path: Path) -> None:
    with run_listen(tmp_path, "--json") as receiver:
        assert receiver.process.stdout is not None
        receiver.process.stdout.close()
        assert send(receiver.url).status == 204
        assert receiver.process.wait(TIMEOUT_S) == 0
        assert receiver.process.stderr is not None
        assert receiver.process.stderr.read() == ""


def test_port_in_use_gives_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "matchpod", "listen", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=os.environ | {"MATCHPOD_DATA_DIR": str(tmp_path)},
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert str(port) in done.stderr
