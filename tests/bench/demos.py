"""Upload demos of 200 MB, several at once, and measure memory, other callers and the state of each.

A service with a match in its database runs as a process. For a while a caller polls a server, once per 5 ms, without
uploads, then with them, and again without. Each upload is checked by its checksum. At last the receiving process is
killed during an upload. 36 MB/s, the default, are the demos of 500 maps an hour.

    .venv/bin/python -m tests.bench.demos --uploads 4 --rate 9 --storage folder

`--storage s3` starts moto's server in a process of its own, a stand-in for an S3 service, which keeps all in memory.
The clients run beside the service, on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.core.server_status import ServerPhase
from matchpod.storage import servers
from tests.bench.http_load import Caller
from tests.bench.pinned_process import give_way
from tests.chaos.http_messages import format_request
from tests.chaos.stores import Rows, SqliteStore
from tests.e2e.serve_process import ServeProcess, serving
from tests.s3_server import BUCKET, CREDENTIALS
from tests.server_rows import server_row

MB = 1_000_000
POLL_S = 0.005
BLOCK_BYTES = 256 * 1024
RECORDED = b'{"record_demo":true}'
CALL_S = 200.0


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process, without pages of files."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024


BLOCK = random.Random(1).randbytes(BLOCK_BYTES)


def checksum(size: int) -> str:
    """Return the checksum of a demo of this size."""
    digest = hashlib.sha256()
    for start in range(0, size, BLOCK_BYTES):
        digest.update(BLOCK[: size - start])
    return digest.hexdigest()


def upload(url: str, name: str, size: int, mb_per_s: float) -> int:
    """Upload a demo at a steady rate; return the status. It is cheap: the clients run on the same cores."""
    at = httpx.URL(url)
    head = f"POST {at.path} HTTP/1.1\r\nHost: x\r\nX-Matchpod-Token: report-{name}\r\nContent-Length: {size}\r\n"
    head += f"MatchZy-FileName: {name}.dem\r\nMatchZy-MapNumber: 0\r\nConnection: close\r\n\r\n"
    with socket.create_connection((at.host, at.port or 80), timeout=CALL_S) as client:
        client.sendall(head.encode())
        began = time.monotonic()
        for start in range(0, size, BLOCK_BYTES):
            client.sendall(BLOCK[: size - start])
            time.sleep(max(0.0, start / MB / mb_per_s - (time.monotonic() - began)))
        return int(client.recv(64).split()[1])


def shown(times: list[float]) -> str:
    cuts = statistics.quantiles(times, n=100)
    return f"{statistics.median(times):6.2f} {cuts[98]:7.2f} {max(times):8.1f}   ({len(times)})"


@contextlib.asynccontextmanager
async def database(service: ServeProcess) -> AsyncIterator[SqliteDatabase]:
    db = await SqliteDatabase.open(service.folder / "data" / "matchpod.sqlite3")
    try:
        yield db
    finally:
        await db.close()


async def add_matches(service: ServeProcess, number: int) -> None:
    async with database(service) as db:
        ((org_id,),) = await db.read("SELECT id FROM organizations")
        for one in range(number):
            row = server_row(f"srv_{one}", org_id=str(org_id), phase=ServerPhase.RELEASED, settings=RECORDED)
            await servers.create(db, row, idempotency=None)


async def rows(service: ServeProcess) -> Rows:
    query = "SELECT server_id, state, reason, sha256, received_bytes FROM demos ORDER BY server_id"
    return await SqliteStore(service.folder / "data").rows(query)


async def measure(service: ServeProcess, upload_url: str, options: argparse.Namespace) -> None:
    await add_matches(service, options.uploads + 1)
    main = service.process.pid
    receiver = int(Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])
    request = format_request("GET", "/api/v1/servers/srv_0", {"Authorization": f"Bearer {service.key}"})
    caller = Caller(httpx.URL(service.url).port or 80, [request], pause_s=POLL_S)
    polling = asyncio.create_task(caller.run())
    size = options.megabytes * MB
    await asyncio.sleep(3)
    caller.take()
    print(f"{'GET server, ms':24} median     p99      max   (requests)")
    before = (memory_mib(main), memory_mib(receiver))
    await asyncio.sleep(options.seconds)
    print(f"{'without uploads':24} {shown(caller.take())}")
    command = [sys.executable, "-m", "tests.bench.demos", "--client", upload_url]
    command += ["--uploads", str(options.uploads), "--megabytes", str(options.megabytes), "--rate", str(options.rate)]
    began = time.perf_counter()
    clients = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, preexec_fn=give_way)
    ends = asyncio.create_task(clients.communicate())
    peak = [0.0, 0.0]
    while not ends.done():
        await asyncio.sleep(0.1)
        for number, pid in enumerate((main, receiver)):
            peak[number] = max(peak[number], memory_mib(pid))
    took = time.perf_counter() - began
    print(f"{'with uploads':24} {shown(caller.take())}")
    await asyncio.sleep(options.seconds)
    print(f"{'without, afterwards':24} {shown(caller.take())}")
    after = (memory_mib(main), memory_mib(receiver))
    sent = (await ends)[0].decode().split()
    assert set(sent) == {"200"}, f"uploads were refused: {sent}"
    right = checksum(size)
    total = options.uploads * size
    print(f"\n{options.uploads} uploads of {options.megabytes} MB at once: {took:.1f} s, {total / MB / took:.0f} MB/s")
    for number, name in enumerate(("the service", "the receiving process")):
        print(
            f"{name:24} {before[number]:.0f} MiB before, {peak[number]:.0f} at most,"
            f" {after[number]:.0f} afterwards (anonymous memory)"
        )
    stored = {str(row[0]): row for row in await rows(service)}
    good = sum(row[1] == "available" and row[3] == right for row in stored.values())
    print(f"available with the checksum of what was sent: {good} of {options.uploads}; statuses {sorted(set(sent))}")
    await kill_receiver(service, upload_url, receiver, options.uploads, size)
    polling.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await polling


async def kill_receiver(service: ServeProcess, url: str, receiver: int, number: int, size: int) -> None:
    name = f"srv_{number}"
    sending = asyncio.create_task(asyncio.to_thread(upload, url, name, size, 8.0))
    while not [one for one in await rows(service) if one[0] == name]:
        await asyncio.sleep(0.1)
    os.kill(receiver, signal.SIGKILL)
    with contextlib.suppress(OSError, IndexError):
        await sending
    for _ in range(100):
        await asyncio.sleep(0.1)
        (row,) = [one for one in await rows(service) if one[0] == name]
        if row[1] == "missing":
            break
    print(f"kill -9 during an upload: {row[1]}, {row[2]}; {row[4]} bytes were recorded")
    for _ in range(100):
        with contextlib.suppress(OSError, IndexError):
            print(f"the next upload after it: status {await asyncio.to_thread(upload, url, name, MB, 99.0)}")
            return
        await asyncio.sleep(0.1)


def run_clients(options: argparse.Namespace) -> None:
    names = [f"srv_{number}" for number in range(options.uploads)]
    with ThreadPoolExecutor(len(names)) as threads:
        sent = [threads.submit(upload, options.client, name, options.megabytes * MB, options.rate) for name in names]
        for one in sent:
            print(one.result())


@contextlib.contextmanager
def storage(kind: str) -> Iterator[str]:
    """Yield the URL of a storage; empty for the default folder."""
    if kind == "folder":
        yield ""
        return
    os.environ.update(CREDENTIALS)
    program = "import sys; from tests.s3_server import s3_server\n"
    program += "with s3_server() as u: print(u, flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stdin=pipe, preexec_fn=give_way) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        url = server.stdout.readline().decode().strip()
        yield f"s3://{BUCKET}/bench?endpoint={url}&region=us-east-1"
        server.stdin.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uploads", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=9.0, help="MB/s of each upload")
    parser.add_argument("--storage", choices=("folder", "s3"), default="folder")
    parser.add_argument("--client", help="only upload, to this URL")
    options = parser.parse_args()
    if options.client:
        run_clients(options)
        return
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as folder,
        storage(options.storage) as url,
        serving(Path(folder), upload_port="0", demo_storage=url) as service,
    ):
        assert service.url
        deadline = time.monotonic() + 60
        while not (found := [one for one in service.records() if one["message"] == "receiving demos"]):
            assert time.monotonic() < deadline, service.err
            time.sleep(0.1)
        asyncio.run(measure(service, f"http://127.0.0.1:{found[0]['port']}/ingest/demos", options))


if __name__ == "__main__":
    main()
