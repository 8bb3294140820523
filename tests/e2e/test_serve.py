"""The service as a process: start, output, stop and restart."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from matchpod.app.first_run import EXTERNAL_ID, KEY_FILE
from tests.e2e.serve_process import ServeProcess, end_servers, matchpod, one_region, serving
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.running_service import wait_until

CALL_S = 120.0


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    """A service in its first run, with one server at the speed of a real game."""
    folder = tmp_path_factory.mktemp("shared")
    with serving(folder, config=one_region(folder, speed=1)) as service:
        assert service.url
        yield service
    end_servers(folder)


def create(service: ServeProcess, key: str, *, cvars: str = "", **fields: object) -> dict[str, object]:
    players = [str(76561198000000001 + number) for number in range(10)]
    body = {
        "region": "sandbox",
        "gameType": "cs2",
        "gameSettings": {
            "matchType": "competitive",
            "map": "de_mirage",
            "maxRounds": 4,
            "teams": {"team1": {"players": players[:5]}, "team2": {"players": players[5:]}},
            "customCvars": f"sim_seed 1\n{cvars}",
        },
        **fields,
    }
    response = httpx.post(f"{service.url}/api/v1/matches", json=body, headers=authorization(key), timeout=CALL_S)
    assert response.status_code == 201, response.text
    created = response.json()
    assert isinstance(created, dict)
    return created


def get_server(service: ServeProcess, key: str, server_id: object) -> dict[str, object]:
    response = httpx.get(f"{service.url}/api/v1/servers/{server_id}", headers=authorization(key), timeout=CALL_S)
    assert response.status_code == 200, response.text
    found = response.json()
    assert isinstance(found, dict)
    return found


def cancel(service: ServeProcess, server_id: object) -> None:
    url = f"{service.url}/api/v1/servers/{server_id}/cancel"
    assert httpx.post(url, headers=authorization(service.key), timeout=CALL_S).is_success


def authorization(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_systemd_is_told_when_the_service_is_ready_alive_and_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(CALL_S)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        with serving(tmp_path) as service:
            received = {systemd.recv(1000).decode() for _ in range(4)}
            assert received == {"WATCHDOG=1", f"READY=1\nSTATUS=listening on {service.url}"}
            assert service.stop() == 0
            systemd.settimeout(0)
            while "STOPPING" not in (last := systemd.recv(1000).decode()):
                pass
            assert last == "STOPPING=1\nSTATUS=stopping"


# --- starting -------------------------------------------------------------------------------------------------------


def test_key_is_written_to_a_private_file_only_at_the_first_start_and_an_interrupt_stops_cleanly(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as first:
        key = first.key
        file = tmp_path / "data" / KEY_FILE
        assert file.read_text().count(key) > 1
        assert file.stat().st_mode & 0o777 == 0o600
        (record,) = [record for record in first.records() if "first API key" in str(record["message"])]
        assert record["file"] == str(file)
        assert key not in first.out + first.err
        response = httpx.get(f"{first.url}/api/v1/servers/srv_none", headers=authorization(key))
        assert response.status_code == 404
        file.unlink()
        with httpx.Client() as client:
            assert client.get(f"{first.url}/readyz").status_code == 200  # the connection stays open
            assert first.stop(signal.SIGINT) == 0
        assert [record["message"] for record in first.records()][-2:] == ["stopping", "stopped"]
    with serving(tmp_path) as second:
        assert httpx.get(f"{second.url}/readyz").status_code == 200
        assert second.out == ""
        assert not file.exists()


def test_key_is_printed_on_a_terminal_and_not_written(tmp_path: Path) -> None:
    terminal, stdout = pty.openpty()
    with serving(tmp_path, stdout=stdout) as service:
        os.close(stdout)
        assert service.url
        shown = os.read(terminal, 100_000).decode()
        found = re.search(r"Its API key is shown only once:\s+(mk_live_[\w-]{43})\s", shown)
        assert found
        assert httpx.get(f"{service.url}/api/v1/servers/x", headers=authorization(found[1])).status_code == 404
        assert not (tmp_path / "data" / KEY_FILE).exists()
        assert found[1] not in service.err
    os.close(terminal)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the printed commands use curl")
def test_commands_printed_at_the_first_start_work(shared: ServeProcess) -> None:
    shown = (shared.folder / "data" / KEY_FILE).read_text()
    assert shared.url in shown
    lines = [line.strip() for line in shown.splitlines() if re.match(" +(curl|SERVER=)", line)]
    script = "; echo; ".join(lines)
    done = subprocess.run(script, shell=True, capture_output=True, timeout=CALL_S, check=True)
    created, by_external_id, server = [json.loads(line) for line in done.stdout.splitlines() if line]
    assert created["status"] == "allocating"
    assert by_external_id["externalMatchId"] == EXTERNAL_ID
    assert by_external_id["serverId"] == server["serverId"] == created["serverId"]
    cancel(shared, created["serverId"])
    wait_until(lambda: _slots(shared) == 0, "the server is released")


def _slots(service: ServeProcess) -> int:
    with closing(sqlite3.connect(service.folder / "data" / "matchpod.sqlite3")) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM slots").fetchone()
    return int(count)


def test_second_service_on_the_same_folder_does_not_start(shared: ServeProcess) -> None:
    with serving(shared.folder) as second:
        assert second.wait() == 1
        user = f"Process {shared.process.pid} already uses the data folder {shared.folder}/data"
        assert second.err == f"matchpod: {user}.\n"
    assert shared.process.poll() is None


def test_connection_stays_usable_after_large_posts_with_an_unknown_token(shared: ServeProcess) -> None:
    with httpx.Client(base_url=shared.url) as client:
        for body in (b"x" * 1_000_000, b"x", b"x" * 3_000_000):
            assert client.post("/ingest/logs/unknown", content=body).status_code == 410
            assert client.post("/ingest/reports", content=body).status_code == 401
        assert client.get("/readyz").status_code == 200


def test_operator_lists_shows_and_cancels_a_match(shared: ServeProcess) -> None:
    with CallbackReceiver() as receiver:
        created = create(shared, shared.key, callbackUrl=receiver.url("/"), externalMatchId="mine")
        server_id = str(created["serverId"])
        listed = matchpod(shared.folder, "match", "list").stdout
        assert server_id in listed
        assert "mine" in listed
        canceled = matchpod(shared.folder, "match", "cancel", server_id)
        assert (canceled.returncode, canceled.stderr) == (0, "")
        (received,) = receiver.wait_for("/")
        assert (received.json["eventType"], received.json["reason"]) == ("match_canceled", "canceled_by_operator")
        wait_until(lambda: _slots(shared) == 0, "the server is released")
        shown = json.loads(matchpod(shared.folder, "match", "show", server_id, "--json").stdout)
        assert shown["server"]["status"] == "stopped"
        assert shown["server"]["reason"] == "canceled_by_operator"
        assert [one["status"] for one in shown["callback"]["attempts"]] == [200]


def test_second_signal_ends_the_service_at_once(shared: ServeProcess) -> None:
    """The last test: it ends the service of the others."""
    with CallbackReceiver() as receiver:
        created = create(shared, shared.key, callbackUrl=receiver.configure("/", "hang"))
        cancel(shared, created["serverId"])
        receiver.wait_for("/")  # the callback is in progress and gets no response
        shared.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping" in shared.err, "it stops", within_s=120)
        assert shared.stop() == -signal.SIGTERM
