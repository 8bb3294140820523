"""The receivers in docs/webhooks.md check signatures and recognize what arrives again, as real programs."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from matchpod.service.access.webhook_signature import attempt_headers, new_secret

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "webhooks.md").read_text("utf-8")
SECRET, OLD_SECRET = new_secret(bytes(range(32))), new_secret(bytes(range(1, 33)))
TYPESCRIPT = "typescript@5.9.3"
STRIPS_TYPES = (22, 18)
"""The first version of Node that runs TypeScript by itself."""
TIMEOUT_S = 120.0
TRANSPILE = (
    "const ts = require('typescript'), fs = require('fs');"
    "const options = { module: ts.ModuleKind.ES2022, target: ts.ScriptTarget.ES2022 };"
    "fs.writeFileSync('receiver.mjs', ts.transpile(fs.readFileSync('receiver.ts', 'utf8'), options));"
)


def block(language: str) -> str:
    """The program in this language on the page."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[int]:
    """Run a receiver, and return its port once it listens."""
    port = free_port()
    environment = {**os.environ, "SECRET": SECRET, "PORT": str(port), "DATABASE": str(folder / "events.sqlite3")}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            within(lambda: is_listening(port) or process.poll() is not None)
            assert process.poll() is None, (folder / "output").read_text("utf-8")
            yield port
        finally:
            process.kill()
            process.wait()


def within(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def send(port: int, delivery: str, sequence: int, event: str, *secrets: str, age_s: int = 0, cut: int = 0) -> int:
    """Send a delivery as the service does, and return the status of the answer."""
    body = json.dumps({"type": event, "sequence": sequence, "serverId": "srv_1", "data": {"name": "Ä"}}).encode()
    stamp = int(time.time()) - age_s
    headers = attempt_headers(secrets or [SECRET], delivery, body, timestamp_s=stamp, attempt=1, version="1")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", "/", body[: len(body) - cut], headers)
        return connection.getresponse().status
    finally:
        connection.close()


def check(port: int) -> None:
    """Send deliveries late, twice, forged and with two signatures."""
    assert send(port, "msg_2", 8, "map.ended") == 204
    assert send(port, "msg_1", 5, "match.live") == 204
    assert send(port, "msg_2", 8, "map.ended") == 204
    assert send(port, "msg_3", 9, "match.ended", OLD_SECRET, SECRET) == 204
    assert send(port, "msg_4", 10, "match.ruled", OLD_SECRET) == 401
    assert send(port, "msg_5", 11, "match.ruled", age_s=600) == 401
    assert send(port, "msg_6", 12, "match.ruled", cut=1) == 401


def test_receiver_in_python_keeps_each_event_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "receiver.py").write_text(block("python"), "utf-8")
    with running([sys.executable, "receiver.py"], tmp_path) as port:
        check(port)
    with sqlite3.connect(tmp_path / "events.sqlite3") as db:
        found = db.execute("SELECT type FROM events WHERE server = 'srv_1' ORDER BY sequence").fetchall()
    assert found == [("match.live",), ("map.ended",), ("match.ended",)]


def test_receiver_in_typescript_keeps_each_event_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "receiver.ts").write_text(block("ts"), "utf-8")
    with running(typescript(tmp_path), tmp_path) as port:
        check(port)
        last = (tmp_path / "output").read_text("utf-8").splitlines()[-1]
    assert json.loads(last) == ["match.live", "map.ended", "match.ended"]


def typescript(folder: Path) -> list[str]:
    """The command that runs the receiver: with Node alone, or compiled by the compiler from npm."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        pytest.skip("Node is not installed, which runs the receiver in TypeScript.")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, version.strip().removeprefix("v").split(".")[:2])) >= STRIPS_TYPES:
        return [node, "receiver.ts"]
    kept = Path("/var/tmp" if sys.platform == "linux" else tempfile.gettempdir()) / f"matchpod-typescript-{os.getuid()}"
    if not (kept / "node_modules" / "typescript").is_dir():
        kept.mkdir(mode=0o700, exist_ok=True)
        install = [npm or "npm", "install", "--no-audit", "--no-fund", TYPESCRIPT]
        done = None if npm is None else subprocess.run(install, cwd=kept, capture_output=True, check=False, timeout=300)
        if done is None or done.returncode != 0:
            pytest.skip("This Node runs no TypeScript, and npm cannot install its compiler.")
    modules = {**os.environ, "NODE_PATH": str(kept / "node_modules")}
    subprocess.run([node, "-e", TRANSPILE], cwd=folder, env=modules, check=True)
    return [node, "receiver.mjs"]
