"""The service as a process: how it starts, what it shows, how it ends and comes back."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from matchpod.app.first_run import EXTERNAL_ID
from tests.e2e.served import Served, end_servers, matchpod, one_region, serving

MATCH_S = 400.0


@pytest.fixture(autouse=True)
def _no_server_left(tmp_path: Path) -> Iterator[None]:
    yield
    end_servers(tmp_path)


CALL_S = 120.0


def create(served: Served, key: str, *, cvars: str = "", **fields: object) -> dict[str, object]:
    players = [str(76561198000000001 + number) for number in range(10)]
    body = {
        "region": "sandbox",
        "gameType": "cs2",
        "gameSettings": {
            "matchType": "competitive",
            "map": "de_mirage",
            "maxRounds": 4,
            "teams": {"team1": {"players": players[:5]}, "team2": {"players": players[5:]}},
            "customCvars": cvars,
        },
        **fields,
    }
    answer = httpx.post(f"{served.url}/api/v1/matches", json=body, headers=authorization(key), timeout=CALL_S)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert isinstance(made, dict)
    return made


def look(served: Served, key: str, server_id: object) -> dict[str, object]:
    answer = httpx.get(f"{served.url}/api/v1/servers/{server_id}", headers=authorization(key), timeout=CALL_S)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def authorization(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def eventually(is_so: Callable[[], bool], what: str, *, within_s: float = MATCH_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict[str, object]]]]:
    received: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", received
        server.shutdown()
        thread.join()


# --- starting -------------------------------------------------------------------------------------------------------


def test_the_first_start_shows_a_key_once(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        key = first.key
        assert first.out.count(key) > 1
        assert key not in first.err
        answer = httpx.get(f"{first.url}/api/v1/servers/srv_none", headers=authorization(key))
        assert answer.status_code == 404
        assert first.stop() == 0
    with serving(tmp_path) as second:
        assert httpx.get(f"{second.url}/readyz").status_code == 200
        assert second.out == ""


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines are for curl")
def test_the_lines_of_the_first_start_work_as_pasted(tmp_path: Path) -> None:
    with serving(tmp_path, config=one_region(tmp_path)) as served:
        assert served.url in served.out
        lines = [line.strip() for line in served.out.splitlines() if re.match(" +(curl|SERVER=)", line)]
        pasted = "; echo; ".join(lines)
        done = subprocess.run(pasted, shell=True, capture_output=True, timeout=CALL_S, check=True)
        made, by_external_id, server = [json.loads(line) for line in done.stdout.splitlines() if line]
        assert made["status"] == "allocating"
        assert by_external_id["externalMatchId"] == EXTERNAL_ID
        assert by_external_id["serverId"] == server["serverId"] == made["serverId"]
        assert matchpod(tmp_path, "match", "cancel", made["serverId"]).returncode == 0
        eventually(lambda: _slots(served) == 0, "the server is released")


def _slots(served: Served) -> int:
    with closing(sqlite3.connect(served.folder / "data" / "matchpod.sqlite3")) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM slots").fetchone()
    return int(count)


def test_the_data_folder_is_ours_alone(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.url
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_wrong_settings_are_all_told_and_stop_the_start(tmp_path: Path) -> None:
    with serving(tmp_path, log_format="xml", prot="8080") as served:
        assert served.wait() == 2
        assert served.err.splitlines() == [
            'matchpod: MATCHPOD_LOG_FORMAT is "xml"; it must be human or json.',
            "matchpod: MATCHPOD_PROT is no known setting; did you mean MATCHPOD_PORT?",
        ]
        assert not (tmp_path / "data").exists()


def test_a_second_service_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        assert first.url
        with serving(tmp_path) as second:
            assert second.wait() == 1
            assert (
                second.err == f"matchpod: Process {first.process.pid} already serves the data folder {tmp_path}/data.\n"
            )
        assert first.process.poll() is None


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving(tmp_path, port=str(port)) as served:
            assert served.wait() == 1
            assert (
                served.err == f"matchpod: The service cannot listen on 127.0.0.1 port {port}: Address already in use.\n"
            )
            assert served.out == ""


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    assert matchpod(tmp_path, "migrate").returncode == 0
    with closing(sqlite3.connect(tmp_path / "data" / "matchpod.sqlite3")) as db, db:
        db.execute("INSERT INTO schema_versions (version) VALUES (999)")
    with serving(tmp_path) as served:
        assert served.wait() == 1
        assert "version 999" in served.err
        assert served.err.count("\n") == 1


def test_a_key_that_opens_nothing_is_one_sentence_and_no_start(tmp_path: Path) -> None:
    assert matchpod(tmp_path, "orgs", "create", "acme").returncode == 0
    (tmp_path / "data" / "secret.key").unlink()
    with serving(tmp_path) as served:
        assert served.wait() == 1
        assert served.err.startswith(f"matchpod: The key in the file {tmp_path}/data/secret.key does not open what is")
        assert served.err.count("\n") == 1
        assert served.out == ""


def test_a_data_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(tmp_path, data_dir=str(tmp_path / "file" / "data")) as served:
        assert served.wait() == 1
        assert served.err.startswith("matchpod: The data folder ")
        assert served.err.count("\n") == 1


def test_a_stranger_is_told_to_stop_however_much_he_sends_and_the_connection_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path) as served, httpx.Client(base_url=served.url) as client:
        for body in (b"x" * 1_000_000, b"x", b"x" * 3_000_000):
            assert client.post("/ingest/logs/unknown", content=body).status_code == 410
            assert client.post("/ingest/reports", content=body).status_code == 401
        assert client.get("/readyz").status_code == 200


# --- ending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as served, httpx.Client() as client:
        assert client.get(f"{served.url}/readyz").status_code == 200  # the connection stays open
        began = time.monotonic()
        assert served.stop(number) == 0
        assert time.monotonic() - began < 100
        said = [record["message"] for record in served.records()]
        assert said[-2:] == ["stopping", "stopped"]


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with _deaf_receiver() as url, serving(tmp_path, config=one_region(tmp_path)) as served:
        made = create(served, served.key, callbackUrl=url)
        httpx.post(f"{served.url}/api/v1/servers/{made['serverId']}/cancel", headers=authorization(served.key))
        time.sleep(2)  # the callback is under way, and nobody answers it
        served.process.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping" in served.err, "it stops", within_s=120)
        assert served.stop() == -signal.SIGTERM


@contextmanager
def _deaf_receiver() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        yield f"http://127.0.0.1:{deaf.getsockname()[1]}/"


# --- coming back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_match_outlives_the_service_and_is_told_once(tmp_path: Path, number: signal.Signals) -> None:
    with receiver() as (url, received):
        config = one_region(tmp_path, speed=3)  # the match waits long enough for a slow machine
        with serving(tmp_path, config=config) as first:
            key = first.key
            server_id = create(first, key, cvars="sim_speed 30", callbackUrl=url)["serverId"]
            eventually(lambda: look(first, key, server_id)["status"] == "running", "it runs")
            port = first.url.rpartition(":")[2]
            first.stop(number)
        with serving(tmp_path, config=config, port=port) as second:
            eventually(lambda: bool(received), f"the callback comes: {second.err}")
            assert [told["eventType"] for told in received] == ["match_over"]
            assert look(second, key, server_id)["status"] == "stopped"
            eventually(lambda: _slots(second) == 0, "the server is released")
            assert second.stop() == 0
        assert len(received) == 1


# --- the operator's commands ----------------------------------------------------------------------------------------


def test_an_operator_sees_and_cancels_a_match(tmp_path: Path) -> None:
    with receiver() as (url, received), serving(tmp_path, config=one_region(tmp_path, speed=1)) as served:
        server_id = str(create(served, served.key, callbackUrl=url, externalMatchId="mine")["serverId"])
        listed = matchpod(tmp_path, "match", "list")
        assert server_id in listed.stdout
        assert "mine" in listed.stdout
        canceled = matchpod(tmp_path, "match", "cancel", server_id)
        assert (canceled.returncode, canceled.stderr) == (0, "")
        eventually(lambda: bool(received), f"the callback comes: {served.err}")
        assert (received[0]["eventType"], received[0]["reason"]) == ("match_canceled", "canceled_by_operator")
        again = matchpod(tmp_path, "match", "cancel", server_id)
        assert again.returncode == 1
        assert "already ended" in again.stderr
        eventually(lambda: _slots(served) == 0, "the server is released")
        shown = json.loads(matchpod(tmp_path, "match", "show", server_id, "--json").stdout)
        assert shown["server"]["status"] == "stopped"
        assert shown["outcome"]["reason"] == "canceled_by_operator"
        assert [one["status"] for one in shown["callback"]["attempts"]] == [200]
        page = matchpod(tmp_path, "match", "show", server_id).stdout
        assert "match_canceled, canceled_by_operator" in page
        assert "status 200" in page
        assert matchpod(tmp_path, "match", "list", "--status", "running").stdout.count("\n") <= 1


def test_an_unknown_match_is_bad_input(tmp_path: Path) -> None:
    for words in (("show", "srv_none"), ("cancel", "srv_none")):
        done = matchpod(tmp_path, "match", *words)
        assert (done.returncode, done.stderr) == (2, "matchpod: There is no server srv_none.\n")


def test_the_lock_names_the_process(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        assert served.url
        assert (tmp_path / "data" / "matchpod.lock").read_text() == f"{served.process.pid}{os.linesep}"
