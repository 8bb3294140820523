"""How many simulated servers fit on one core? A farm at 30 times speed, posting to a receiver on another core.

`make bench` runs it after the reading of logs. The farm is one process on one core; the receiver only counts. What is
printed of the farm is its CPU time, so a busy machine slows it down but does not falsify the cost of a line.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    # Run as a file, Python looks for imports beside it; `matchpod` is installed, the log clock is ours.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.cs2.log_clock import parse_stamp

SERVERS = 500
SPEED = 30
DETAIL = "+mp_logdetail 3 +mp_logdetail_items 1 +mp_logmoney 1"
"""The whole log, as a match has it."""
SETTLE_S = 15.0
"""People come and warm up meanwhile: 7 simulated minutes."""
MEASURE_S = 30.0

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TOKEN = re.compile(rb"\r\nx-server-instance-token: *(\w+)", re.IGNORECASE)
_STAMP = re.compile(rb"\r\nx-timestamp: *([^\r]+)", re.IGNORECASE)
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Counts:
    """What came so far."""

    lines: int = 0
    posts: int = 0
    size: int = 0
    clocks: dict[bytes, bytes] = field(default_factory=dict)
    """The newest time stamp of each server."""

    def seconds(self) -> dict[bytes, float]:
        """The simulated clock of each server."""
        stamps = {token: parse_stamp(stamp.decode()) for token, stamp in self.clocks.items()}
        return {token: ms / 1000 for token, ms in stamps.items() if ms is not None}


class Receiver(asyncio.Protocol):
    """Counts and answers 200."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while (end := self._waiting.find(b"\r\n\r\n")) >= 0:
            head = self._waiting[:end]
            length, token, stamp = _LENGTH.search(head), _TOKEN.search(head), _STAMP.search(head)
            assert length is not None
            assert token is not None
            assert stamp is not None
            whole = end + 4 + int(length[1])
            if len(self._waiting) < whole:
                return
            self._counts.posts += 1
            self._counts.size += whole
            self._counts.lines += self._waiting.count(b"\n", end + 4, whole)
            self._counts.clocks[token[1]] = stamp[1]
            self._waiting = self._waiting[whole:]
            self._transport.write(_ANSWER)


class FarmProcess:
    """The farm, on a core of its own where there are two."""

    def __init__(self, port: int) -> None:
        words = f"simulate --farm {SERVERS} -port 0 --speed {SPEED} --quiet +rcon_password bench +log on {DETAIL}"
        command = [
            sys.executable,
            "-m",
            "matchpod",
            *words.split(),
            "+logaddress_add_http",
            f"http://127.0.0.1:{port}/",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(self.process.pid, cores[:1])
        if len(cores) > 1:
            os.sched_setaffinity(0, cores[1:])

    def cpu_s(self) -> float:
        """CPU time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mb(self) -> float:
        """Memory it holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure() -> None:
    """Run the farm and print what it cost."""
    loop, counts = asyncio.get_running_loop(), Counts()
    listening = await loop.create_server(lambda: Receiver(counts), "127.0.0.1", 0, backlog=SERVERS)
    farm = FarmProcess(listening.sockets[0].getsockname()[1])
    try:
        await asyncio.sleep(SETTLE_S)
        begin_s, cpu_s, before = loop.time(), farm.cpu_s(), counts.seconds()
        lines, posts, size = counts.lines, counts.posts, counts.size
        await asyncio.sleep(MEASURE_S)
        real_s, used_s, after = loop.time() - begin_s, farm.cpu_s() - cpu_s, counts.seconds()
        passed = [after[token] - clock for token, clock in before.items()]
        speed = sum(passed) / len(passed) / real_s
        made = counts.lines - lines
        print(f"\nfarm: {len(after)} servers in one process on one core, asked for {SPEED}x")
        print(f"{'speed reached':40}{speed:>12.1f}x")
        print(f"{'share of the core':40}{used_s / real_s:>12.0%}")
        print(f"{'log lines a second':40}{made / real_s:>12,.0f}")
        print(f"{'log lines a second of CPU':40}{made / used_s:>12,.0f}")
        print(f"{'servers a core at this speed':40}{len(passed) * real_s / used_s * speed / SPEED:>12,.0f}")
        print(f"{'posts a second':40}{(counts.posts - posts) / real_s:>12,.0f}")
        print(f"{'MB a second':40}{(counts.size - size) / real_s / 1e6:>12.1f}")
        print(f"{'memory a server':40}{farm.resident_mb() / SERVERS * 1000:>10,.0f} KB")
    finally:
        farm.process.terminate()
        farm.process.wait()
        listening.close()


def main() -> None:
    """Measure and print."""
    asyncio.run(measure())


if __name__ == "__main__":
    main()
