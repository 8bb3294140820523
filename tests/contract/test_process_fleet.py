"""Servers as processes of this machine: their records, secrets and ends, and a machine without files or memory."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from cs2_protocol.rcon import PASSWORD_VARIABLE
from matchpod.adapters.fleets.process import ProcessFleet
from matchpod.adapters.fleets.process_record import ProcessRecord, RecordFolder, identify
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import FleetError, GameServer
from matchpod.service.runner.machine_faults import is_machine_fault
from tests.contract import fleet_servers
from tests.contract.fleet_servers import HOST, LISTENER, order, process_fleet, recorded_pid, running_pids
from tests.contract.listed_servers import own_ids
from tests.contract.simulator_process import PASSWORD, free_ports
from tests.open_files import no_more_files
from tests.waiting import until

folder = fleet_servers.folder


@pytest.fixture
async def fleet(folder: Path) -> AsyncIterator[ProcessFleet]:
    """A fleet in which `srv_1` has a server."""
    created = process_fleet(folder)
    await created.allocate(order(created))
    yield created
    await created.release("srv_1", created.slots[0])


async def test_crashed_server_is_started_again(folder: Path, fleet: ProcessFleet) -> None:
    pid = recorded_pid(folder)
    os.kill(pid, signal.SIGSEGV)
    assert await fleet.wait_gone("srv_1", fleet.slots[0])
    assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.GONE
    assert not Path(f"/proc/{pid}").exists()  # reaped
    await fleet.allocate(order(fleet))
    assert running_pids(folder) == [recorded_pid(folder)] != [pid]


async def test_running_server_without_recorded_pid_is_stopped_before_another_is_started(
    folder: Path, fleet: ProcessFleet
) -> None:
    pid = recorded_pid(folder)
    RecordFolder(folder).write(ProcessRecord(server_id="srv_1", slot=fleet.slots[0]))
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.allocate(order(fleet))
    assert running_pids(folder) == [recorded_pid(folder)] != [pid]


async def test_process_with_the_reused_pid_of_a_server_is_not_killed(folder: Path, fleet: ProcessFleet) -> None:
    pid = recorded_pid(folder)
    records = RecordFolder(folder)
    record = records.read("srv_1")
    assert record is not None
    assert record.process is not None
    ours = msgspec.structs.replace(record.process, pid=os.getpid())
    records.write(ProcessRecord(server_id="srv_2", slot=fleet.slots[1], process=ours))
    assert await fleet.observe("srv_2", fleet.slots[1]) is FleetReport.GONE
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.release("srv_2", fleet.slots[1])
    assert running_pids(folder) == [pid]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((sys.executable, "-c", "print('no such map:', '{map}', '{rcon_password}')"), "no such map: de_nuke ***"),
        ((sys.executable, "-c", "raise SystemExit('{rcon_password} is odd')"), "*** is odd"),
        (("/no/such/program", "{rcon_password}"), "cannot be started"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "did not open port"),
    ],
)
async def test_failed_start_is_reported_with_the_output(folder: Path, command: tuple[str, ...], message: str) -> None:
    fleet = process_fleet(folder, command=command, start_s=0.3 if "sleep" in command[-1] else 60.0)
    with pytest.raises(FleetError) as failed:
        await fleet.allocate(order(fleet))
    assert message in str(failed.value)
    assert PASSWORD not in str(failed.value)
    assert await fleet.observe("srv_1", fleet.slots[0]) is not FleetReport.ALIVE
    assert await own_ids(fleet) == []
    await fleet.release("srv_1", fleet.slots[0])


async def test_port_that_is_in_use_or_of_another_fleet_is_rejected(folder: Path) -> None:
    other_program = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
    fleet = process_fleet(folder, (other_program.sockets[0].getsockname()[1],))
    with pytest.raises(FleetError, match="in use by another program"):
        await fleet.allocate(order(fleet))
    with pytest.raises(FleetError, match="this fleet has no port 1"):
        await fleet.allocate(msgspec.structs.replace(order(fleet), slot="1"))
    other_program.close()
    await other_program.wait_closed()


async def test_server_that_ignores_sigterm_is_killed_with_its_children(folder: Path) -> None:
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    program = (
        f"import signal, socket, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]);"
        " signal.signal(signal.SIGTERM, signal.SIG_IGN); s = socket.create_server(('{ip}', {port})); time.sleep(600)"
    )
    fleet = process_fleet(folder, command=(*LISTENER[:-1], program), term_s=0.3)
    await fleet.allocate(order(fleet))
    assert len(running_pids(folder)) == 2
    await fleet.release("srv_1", fleet.slots[0])
    assert running_pids(folder) == []


def test_server_outlives_the_service_and_does_not_inherit_its_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET", "hidden")

    async def start() -> None:
        fleet = process_fleet(folder, ports, environment={"FROM_FLEET": "1"})
        await fleet.allocate(msgspec.structs.replace(order(fleet), environment={"FROM_ORDER": "2"}))

    async def end() -> None:
        fleet = process_fleet(folder, ports)
        assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.ALIVE
        pid = recorded_pid(folder)
        environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
        assert {"FROM_FLEET=1", "FROM_ORDER=2"} <= set(environment)
        assert "MATCHPOD_SECRET=hidden" not in environment
        assert os.getsid(pid) == pid
        await fleet.release("srv_1", fleet.slots[0])

    ports = free_ports(1)
    asyncio.run(start())  # the event loop is closed afterwards
    asyncio.run(end())


async def test_server_of_a_cancelled_allocation_is_reused(folder: Path) -> None:
    fleet = process_fleet(folder)
    first = asyncio.create_task(fleet.allocate(order(fleet)))
    await until(lambda: running_pids(folder))
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await fleet.allocate(order(fleet))
    assert running_pids(folder) == [recorded_pid(folder)]
    await fleet.release("srv_1", fleet.slots[0])


async def test_concurrent_allocations_and_releases_leave_no_unrecorded_process(folder: Path) -> None:
    fleet = process_fleet(folder)
    server_order = order(fleet)
    calls = [
        call
        for _ in range(3)
        for call in (
            fleet.allocate(server_order),
            fleet.release("srv_1", server_order.slot),
            fleet.allocate(server_order),
        )
    ]
    for result in await asyncio.gather(*calls, return_exceptions=True):
        assert result is None or isinstance(result, (GameServer, FleetError))
    assert running_pids(folder) in ([], [recorded_pid(folder)] if list(folder.glob("*.json")) else [])
    await fleet.release("srv_1", server_order.slot)


async def test_memory_limit_is_applied_to_the_server_which_is_stopped_if_that_fails(folder: Path) -> None:
    fleet = process_fleet(folder, memory_bytes=2**30)
    await fleet.allocate(order(fleet))
    limits = Path(f"/proc/{recorded_pid(folder)}/limits").read_text()
    await fleet.release("srv_1", fleet.slots[0])
    (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert line.split()[3:5] == [str(2**30)] * 2
    fleet = process_fleet(folder, memory_bytes=2**64)  # too large for the system
    with pytest.raises(FleetError, match="cannot be started"):
        await fleet.allocate(order(fleet))
    assert running_pids(folder) == []


async def test_state_of_a_server_is_unknown_if_its_record_cannot_be_read(folder: Path) -> None:
    fleet = process_fleet(folder)
    assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.UNKNOWN
    (folder / "srv_1.json").mkdir(parents=True)
    assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.UNKNOWN
    with pytest.raises(FleetError):
        await fleet.allocate(order(fleet))
    with pytest.raises(FleetError):
        await fleet.release("srv_1", fleet.slots[0])


async def test_password_is_only_in_the_environment_of_a_server_and_may_look_like_an_option(folder: Path) -> None:
    fleet = process_fleet(folder)
    await fleet.allocate(msgspec.structs.replace(order(fleet), rcon_password="-secret"))
    process = Path(f"/proc/{recorded_pid(folder)}")
    assert b"-secret" not in (process / "cmdline").read_bytes()
    assert f"{PASSWORD_VARIABLE}=-secret".encode() in (process / "environ").read_bytes().split(b"\0")
    records = [path.read_text() for path in folder.iterdir()]
    assert len(records) == 2
    assert not any("-secret" in text for text in records)
    await fleet.release("srv_1", fleet.slots[0])
    assert list(folder.iterdir()) == []


async def test_placeholders_of_a_command_are_replaced_unless_a_password_looks_like_an_option(folder: Path) -> None:
    values = ("{map}", "{game_type}", "{game_mode}", "{players}", "{speed}", "{server_id}", "{rcon_password}")
    fleet = process_fleet(folder, command=(*LISTENER, *values), speed=60)
    await fleet.allocate(order(fleet))
    arguments = Path(f"/proc/{recorded_pid(folder)}/cmdline").read_text().split("\0")[len(LISTENER) : -1]
    # No players are listed, so their argument is left out.
    assert arguments == ["de_nuke", "0", "1", "60", "srv_1", PASSWORD]
    await fleet.release("srv_1", fleet.slots[0])
    with pytest.raises(FleetError, match="begins like an option"):
        await fleet.allocate(msgspec.structs.replace(order(fleet), rcon_password="-secret"))


CFG_SERVER = """
import os, socket, sys
port, cfg, seen = sys.argv[1:]
text = open(cfg).read()
status = os.stat(cfg)
with open(seen, "w") as file:
    print(text, end="", file=file)
    print(oct(status.st_mode), status.st_uid == os.geteuid(), os.geteuid(), file=file)
