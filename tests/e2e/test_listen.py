"""`matchpod listen` as a process: it prints callbacks and ends quietly."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from matchpod.adapters.callback_sender import HttpCallbackSender
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.adapters.vault import KeyFileVault
from matchpod.ports import CallbackRequest, Delivery
from matchpod.service.access.webhook_signature import attempt_headers, new_secret
from matchpod.storage import organizations
from matchpod.storage.migrate import migrate
from matchpod.storage.organizations import Organization
from tests import imported_service
from tests.imported_service import ROOT
from tests.vaults import VAULT

SECRET = new_secret(bytes(range(32)))
BODY = json.dumps(
    {"eventType": "match_canceled", "gameId": "cs2", "externalMatchId": "mine", "serverId": "srv_1", "reason": "x"}
).encode()
TIMEOUT_S = 300.0


class ListenProcess:
    """A running `matchpod listen`."""

    def __init__(self, process: imported_service.Process, output: TextIO, notes: TextIO) -> None:
        self.process = process
        self.output = output
        self.notes = notes
        line = notes.readline()
        found = re.search(r'"callbackUrl": "(http://127\.0\.0\.1:[0-9]+/)"', line)
        assert found, line
        self.url = found[1]

    def interrupt(self) -> tuple[int, str, str]:
        """Interrupt it; return the exit code and the rest of its output."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_S), self.output.read(), self.notes.read()


@contextmanager
def run_listen(folder: Path, *args: str) -> Iterator[ListenProcess]:
    with ExitStack() as stack:
        ends = [os.pipe() for _ in range(2)]
        output, notes = (stack.enter_context(open(end, encoding="utf-8")) for end, _ in ends)
        process = imported_service.start(
            ["listen", "--port", "0", *args], env=environment(folder), cwd=ROOT, stdout=ends[0][1], stderr=ends[1][1]
        )
        for _, end in ends:
            os.close(end)
        try:
            yield ListenProcess(process, output, notes)
        finally:
            process.kill()
            process.wait(TIMEOUT_S)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "MATCHPOD_DATA_DIR": str(folder)}


def send(url: str, authorization: str | None = None) -> Delivery:
    async def attempt() -> Delivery:
        sender = HttpCallbackSender()
        headers = attempt_headers(
            [SECRET], "cb_1", BODY, timestamp_s=int(time.time()), attempt=1, version="1", authorization=authorization
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


@pytest.mark.parametrize("args", [(), ("--org", "demo")])
def test_callback_is_printed_and_ctrl_c_ends_the_command_quietly(tmp_path: Path, args: tuple[str, ...]) -> None:
    """Signatures are checked with the secret of the organization in the data folder."""
    make_organization(tmp_path, "demo")
    with run_listen(tmp_path, *args) as receiver:
        assert send(receiver.url, authorization="Bearer t").status == 204
        line = receiver.output.readline()
        assert "match_canceled  srv_1  external id: mine  reason: x  attempt 1" in line
        assert "Authorization: yes  signature: ok" in line
        assert "Bearer" not in line
        assert receiver.interrupt() == (0, "", "")


def test_closed_output_pipe_ends_the_command_which_needs_no_data_folder(tmp_path: Path) -> None:
    with run_listen(tmp_path, "--secret", SECRET, "--status", "503", "--json") as receiver:
        assert send(receiver.url).status == 503
        assert receiver.output.readline() == BODY.decode() + "\n"
        receiver.output.close()
        assert send(receiver.url).status == 503
        assert receiver.process.wait(TIMEOUT_S) == 0
        assert receiver.notes.read() == ""
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_gives_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        done = imported_service.run(
            ["listen", "--port", str(port)], env=environment(tmp_path), cwd=ROOT, timeout=TIMEOUT_S
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert str(port) in done.stderr
