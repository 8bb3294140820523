"""Servers of a process fleet in folders of their own: many at once, after a crash, and what stops them from starting."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gameserver_tests.game_folder import METAMOD_LINE, fingerprint, make_installation
from matchpod.adapters.fleets import instance_folders
from matchpod.adapters.fleets.instance_folders import InstanceFolders, InstanceOptions
from matchpod.adapters.fleets.process import ProcessFleet
from matchpod.adapters.fleets.process_record import RecordFolder
from matchpod.ports import FleetError
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract import fleet_servers
from tests.contract.fleet_servers import order, process_fleet, recorded_pid, running_pids
from tests.contract.simulator_process import PASSWORD, free_ports
from tests.effort import sized
from tests.waiting import until

SERVERS = sized(3, 20)
OWNER = "mp-1"
FD_SETSIZE = 1024
"""How many descriptors select() knows."""

folder = fleet_servers.folder

GAME = f"""\
#!{sys.executable} -S
import os, socket, sys
port, cfg, tv_port = sys.argv[1:]
plugin = "csgo/addons/counterstrikesharp"
written = (
    *("csgo/cfg/banned_user.cfg", "csgo/cfg/server.cfg", "csgo/logs/1.log", "csgo/MatchZy/1.dem", "csgo/steam.inf"),
    *("csgo/MatchZyDataBackup/matchzy_1_0_round01.json", "csgo/MatchZy_Stats/1/1.csv", "csgo/backup_round01.txt"),
    *(f"{{plugin}}/logs/1.txt", f"{{plugin}}/configs/core.json", f"{{plugin}}/plugins/MatchZy/matchzy.db"),
    *("csgo/maps/soundcache/de_nuke.cache", "bin/linuxsteamrt64/steam_appid.txt", "core/new", "csgo/maps/new.vpk"),
    *(os.path.expanduser("~/.steam/registry.vdf"), "bin/linuxsteamrt64/steamapps/workshop/new.vpk"),
)
for path in written:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(port)
with open(f"csgo/cfg/{{cfg}}") as file:
    print(file.read(), tv_port, os.environ["LD_LIBRARY_PATH"], open("csgo/gameinfo.gi").read(), flush=True)
listening = socket.create_server(("127.0.0.1", int(port)))
while True:
    listening.accept()[0].close()
