"""`matchpod listen` as a process: what is sent to it is printed, and it ends quietly."""

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
from matchpod.service.webhook_signature import attempt_headers, new_secret
from matchpod.storage import organizations
from matchpod.storage.migrate import migrate
from matchpod.storage.organizations import Organization

SECRET = new_secret(bytes(range(32)))
BODY = json.dumps(
    {"eventType": "match_canceled", "gameId": "cs2", "externalMatchId": "mine", "serverId": "srv_1", "reason": "x"}
).encode()
LIMIT_S = 300.0


class Listening:
    """A running `matchpod listen`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        told = process.stderr.readline()
        found = re.search(r'"callbackUrl": "(http://127\.0\.0\.1:[0-9]+/)"', told)
        assert found, told
        self.url = found[1]

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1].rstrip("/"))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def interrupt(self) -> tuple[int, str, str]:
        """Exit code, and what else was said."""
        self.process.send_signal(signal.SIGINT)
        said, beside = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, said, beside


@contextmanager
def listening(folder: Path, *words: str) -> Iterator[Listening]:
    process = subprocess.Popen(
        [sys.executable, "-m", "matchpod", "listen", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"MATCHPOD_DATA_DIR": str(folder)},
    )
    with process:
        try:
            yield Listening(process)
        finally:
            process.kill()


def send(url: str, secret: str = SECRET, authorization: str | None = None) -> Delivery:
    async def attempt() -> Delivery:
        sender = HttpCallbackSender(allow_private=True)
        headers = attempt_headers(
            [secret], "cb_1", BODY, timestamp_s=int(time.time()), attempt=1, version="1", authorization=authorization
        )
        try:
            return await sender.send(CallbackRequest(url=url, headers=headers, body=BODY))
        finally:
            await sender.close()

    return asyncio.run(attempt())


def make_organization(folder: Path, name: str) -> None:
    async def make() -> None:
        db = await SqliteDatabase.open(folder / "matchpod.sqlite3")
        try:
            await migrate(db)
            sealed = KeyFileVault.from_file(folder / "secret.key").seal(SECRET)
            await organizations.create(db, Organization(id="org_1", name=name, webhook_secret=sealed, created_at_ms=1))
        finally:
            await db.close()

    asyncio.run(make())


def test_a_callback_of_ours_is_printed_and_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    with listening(tmp_path, "--secret", SECRET) as receiver:
        assert send(receiver.url, authorization="Bearer t").status == 204
        line = receiver.line()
        assert "match_canceled  srv_1  external id: mine  reason: x  attempt 1" in line
        assert "Authorization: yes  signature: ok" in line
        assert "Bearer" not in line
        assert send(receiver.url, new_secret(b"x" * 32)).status == 204
        assert "signature: wrong" in receiver.line()
        assert receiver.interrupt() == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_failures_can_be_tried_and_json_is_the_body(tmp_path: Path) -> None:
    with listening(tmp_path, "--status", "503", "--json") as receiver:
        assert send(receiver.url).status == 503
        assert receiver.line() == BODY.decode() + "\n"
        assert receiver.interrupt() == (0, "", "")


@pytest.mark.parametrize("words", [(), ("--org", "demo")])
def test_the_secret_of_an_organization_is_found_in_the_data_folder(tmp_path: Path, words: tuple[str, ...]) -> None:
    make_organization(tmp_path, "demo")
    with listening(tmp_path, *words) as receiver:
        send(receiver.url)
        assert "signature: ok" in receiver.line()


def test_without_any_secret_nothing_is_checked(tmp_path: Path) -> None:
    with listening(tmp_path) as receiver:
        send(receiver.url)
        assert "signature: not checked" in receiver.line()
    assert list(tmp_path.iterdir()) == []


def test_bad_input_does_not_end_it(tmp_path: Path) -> None:
    with listening(tmp_path) as receiver:
        for rubbish in (b"\x00\xff\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]"):  # fmt: skip
            with socket.create_connection(("127.0.0.1", receiver.port), timeout=LIMIT_S) as connection:
                connection.sendall(rubbish)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
        assert send(receiver.url).status == 204
        assert "match_canceled" in receiver.line()
        code, _, beside = receiver.interrupt()
        assert code == 0
        assert "its body is no callback" in beside
        assert "Traceback" not in beside


def test_a_reader_that_goes_away_ends_it(tmp_path: Path) -> None:
    with listening(tmp_path, "--json") as receiver:
        assert receiver.process.stdout is not None
        receiver.process.stdout.close()
        assert send(receiver.url).status == 204
        assert receiver.process.wait(LIMIT_S) == 0
        assert receiver.process.stderr is not None
        assert receiver.process.stderr.read() == ""


def test_a_port_in_use_is_one_sentence_and_exit_code_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "matchpod", "listen", "--port", str(port)],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=os.environ | {"MATCHPOD_DATA_DIR": str(tmp_path)},
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert str(port) in done.stderr
