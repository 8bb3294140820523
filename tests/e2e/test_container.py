"""The service as in a hardened container: a read-only root, no capabilities, an unknown user, as process 1."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.serve_process import SOURCES, ServeProcess, end_servers, environment, serving
from tests.e2e.service.running_service import free_port_range, wait_until
from tests.read_only_root import UID, hardened, missing_namespaces

LIMIT_S = 120.0

REGION = """
[[regions]]
code = "sandbox"
speed = 100
[regions.fleet]
kind = "process"
ports = "{port}-{port}"
command = ["sh", "-c", "(sleep 1 &); exec \\"$@\\"", "sh", "{python}", "-m", "matchpod", "simulate", "-port", "{{port}}",
    "-ip", "{{ip}}", "+map", "{{map}}", "--players", "{{players}}", "--speed", "{{speed}}", "--seed", "1", "--quiet"]
"""
"""A region whose start script leaves a helper, which is an orphan from then on."""

EXIT_CODES = """
import os, subprocess, sys, time
from matchpod.adapters.init_process import fork_service
fork_service()
for number in range(20):
    subprocess.run(["sh", "-c", "sleep 0.05 &"])
    code = subprocess.run(["sh", "-c", f"exit {number}"]).returncode
    assert code == number, (number, code)
def stat_of(pid):
    try:
        return open(f"/proc/{pid}/stat").read()
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it has ended since /proc was listed
def orphans():
    stats = [stat_of(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 2]
    return [stat for stat in stats if stat and stat.rpartition(")")[2].split()[1] == "1"]
deadline = time.monotonic() + 60
while orphans():
    assert time.monotonic() < deadline, orphans()
    time.sleep(0.05)
sys.exit(42)
"""

INTERRUPTS = """
import signal, sys, time
from matchpod.adapters.init_process import fork_service
fork_service()
received = []
signal.signal(signal.SIGINT, lambda *_: received.append(1))
print("waiting", flush=True)
while not received:
    time.sleep(0.02)
time.sleep(1)
sys.exit(len(received))
"""
"""Exits with the number of interrupts that it got."""

LARGE_SORT = """
import asyncio, os, sys
from pathlib import Path
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.ports import Statement
async def main():
    os.chdir("/")
    db = await SqliteDatabase.open(Path(sys.argv[1]) / "sorted.sqlite3")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
    await db.write([Statement("CREATE TABLE t (a TEXT)"),
                    Statement(f"{numbers} INSERT INTO t SELECT hex(randomblob(40)) FROM n"),
                    Statement("CREATE INDEX by_a ON t (a)")])
    print(len(await db.read("SELECT a FROM t ORDER BY a || 'x'")))
    await db.close()
asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def _namespaces(tmp_path: Path) -> Iterator[None]:
    if reason := missing_namespaces(tmp_path):
        pytest.skip(reason)
    yield
    end_servers(tmp_path)


def run_hardened(folder: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        hardened(folder, sys.executable, *command),
        capture_output=True,
        text=True,
        env=environment(folder, settings) | SOURCES,
        cwd=folder,
        timeout=LIMIT_S,
        check=False,
    )


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def zombies_below(pid: int) -> list[str]:
    found = [Path(f"/proc/{child}/stat").read_text() for child in children(pid)]
    dead = [stat for stat in found if stat.rpartition(")")[2].split()[0] == "Z"]
    return dead + [stat for child in children(pid) for stat in zombies_below(child)]


def create_match(service: ServeProcess, key: str) -> str:
    body = {
        "region": "sandbox",
        "gameType": "cs2",
        "gameSettings": {"matchType": "competitive", "map": "de_mirage", "maxRounds": 4},
    }
    response = httpx.post(
        f"{service.url}/api/v1/matches", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=LIMIT_S
    )
    assert response.status_code == 201, response.text
    return str(response.json()["serverId"])


def test_service_runs_with_only_its_data_folder_writable_and_reaps_as_process_1(tmp_path: Path) -> None:
    (port,) = free_port_range(1)
    config = tmp_path / "settings.toml"
    config.write_text(REGION.format(port=port, python=sys.executable))
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    prefix = hardened(data, has_own_processes=True)
    with serving(tmp_path, prefix=prefix, config=str(config)) as service:
        server_id, headers = create_match(service, service.key), {"Authorization": f"Bearer {service.key}"}
        url = f"{service.url}/api/v1/servers/{server_id}"
        wait_until(lambda: httpx.get(url, headers=headers, timeout=LIMIT_S).json()["status"] == "running", "it runs")
        (init,) = children(service.process.pid)
        assert httpx.post(f"{url}/cancel", headers=headers, timeout=LIMIT_S).is_success
        wait_until(lambda: any(one["message"] == "server released" for one in service.records()), "it is released")
        wait_until(lambda: not zombies_below(init), lambda: f"zombies: {zombies_below(init)}")
        assert len(children(init)) == 1, "only the service is left"
        os.kill(init, signal.SIGTERM)
        assert service.wait() == 0
        assert service.records()[-1]["message"] == "stopped"


def test_process_1_leaves_the_exit_codes_of_its_service_alone(tmp_path: Path) -> None:
    command = hardened(tmp_path, sys.executable, "-c", EXIT_CODES, has_own_processes=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (42, "")


def test_process_1_reports_the_signal_that_ended_its_service(tmp_path: Path) -> None:
    script = "import os; from matchpod.adapters.init_process import fork_service as f; f(); os.kill(os.getpid(), 9)"
    command = hardened(tmp_path, sys.executable, "-c", script, has_own_processes=True)
    assert subprocess.run(command, timeout=LIMIT_S, check=False).returncode == 128 + 9


def test_interrupt_of_a_terminal_reaches_the_service_once(tmp_path: Path) -> None:
    terminal, inside = pty.openpty()
    command = hardened(tmp_path, sys.executable, "-c", INTERRUPTS, has_own_processes=True)
    with subprocess.Popen(["setsid", "--ctty", "--wait", *command], stdin=inside, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"waiting\n"
            os.write(terminal, b"\x03")
            assert process.wait(LIMIT_S) == 1
        finally:
            process.kill()
            os.close(inside)
            os.close(terminal)


def test_large_sort_needs_no_folder_for_temporary_files(tmp_path: Path) -> None:
    done = run_hardened(tmp_path, "-c", LARGE_SORT, str(tmp_path))
    assert (done.stdout, done.stderr) == ("100000\n", "")


def test_database_url_without_a_user_is_reported_if_the_process_has_none_either(tmp_path: Path) -> None:
    named = dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME", "PGUSER"), "")
    (tmp_path / "data").mkdir(mode=0o700)
    done = subprocess.run(
        hardened(tmp_path, sys.executable, "-m", "matchpod", "serve"),
        capture_output=True,
        text=True,
        env=environment(tmp_path, {"database_url": "postgresql://127.0.0.1:1/x", "secret_key": "A" * 43 + "="}) | named,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        f"matchpod: MATCHPOD_DATABASE_URL has no user name, and the user of this process (uid {UID}) has no name"
        " either. Write the URL as postgresql://user@host/name.\n",
    )


def test_data_folder_of_another_user_is_named_with_both_users(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o500)
    done = run_hardened(tmp_path, "-m", "matchpod", "serve")
    data.chmod(0o700)
    assert done.returncode == 1
    assert done.stderr == (
        f"matchpod: The data folder {data} cannot be written by this process (uid {UID}, gid {UID}): it belongs to"
        f" uid {UID}, gid {UID} with mode 500. Run the service as its owner, or give it to this user:"
        f" chown {UID}:{UID} {data}\n"
    )


def test_data_folder_on_a_read_only_file_system_is_reported_as_such(tmp_path: Path) -> None:
    for name in ("other", "data"):
        (tmp_path / name).mkdir(mode=0o700)
    done = run_hardened(tmp_path / "other", "-m", "matchpod", "serve", data_dir=str(tmp_path / "data"))
    assert done.returncode == 1
    assert done.stderr == (
        f"matchpod: The data folder {tmp_path}/data cannot be written: the file system is read-only.\n"
    )
