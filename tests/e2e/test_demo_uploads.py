"""The process that receives demos: it is started again when it dies, ends with the service, and loses no demo silently."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import httpx

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.server_status import ServerPhase
from matchpod.storage import demos, servers
from matchpod.storage.demos import DemoRow
from tests.e2e.serve_process import ServeProcess, serving
from tests.e2e.service.running_service import wait_until
from tests.server_rows import server_row

SERVER = "srv_1"
HEADERS = {
    "X-Matchpod-Token": f"report-{SERVER}",
    "MatchZy-FileName": "a.dem",
    "MatchZy-MatchId": "27",
    "MatchZy-MapNumber": "0",
}
CALL_S = 120.0


def stored(service: ServeProcess) -> list[DemoRow]:
    async def read() -> list[DemoRow]:
        db = await SqliteDatabase.open(service.folder / "data" / "matchpod.sqlite3")
        try:
            return await demos.of_server(db, SERVER)
        finally:
            await db.close()

    return asyncio.run(read())


def add_match(service: ServeProcess) -> None:
    """Add a match that is over, whose server may still upload."""

    async def add() -> None:
        db = await SqliteDatabase.open(service.folder / "data" / "matchpod.sqlite3")
        try:
            row = server_row(SERVER, phase=ServerPhase.RELEASED, settings=b'{"record_demo":true}')
            await servers.create(db, row, idempotency=None)
        finally:
            await db.close()

    asyncio.run(add())


def receivers(service: ServeProcess) -> list[dict[str, object]]:
    return [one for one in service.records() if one["message"] == "receiving demos"]


def url_of(service: ServeProcess, number: int = 0) -> str:
    """Return the URL for uploads, once the process that receives them was started again this many times."""
    wait_until(lambda: len(receivers(service)) > number, "the process that receives demos")
    return f"http://127.0.0.1:{receivers(service)[number]['port']}/ingest/demos"


def begin_upload(url: str, size: int = 1_000_000) -> socket.socket:
    """Send the head and the first bytes of an upload."""
    host = httpx.URL(url)
    client = socket.create_connection((host.host, host.port or 0), timeout=CALL_S)
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    client.sendall(
        f"POST /ingest/demos HTTP/1.1\r\nHost: x\r\n{head}Content-Length: {size}\r\n\r\n".encode() + b"x" * 999
    )
    return client


def last(service: ServeProcess) -> tuple[str, str | None]:
    row = stored(service)[-1]
    return row.state, row.reason


def test_uploads_survive_their_process_and_end_with_the_service(tmp_path: Path) -> None:
    with serving(tmp_path, upload_port="0") as service:
        assert service.url
        add_match(service)
        url = url_of(service)
        # A whole demo, an unknown sender, a demo of another match, a probe.
        body = os.urandom(700_000)
        assert httpx.post(url, headers=HEADERS, content=body, timeout=CALL_S).status_code == 200
        row = stored(service)[0]
        assert (tmp_path / "data" / "demos" / str(row.storage_key)).read_bytes() == body
        assert httpx.post(url, headers={"X-Matchpod-Token": "x"}, content=b"x", timeout=CALL_S).status_code == 401
        other = {**HEADERS, "MatchZy-MatchId": "28"}
        assert httpx.post(url, headers=other, content=b"x", timeout=CALL_S).status_code == 401
        assert httpx.get(url.replace("/ingest/demos", "/healthz"), timeout=CALL_S).status_code == 200
        # The sender vanishes.
        begin_upload(url).close()
        wait_until(lambda: last(service) == ("missing", "cut"), "the cut upload")
        # The process is killed during an upload, and is started again.
        with begin_upload(url):
            wait_until(lambda: last(service) == ("uploading", None), "the upload")
            os.kill(int(str(receivers(service)[0]["pid"])), signal.SIGKILL)
            wait_until(lambda: last(service) == ("missing", "interrupted"), "the interrupted upload")
        assert httpx.post(url_of(service, 1), headers=HEADERS, content=b"abc", timeout=CALL_S).status_code == 200
        metrics = httpx.get(f"{service.url}/metrics", timeout=CALL_S).text
        assert 'matchpod_demo_uploads_total{outcome="available"} 2\n' in metrics
        assert "matchpod_upload_process_restarts_total 1\n" in metrics
        # The whole service is killed during an upload.
        receiver = int(str(receivers(service)[1]["pid"]))
        client = begin_upload(url)
        wait_until(lambda: last(service) == ("uploading", None), "the upload")
        service.process.kill()
        service.wait()
    with serving(tmp_path, upload_port="0") as service:
        assert service.url
        assert last(service) == ("missing", "interrupted")
        client.close()
        wait_until(lambda: not Path(f"/proc/{receiver}").exists(), "the end of the earlier process")
