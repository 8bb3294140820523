"""A person checks a region of rented servers on the command line, and changes the list while the service runs."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from tests.contract.simulator_process import PASSWORD, SimulatorProcess
from tests.e2e.serve_process import ServeProcess, matchpod, serving
from tests.waiting import WITHIN_S


def write_list(file: Path, *servers: tuple[str, str]) -> None:
    listed = ", ".join(f'{{ address = "{address}", rcon_password = "{password}" }}' for address, password in servers)
    file.write_text(f'[[regions]]\ncode = "cup"\nspeed = 10\n[regions.fleet]\nkind = "static"\nservers = [{listed}]\n')


def forget_check(folder: Path) -> None:
    """Forget the last check, which the next one would wait after."""
    with closing(sqlite3.connect(folder / "data" / "matchpod.sqlite3")) as database, database:
        database.execute("DELETE FROM region_checks")


def wait_for_log(service: ServeProcess, message: str) -> dict[str, object]:
    """Wait for a record of the service's log."""
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        for record in service.records():
            if record["message"] == message:
                return record
        time.sleep(0.05)
    raise AssertionError(f"no {message!r}:\n{service.err}")


def test_region_is_checked_and_its_list_changed_while_the_service_runs(tmp_path: Path) -> None:
    file = tmp_path / "matchpod.toml"
    with SimulatorProcess("--speed", "10") as good, SimulatorProcess("--speed", "10", "--fault", "old_build") as old:
        write_list(file, (good.address, PASSWORD), (old.address, PASSWORD))
        with serving(tmp_path / "service", config=str(file)) as service:
            assert service.url
            folder = tmp_path / "service"
            checked = matchpod(folder, "regions", "check", "cup", config=str(file))
            assert checked.returncode == 1, checked.stderr
            assert f"{good.address}: ok\n" in checked.stdout
            assert f"{old.address}: fault\n" in checked.stdout
            assert "-> Update the server" in checked.stdout
            assert "2 servers checked, 1 with a fault" in checked.stderr

            unknown = matchpod(folder, "regions", "check", "nowhere", config=str(file))
            assert (unknown.returncode, unknown.stdout) == (2, "")
            assert "Known regions: cup." in unknown.stderr

            file.write_text("[[regions]]\ncode = 7\n")
            service.process.send_signal(signal.SIGHUP)
            assert "code" in str(wait_for_log(service, "settings not reloaded")["error"])
            write_list(file, (good.address, PASSWORD))
            service.process.send_signal(signal.SIGHUP)
            assert wait_for_log(service, "server list reloaded")["removed"] == [old.address]

            forget_check(folder)
            again = matchpod(folder, "regions", "check", "cup", "--json", config=str(file))
            assert again.returncode == 0, again.stderr
            found = json.loads(again.stdout)
            assert [(one["server"], one["state"]) for one in found["servers"]] == [(good.address, "ok")]
            assert service.stop() == 0