"""
"""A program in place of the game, which writes wherever the game and its plugins do, and shows what it finds."""


def installed(tmp_path: Path) -> Path:
    return tmp_path / "cs2" if (tmp_path / "cs2").exists() else make_installation(tmp_path / "cs2", GAME)


def instances(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "servers")) if (tmp_path / "servers").exists() else []


def fleet_of(folder: Path, tmp_path: Path, ports: tuple[int, ...] = (), **changes: Any) -> ProcessFleet:
    """Return a fleet whose servers run in folders of their own; `changes` may be of its options or of its folders."""
    ports = ports or free_ports(1)
    own = {name: changes.pop(name) for name in ("addons", "instances_dir", "install_dir") if name in changes}
    options = InstanceOptions(
        install_dir=installed(tmp_path), instances_dir=tmp_path / "servers", addons=("metamod", "MatchZy")
    )
    return process_fleet(
        folder,
        ports,
        command=("{game}/bin/linuxsteamrt64/cs2", "{port}", "{cfg}", "{tv_port}"),
        tv_ports=tuple(port + 1000 for port in ports),
        instances=msgspec.structs.replace(options, **own),
        owner=OWNER,
        **changes,
    )


async def test_many_servers_at_once_write_nothing_into_the_installation_and_leave_nothing(
    folder: Path, tmp_path: Path
) -> None:
    before = fingerprint(installed(tmp_path))
    ports = free_ports(SERVERS)
    fleet = fleet_of(folder, tmp_path, ports, steam_tokens=tuple(f"TOKEN{number}" for number in range(SERVERS)))
    orders = [order(fleet, f"srv_{number}", number) for number in range(SERVERS)]
    await asyncio.gather(*map(fleet.allocate, orders))
    assert instances(tmp_path) == sorted(f"{OWNER}.srv_{number}" for number in range(SERVERS))
    for number, port in enumerate(ports):
        own = tmp_path / "servers" / f"{OWNER}.srv_{number}"
        assert (own / "game/csgo/MatchZyDataBackup/matchzy_1_0_round01.json").read_text() == str(port)
        shown = RecordFolder(folder).log_tail(f"srv_{number}", 10_000).decode()
        assert f'rcon_password "{PASSWORD}"\nsv_setsteamaccount "TOKEN{number}"\n {port + 1000} {own}/game/bin' in shown
        assert METAMOD_LINE in shown
        assert PASSWORD.encode() not in Path(f"/proc/{recorded_pid(folder, f'srv_{number}')}/cmdline").read_bytes()
    assert fingerprint(installed(tmp_path)) == before
    await asyncio.gather(*(fleet.release(each.server_id, each.slot) for each in orders))
    assert instances(tmp_path) == []
    assert fingerprint(installed(tmp_path)) == before


async def test_what_a_crash_left_is_removed_at_the_next_start_but_no_folder_in_use_or_of_others(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ports = free_ports(3)
    fleet = fleet_of(folder, tmp_path, ports)
    orders = [order(fleet, f"srv_{number}", number) for number in range(3)]
    await asyncio.gather(*map(fleet.allocate, orders))
    (tmp_path / "servers" / "mp-12.srv_9").mkdir()
    pids = [recorded_pid(folder, f"srv_{number}") for number in range(3)]
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    RecordFolder(folder).remove("srv_1")  # and the data folder was lost
    assert len(instances(tmp_path)) == 4
    caplog.set_level(logging.INFO)
    following = asyncio.create_task(fleet_of(folder, tmp_path, ports).follow(lambda: None))
    await until(lambda: caplog.text.count("game server removed") == 2)
    following.cancel()
    assert instances(tmp_path) == [f"{OWNER}.srv_2", "mp-12.srv_9"]
    assert running_pids(folder) == pids[2:]
    assert [(record.message, record.folder) for record in caplog.records if hasattr(record, "folder")] == [
        ("folder of an ended game server removed", f"{OWNER}.srv_0"),
        ("folder of an ended game server removed", f"{OWNER}.srv_1"),
    ]
    for each in orders:
        await fleet.release(each.server_id, each.slot)
    assert instances(tmp_path) == ["mp-12.srv_9"]


async def test_service_with_more_than_a_thousand_open_files_starts_servers(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path)
    with ExitStack() as streams:
        while streams.enter_context(Path(os.devnull).open("rb")).fileno() < FD_SETSIZE:
            pass
        await fleet.allocate(order(fleet))
    assert instances(tmp_path) == [f"{OWNER}.srv_1"]
    await fleet.release("srv_1", fleet.slots[0])


async def test_server_that_crashed_is_started_again_in_a_new_folder(folder: Path, tmp_path: Path) -> None:
    fleet = fleet_of(folder, tmp_path)
    await fleet.allocate(order(fleet))
    left = tmp_path / "servers" / f"{OWNER}.srv_1" / "game/csgo/left"
    left.touch()
    os.kill(recorded_pid(folder), signal.SIGKILL)
    await fleet.wait_gone("srv_1", fleet.slots[0])
    await fleet.allocate(order(fleet))
    assert instances(tmp_path) == [f"{OWNER}.srv_1"]
    assert not left.exists()
    await fleet.release("srv_1", fleet.slots[0])
    assert instances(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"addons": ("Retakes",)}, "the server cannot be started: the installation in .* has no addon Retakes"),
        ({"install_dir": Path("/nowhere")}, "there is no installation of the game in /nowhere: it has no file"),
        ({"instances_dir": Path("/dev/null/servers")}, "cannot be made: .*Not a directory"),
    ],
)
async def test_server_without_a_folder_is_not_started_and_the_reason_is_said(
    folder: Path, tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    fleet = fleet_of(folder, tmp_path, **changes)
    with pytest.raises(FleetError, match=sentence) as failed:
        await fleet.allocate(order(fleet))
    assert not is_machine_fault(failed.value)
    assert running_pids(folder) == []
    assert instances(tmp_path) == []


def stand_in(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let a program stand in for the one that makes folders; its argument is where it reports."""

    def run(_folders: InstanceFolders, _server_id: str, _cfg_name: str, report: int) -> Iterator[str]:
        yield from (sys.executable, "-S", "-c", program, str(report))

    monkeypatch.setattr(InstanceFolders, "_run", run)


async def test_full_disk_is_the_fault_of_the_machine(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{errno.ENOSPC} No space left on device: /srv has 3 MiB free"
    fleet = fleet_of(folder, tmp_path)
    with monkeypatch.context() as patched:
        stand_in(patched, f"import os, sys; os.write(int(sys.argv[1]), {text.encode()!r}); sys.exit(1)")
        with pytest.raises(FleetError, match="No space left on device: /srv has 3 MiB free") as failed:
            await fleet.allocate(order(fleet))
    assert is_machine_fault(failed.value)
    await fleet.allocate(order(fleet))
    await fleet.release("srv_1", fleet.slots[0])


async def test_folder_that_is_not_made_in_time_is_reported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instance_folders, "MAKE_S", 0.2)
    os.mkfifo(tmp_path / "never")
    stand_in(monkeypatch, f"open({str(tmp_path / 'never')!r})")
    fleet = fleet_of(folder, tmp_path)
    with pytest.raises(FleetError, match=r"the folder of the server was not created within 0\.2 s"):
        await fleet.allocate(order(fleet))
    assert running_pids(folder) == []