listening = socket.create_server(("127.0.0.1", int(port)))
while True:
    listening.accept()[0].close()
"""
"""A server that reads its `.cfg` file, and records what it saw."""


def cfg_fleet(folder: Path, tmp_path: Path, *, python: str = sys.executable, **changes: object) -> ProcessFleet:
    (tmp_path / "cfg").mkdir()
    command = (python, "-c", CFG_SERVER, "{port}", f"{tmp_path}/cfg/{{cfg}}", f"{tmp_path}/seen")
    return process_fleet(folder, None, command=command, cfg_folder=tmp_path / "cfg", **changes)


@pytest.mark.parametrize("tokens", [(), ("TOKENONE", "TOKENTWO")])
async def test_server_reads_its_secrets_from_a_file_of_its_own(
    folder: Path, tmp_path: Path, tokens: tuple[str, ...]
) -> None:
    before = os.umask(0)
    try:
        fleet = cfg_fleet(folder, tmp_path, steam_tokens=tokens)
        await fleet.allocate(order(fleet, slot=1))
    finally:
        os.umask(before)
    password, *token, status = (tmp_path / "seen").read_text().splitlines()
    assert password == f'rcon_password "{PASSWORD}"'
    assert token == (['sv_setsteamaccount "TOKENTWO"'] if tokens else [])
    assert status.split()[:2] == ["0o100600", "True"]
    assert [path.name for path in (tmp_path / "cfg").iterdir()] == ["matchpod_srv_1.cfg"]
    assert b"TOKEN" not in Path(f"/proc/{recorded_pid(folder)}/cmdline").read_bytes()
    await fleet.release("srv_1", fleet.slots[1])
    assert list((tmp_path / "cfg").iterdir()) == []


async def test_file_that_cannot_be_written_is_reported_without_its_content(folder: Path, tmp_path: Path) -> None:
    fleet = cfg_fleet(folder, tmp_path)
    (tmp_path / "cfg").rmdir()
    with pytest.raises(FleetError, match=r"the server's \.cfg file cannot be written: .*matchpod_srv_1") as failed:
        await fleet.allocate(order(fleet))
    assert PASSWORD not in str(failed.value)


OTHER_UID = 54321


def python_of_other_users() -> str | None:
    """A Python that other users may run: that of the tests may be in a private folder."""
    for python in (sys.executable, str(Path(sys.executable).resolve()), "/usr/bin/python3"):
        with suppress(OSError):
            done = subprocess.run([python, "-c", ""], user=OTHER_UID, group=OTHER_UID, cwd="/", env={}, check=False)
            if done.returncode == 0:
                return python
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes as another user")
async def test_servers_run_as_another_user_who_can_read_their_secrets(folder: Path) -> None:
    python = python_of_other_users()
    if python is None:
        pytest.skip("there is no Python that other users may run")
    changes = {"user": str(OTHER_UID), "working_directory": Path("/"), "environment": {"PYTHONPATH": ""}}
    with TemporaryDirectory() as name:  # unlike `tmp_path`, its parents are open to others
        shared = Path(name)
        shared.chmod(0o755)
        fleet = cfg_fleet(folder, shared, python=python, **changes)
        (shared / "seen").touch()
        for path in (shared / "cfg", shared / "seen"):
            os.chown(path, OTHER_UID, OTHER_UID)
        await fleet.allocate(order(fleet))
        status = (shared / "seen").read_text().splitlines()[-1]
        assert status.split() == ["0o100600", "True", str(OTHER_UID)]
        assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.ALIVE
        assert await own_ids(fleet) == ["srv_1"]
        await fleet.release("srv_1", fleet.slots[0])
        assert await own_ids(fleet) == []
        assert list((shared / "cfg").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes as another user")
async def test_program_that_the_user_may_not_run_is_reported(folder: Path, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    fleet = process_fleet(folder, command=(str(program), "{port}"), user=str(OTHER_UID), working_directory=Path("/"))
    with pytest.raises(FleetError, match=f"cannot be started as user {OTHER_UID}: .*Permission denied"):
        await fleet.allocate(order(fleet))


# --- a machine without files, space, memory or processes ------------------------------------------------------------


async def test_servers_stay_alive_if_no_file_can_be_opened(folder: Path, fleet: ProcessFleet) -> None:
    slot, pid = fleet.slots[0], recorded_pid(folder)
    with no_more_files():
        assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN
        for call in (fleet.servers(), fleet.release("srv_1", slot), fleet.allocate(order(fleet))):
            with pytest.raises(FleetError):
                await call
    assert recorded_pid(folder) == pid
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.release("srv_1", slot)
    assert await fleet.observe("srv_1", slot) is FleetReport.UNKNOWN


@pytest.mark.parametrize(
    ("failing", "number"),
    [((subprocess, "Popen"), errno.EAGAIN), ((os, "fsync"), errno.ENOSPC)],
    ids=["start", "record"],
)
async def test_machine_that_cannot_start_a_server_is_reported_as_the_cause(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failing: tuple[object, str], number: int
) -> None:
    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    fleet = process_fleet(folder)
    with monkeypatch.context() as patched:
        patched.setattr(*failing, fail)
        with pytest.raises(FleetError) as failed:
            await fleet.allocate(order(fleet))
    assert is_machine_fault(failed.value)
    assert os.strerror(number) in str(failed.value)
    assert list(folder.iterdir()) == []
    assert await own_ids(fleet) == []


async def test_server_whose_port_cannot_be_probed_is_stopped_and_the_machine_is_reported_as_the_cause(
    folder: Path,
) -> None:
    fleet = process_fleet(folder, start_s=1.0, command=(*LISTENER[:-1], "import time; time.sleep(600)", "{port}"))
    task = asyncio.create_task(fleet.allocate(order(fleet)))
    while not list(folder.glob("*.json")) or await fleet.observe("srv_1", fleet.slots[0]) is not FleetReport.ALIVE:
        await asyncio.sleep(0.01)
    with no_more_files(), pytest.raises(FleetError) as failed:
        await task
    assert is_machine_fault(failed.value)
    await fleet.release("srv_1", fleet.slots[0])


async def test_server_released_by_another_process_is_reaped(folder: Path, fleet: ProcessFleet) -> None:
    stat = Path(f"/proc/{recorded_pid(folder)}/stat")
    os.kill(recorded_pid(folder), signal.SIGKILL)
    RecordFolder(folder).remove("srv_1")
    await until(lambda: ") Z " in stat.read_text("utf-8"))
    assert await own_ids(fleet) == []
    assert not stat.exists()
    assert await own_ids(fleet) == []


@pytest.mark.parametrize("is_reported", [True, False], ids=["reported by the system", "checked"])
async def test_end_of_a_process_is_noticed_although_another_process_started_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_reported: bool
) -> None:
    pidfd_open, is_followed = os.pidfd_open, asyncio.Event()

    def follow(pid: int) -> int:
        is_followed.set()
        if not is_reported:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return pidfd_open(pid)

    monkeypatch.setattr(os, "pidfd_open", follow)
    program = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid)"
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=subprocess.PIPE)
    pid = int((await child.communicate())[0])
    fleet = process_fleet(folder)
    is_followed.clear()  # the loop may have followed the child
    waiting = asyncio.create_task(fleet.wait_gone("srv_1", fleet.slots[0]))
    await asyncio.to_thread(RecordFolder(folder).read, "srv_1")  # it waits for a record that is not there yet
    RecordFolder(folder).write(ProcessRecord(server_id="srv_1", slot=fleet.slots[0], process=identify(pid)))
    async with asyncio.timeout(60):
        await is_followed.wait()
        await asyncio.sleep(0)
        assert not waiting.done(), "it runs"
        os.kill(pid, signal.SIGKILL)
        assert await waiting == "its process has ended"


async def test_invalid_server_id_is_rejected_and_counts_as_gone(folder: Path) -> None:
    fleet = process_fleet(folder)
    with pytest.raises(FleetError):
        await fleet.allocate(order(fleet, "../srv_1"))
    assert await fleet.observe("../srv_1", fleet.slots[0]) is FleetReport.GONE
    await fleet.release("../srv_1", fleet.slots[0])
