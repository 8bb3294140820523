"""Every fleet implements the Fleet port, tested with simulated servers in separate processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from cs2_protocol.console_answers import StatusPlayer, parse_status
from cs2_protocol.console_commands import LOG_LISTENERS, STATUS
from cs2_protocol.rcon import PASSWORD_VARIABLE
from matchpod.adapters.fleets import static
from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions
from matchpod.adapters.fleets.process_record import MARK_NAME, ProcessRecord, RecordFolder
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles, probe_port
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import ConsoleFaultError, Fleet, FleetError, GameServer, ServerOrder
from tests.contract.agones_cluster import agones_cluster
from tests.contract.agones_dev_servers import dev_servers, given_kubeconfig
from tests.contract.listed_servers import own_ids
from tests.contract.simulator_process import PASSWORD, SIMULATE, SPEED, SimulatorProcess, free_ports
from tests.lying_server import Lie, LyingServer

HOST = "127.0.0.1"
COMMAND = (
    *(*SIMULATE, "-port", "{port}", "-ip", "{ip}", "+map", "{map}", "+game_type", "{game_type}"),
    *("+game_mode", "{game_mode}", "--players", "{players}", "--speed", "{speed}", "--seed", "{server_id}", "--quiet"),
)


class FleetHarness:
    """A fleet under test with two servers, and functions to create another instance of it and to kill a server."""

    def __init__(self, create: Callable[[], Fleet], kill: Callable[[str], Awaitable[None]], *, is_owner: bool) -> None:
        self.create = create
        self.kill = kill
        self.is_owner = is_owner
        """True if the fleet owns its servers: it starts, stops and lists them."""
        self.seen = FleetReport.ALIVE if is_owner else FleetReport.UNKNOWN
        """What it reports of a running server: it sees only its own processes."""
        self.fleet = create()


def order(fleet: Fleet, server_id: str = "srv_1", slot: int = 0) -> ServerOrder:
    return ServerOrder(
        server_id=server_id,
        slot=fleet.slots[slot] if fleet.slots is not None else "",
        map_name="de_nuke",
        game_type=0,
        game_mode=1,
        rcon_password=PASSWORD,
    )


async def allocated(fleet: Fleet, server_order: ServerOrder) -> tuple[GameServer, str]:
    """Allocate a server that is free, and return it with its slot: a fleet without slots names it."""
    server = await fleet.allocate(server_order)
    assert server is not None
    assert (server.slot is None) == (fleet.slots is not None)
    return server, server_order.slot if server.slot is None else server.slot


def repeated(server_order: ServerOrder) -> ServerOrder:
    return msgspec.structs.replace(server_order, is_repeated=True)


def running_pids(folder: Path) -> list[int]:
    """Return the ids of all processes that were started for servers of this folder, including zombies."""
    mark = f"{MARK_NAME}={folder.resolve()}:".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def recorded_pid(folder: Path, server_id: str = "srv_1") -> int:
    record = RecordFolder(folder).read(server_id)
    assert record is not None
    assert record.process is not None
    return record.process.pid


def process_fleet(folder: Path, ports: tuple[int, ...] | None = None, **changes: object) -> ProcessFleet:
    options = ProcessOptions(command=COMMAND, ports=ports or free_ports(2), speed=SPEED)
    return ProcessFleet(folder, msgspec.structs.replace(options, **changes))


@contextmanager
def process_harness(folder: Path) -> Iterator[FleetHarness]:
    ports = free_ports(2)

    async def kill(server_id: str) -> None:
        os.kill(recorded_pid(folder, server_id), signal.SIGKILL)

    yield FleetHarness(lambda: process_fleet(folder, ports), kill=kill, is_owner=True)


@contextmanager
def static_harness() -> Iterator[FleetHarness]:
    with SimulatorProcess() as first, SimulatorProcess() as second:
        servers = [StaticServer(one.address, PASSWORD) for one in (first, second)]

        async def kill(_server_id: str) -> None:
            first.kill()

        yield FleetHarness(lambda: StaticFleet(servers, RconConsoles(), clean_pause_s=0.1), kill=kill, is_owner=False)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Provide a folder for records; kill processes that a test left behind, and fail if there are any."""
    yield tmp_path / "fleet"
    left = running_pids(tmp_path / "fleet")
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@asynccontextmanager
async def agones_harness(tmp_path: Path) -> AsyncIterator[FleetHarness]:
    async with agones_cluster(tmp_path, replicas=2) as cluster:

        async def kill(server_id: str) -> None:
            cluster.kill(server_id)

        yield FleetHarness(cluster.create, kill=kill, is_owner=True)


@asynccontextmanager
async def cluster_harness() -> AsyncIterator[FleetHarness]:
    """Use the cluster of a kubeconfig, if one is given."""
    async with dev_servers(given_kubeconfig(), number=2) as servers:
        yield FleetHarness(servers.create, kill=servers.kill, is_owner=True)


@pytest.fixture(params=["processes", "static", "agones", "cluster"])
async def harness(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> AsyncIterator[FleetHarness]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "processes":
                yield stack.enter_context(process_harness(folder))
            case "static":
                yield stack.enter_context(static_harness())
            case "agones":
                yield await stack.enter_async_context(agones_harness(tmp_path))
            case _:
                yield await stack.enter_async_context(cluster_harness())


async def answer_of(server: GameServer, command: str) -> str:
    console = await RconConsoles().open(server.rcon_host, server.rcon_port, server.rcon_password)
    try:
        return await console.run(command)
    finally:
        await console.close()


async def players_on(server: GameServer) -> tuple[StatusPlayer, ...]:
    return parse_status(await answer_of(server, "status"))


async def until_gone(fleet: Fleet, server_id: str, slot: str) -> None:
    while await fleet.observe(server_id, slot) is not FleetReport.GONE:
        await asyncio.sleep(0.05)


# --- every fleet --------------------------------------------------------------------------------------------------


async def test_allocated_server_can_be_reached_and_is_listed_until_it_is_released(harness: FleetHarness) -> None:
    fleet = harness.fleet
    server, slot = await allocated(fleet, order(fleet))
    assert "hello" in await answer_of(server, "echo hello")
    assert await fleet.observe("srv_1", slot) is harness.seen
    assert await own_ids(fleet) == (["srv_1"] if harness.is_owner else [])
    await fleet.release("srv_1", slot)
    assert await own_ids(fleet) == []
    await fleet.close()


async def test_repeated_allocation_finds_the_same_server(harness: FleetHarness) -> None:
    server_order = order(harness.fleet)
    first, slot = await allocated(harness.fleet, server_order)
    await answer_of(first, "hostname the_same_one")
    assert await harness.fleet.allocate(repeated(server_order)) == first
    other = harness.create()
    assert await other.allocate(repeated(server_order)) == first
    assert "the_same_one" in await answer_of(first, "hostname")
    await other.release("srv_1", slot)


async def test_two_matches_have_different_servers(harness: FleetHarness) -> None:
    orders = [order(harness.fleet, f"srv_{slot}", slot) for slot in range(2)]
    (first, first_slot), (second, second_slot) = await asyncio.gather(
        *(allocated(harness.fleet, one) for one in orders)
    )
    assert first.port != second.port
    await harness.fleet.release("srv_0", first_slot)
    assert await harness.fleet.observe("srv_1", second_slot) is harness.seen
    assert await own_ids(harness.fleet) == (["srv_1"] if harness.is_owner else [])
    await harness.fleet.release("srv_1", second_slot)


async def test_release_can_be_repeated_and_an_unknown_server_can_be_released(harness: FleetHarness) -> None:
    server_order = order(harness.fleet)
    await harness.fleet.release("srv_1", server_order.slot)
    await harness.fleet.release("srv_1", "no such slot")
    _, slot = await allocated(harness.fleet, server_order)
    await harness.fleet.release("srv_1", slot)
    await harness.fleet.release("srv_1", slot)


async def test_server_is_released_without_its_slot_only_if_the_fleet_owns_it(harness: FleetHarness) -> None:
    _, slot = await allocated(harness.fleet, order(harness.fleet))
    await harness.fleet.release("srv_1", "")
    assert await own_ids(harness.fleet) == []
    assert await harness.fleet.observe("srv_1", slot) is not FleetReport.ALIVE


async def test_killed_server_is_detected_and_can_be_released(harness: FleetHarness) -> None:
    _, slot = await allocated(harness.fleet, order(harness.fleet))
    waiting = asyncio.create_task(harness.fleet.wait_gone("srv_1", slot))
    await asyncio.sleep(0)
    await harness.kill("srv_1")
    if harness.is_owner:
        async with asyncio.timeout(60):  # 2 s, on a busy machine
            assert await waiting
        await until_gone(harness.fleet, "srv_1", slot)
    else:
        assert await harness.fleet.observe("srv_1", slot) is FleetReport.UNKNOWN, "it may come back"
        waiting.cancel()
    await harness.fleet.release("srv_1", slot)
    assert await own_ids(harness.fleet) == []


async def test_slot_of_another_fleet_is_rejected(harness: FleetHarness) -> None:
    if harness.fleet.slots is None:
        pytest.skip("this fleet has no slots")
    unknown_slot = msgspec.structs.replace(order(harness.fleet), slot="192.0.2.1:1")
    with pytest.raises(FleetError):
        await harness.fleet.allocate(unknown_slot)


# --- processes ----------------------------------------------------------------------------------------------------


async def test_repeated_allocation_and_a_second_fleet_find_the_same_process(folder: Path) -> None:
    fleet = process_fleet(folder, ports := free_ports(1))
    await fleet.allocate(order(fleet))
    pid = recorded_pid(folder)
    await fleet.allocate(order(fleet))
    await fleet.close()
    successor = process_fleet(folder, ports)
    assert await own_ids(successor) == ["srv_1"]
    await successor.allocate(order(successor))
    assert running_pids(folder) == [pid]
    await successor.release("srv_1", successor.slots[0])


async def test_records_do_not_contain_the_password(folder: Path) -> None:
    fleet = process_fleet(folder)
    await fleet.allocate(order(fleet))
    texts = [path.read_text() for path in folder.iterdir()]
    await fleet.release("srv_1", fleet.slots[0])
    assert len(texts) == 2
    assert not any(PASSWORD in text for text in texts)
    assert list(folder.iterdir()) == []


async def test_crashed_server_is_started_again(folder: Path) -> None:
    fleet = process_fleet(folder)
    server_order = order(fleet)
    await fleet.allocate(server_order)
    pid = recorded_pid(folder)
    os.kill(pid, signal.SIGSEGV)
    await until_gone(fleet, "srv_1", server_order.slot)
    assert not Path(f"/proc/{pid}").exists()  # reaped
    server = await fleet.allocate(server_order)
    assert recorded_pid(folder) != pid
    assert "de_nuke" in await answer_of(server, "status")
    await fleet.release("srv_1", server_order.slot)


async def test_simulated_server_has_its_id_as_seed(folder: Path) -> None:
    fleet = process_fleet(folder)
    for slot, server_id in enumerate(("srv_1", "srv_2")):
        server = await fleet.allocate(order(fleet, server_id, slot))
        assert await answer_of(server, "sim_seed") == f"sim_seed = {server_id}\n"
        await fleet.release(server_id, fleet.slots[slot])


async def test_running_server_without_recorded_pid_is_stopped_before_another_is_started(folder: Path) -> None:
    fleet = process_fleet(folder)
    server_order = order(fleet)
    await fleet.allocate(server_order)
    pid = recorded_pid(folder)
    RecordFolder(folder).write(ProcessRecord(server_id="srv_1", slot=server_order.slot))
    assert await own_ids(fleet) == ["srv_1"]
    await fleet.allocate(server_order)
    assert running_pids(folder) == [recorded_pid(folder)] != [pid]
    await fleet.release("srv_1", server_order.slot)


async def test_process_with_the_reused_pid_of_a_server_is_not_killed(folder: Path) -> None:
    fleet = process_fleet(folder)
    server_order = order(fleet)
    await fleet.allocate(server_order)
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
    await fleet.release("srv_1", server_order.slot)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((sys.executable, "-c", "print('no such map:', '{map}', '{rcon_password}')"), "no such map: de_nuke ***"),
        ((sys.executable, "-c", "raise SystemExit('{rcon_password} is odd')"), "*** is odd"),
        ((*SIMULATE, "--nonsense"), "unknown option --nonsense"),
        (("/no/such/program", "{rcon_password}"), "cannot be started"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "did not open port"),
    ],
)
async def test_failed_start_is_reported_with_the_output(folder: Path, command: tuple[str, ...], message: str) -> None:
    fleet = process_fleet(folder, command=command, start_s=3.0 if "sleep" in command[-1] else 60.0)
    with pytest.raises(FleetError) as failed:
        await fleet.allocate(order(fleet))
    assert message in str(failed.value)
    assert PASSWORD not in str(failed.value)
    assert await fleet.observe("srv_1", fleet.slots[0]) is not FleetReport.ALIVE
    assert await own_ids(fleet) == []
    await fleet.release("srv_1", fleet.slots[0])


async def test_port_used_by_another_program_is_rejected(folder: Path) -> None:
    other_program = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
    port = other_program.sockets[0].getsockname()[1]
    fleet = process_fleet(folder, (port,))
    with pytest.raises(FleetError, match="in use by another program"):
        await fleet.allocate(order(fleet))
    other_program.close()
    await other_program.wait_closed()


async def test_server_that_ignores_sigterm_is_killed_with_its_children(folder: Path) -> None:
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    program = (
        f"import signal, socket, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]);"
        " signal.signal(signal.SIGTERM, signal.SIG_IGN); s = socket.create_server(('{ip}', {port})); time.sleep(600)"
    )
    fleet = process_fleet(folder, command=(sys.executable, "-c", program))
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
    while not running_pids(folder):
        await asyncio.sleep(0.01)
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


async def test_memory_limit_is_applied_to_the_server(folder: Path) -> None:
    program = "import socket, time; s = socket.create_server(('{ip}', {port})); time.sleep(600)"
    fleet = process_fleet(folder, command=(sys.executable, "-c", program), memory_bytes=2**30)
    await fleet.allocate(order(fleet))
    limits = Path(f"/proc/{recorded_pid(folder)}/limits").read_text()
    await fleet.release("srv_1", fleet.slots[0])
    (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
    assert line.split()[3:5] == [str(2**30)] * 2


async def test_server_is_stopped_if_its_memory_limit_cannot_be_set(folder: Path) -> None:
    fleet = process_fleet(folder, memory_bytes=2**64)  # too large for the system
    with pytest.raises(FleetError, match="cannot be started"):
        await fleet.allocate(order(fleet))
    assert running_pids(folder) == []


async def test_invalid_server_id_is_rejected_and_counts_as_gone(folder: Path) -> None:
    fleet = process_fleet(folder)
    with pytest.raises(FleetError):
        await fleet.allocate(order(fleet, "../srv_1"))
    assert await fleet.observe("../srv_1", fleet.slots[0]) is FleetReport.GONE
    await fleet.release("../srv_1", fleet.slots[0])


async def test_state_of_a_server_is_unknown_if_its_record_cannot_be_read(folder: Path) -> None:
    fleet = process_fleet(folder)
    assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.UNKNOWN
    (folder / "srv_1.json").mkdir(parents=True)
    assert await fleet.observe("srv_1", fleet.slots[0]) is FleetReport.UNKNOWN
    with pytest.raises(FleetError):
        await fleet.allocate(order(fleet))
    with pytest.raises(FleetError):
        await fleet.release("srv_1", fleet.slots[0])


async def test_password_is_in_the_environment_of_a_server_and_not_on_its_command_line(folder: Path) -> None:
    fleet = process_fleet(folder)
    server = await fleet.allocate(order(fleet))
    assert "de_nuke" in await answer_of(server, "status")
    process = Path(f"/proc/{recorded_pid(folder)}")
    assert PASSWORD.encode() not in (process / "cmdline").read_bytes()
    assert f"{PASSWORD_VARIABLE}={PASSWORD}".encode() in (process / "environ").read_bytes().split(b"\0")
    await fleet.release("srv_1", fleet.slots[0])


async def test_password_on_the_command_line_still_works(folder: Path) -> None:
    fleet = process_fleet(folder, command=(*COMMAND, "+rcon_password", "{rcon_password}"))
    assert "de_nuke" in await answer_of(await fleet.allocate(order(fleet)), "status")
    await fleet.release("srv_1", fleet.slots[0])


async def test_password_that_looks_like_an_option_is_rejected_on_a_command_line_only(folder: Path) -> None:
    hidden = process_fleet(folder)
    server = await hidden.allocate(msgspec.structs.replace(order(hidden), rcon_password="-secret"))
    assert "de_nuke" in await answer_of(server, "status")
    await hidden.release("srv_1", hidden.slots[0])
    fleet = process_fleet(folder, command=(*COMMAND, "+rcon_password", "{rcon_password}"))
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
    with pytest.raises(FleetError, match=r"the file with its secrets cannot be written: .*matchpod_srv_1") as failed:
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


# --- static servers -----------------------------------------------------------------------------------------------


async def test_released_static_server_is_cleaned_up() -> None:
    with SimulatorProcess() as one:
        fleet = StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles())
        server = await fleet.allocate(order(fleet))
        await answer_of(server, "sv_password secret")
        await answer_of(server, 'logaddress_add_http "http://127.0.0.1:9/"')
        while len(await players_on(server)) < 10:
            await asyncio.sleep(0.1)
        await fleet.release("srv_1", one.address)
        assert await players_on(server) == ()
        assert "secret" not in await answer_of(server, "sv_password")
        assert "127.0.0.1:9" not in await answer_of(server, "logaddress_list_http")
        assert await probe_port(HOST, one.port)


async def test_static_server_can_be_cleaned_up_by_another_process() -> None:
    with SimulatorProcess() as one:
        first, second = (StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles()) for _ in range(2))
        await first.allocate(order(first, "srv_1"))
        await second.release("srv_1", one.address)  # as if the second process had claimed the ended match
        server = await second.allocate(order(second, "srv_2"))
        await answer_of(server, "sv_password secret")
        await first.release("srv_2", one.address)
        assert "secret" not in await answer_of(server, "sv_password")


async def test_static_servers_are_not_swept() -> None:
    with SimulatorProcess() as one:
        fleet = StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles())
        server = await fleet.allocate(order(fleet))
        await answer_of(server, "sv_password secret")
        assert await own_ids(fleet) == []
        await fleet.release("srv_1", "")  # like a sweep, which does not know the slot
        assert "secret" in await answer_of(server, "sv_password")


async def test_static_server_with_wrong_password_is_not_allocated_but_can_be_released() -> None:
    with SimulatorProcess() as one:
        fleet = StaticFleet([StaticServer(one.address, "another")], RconConsoles())
        with pytest.raises(FleetError):
            await fleet.allocate(order(fleet))
        await fleet.release("srv_1", one.address)
        assert await fleet.observe("srv_1", one.address) is FleetReport.UNKNOWN


async def test_static_server_that_lies_is_not_allocated() -> None:
    async with LyingServer(Lie.HUGE_STATUS, about=LOG_LISTENERS) as port:
        fleet = StaticFleet([StaticServer(f"{HOST}:{port}", PASSWORD)], RconConsoles())
        with pytest.raises(FleetError, match="packet size") as failed:
            await fleet.allocate(order(fleet))
        assert isinstance(failed.value.__cause__, ConsoleFaultError)


async def test_static_server_that_lies_is_released_after_one_attempt(caplog: pytest.LogCaptureFixture) -> None:
    async with LyingServer(Lie.EMPTY_PACKETS, about=STATUS) as port:
        fleet = StaticFleet([StaticServer(f"{HOST}:{port}", PASSWORD)], RconConsoles())
        await fleet.release("srv_1", f"{HOST}:{port}")
        assert [record.message for record in caplog.records] == ["server not cleaned up: console fault"]


async def test_cleanup_of_a_static_server_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "CLEAN_S", 0.1)
    async with LyingServer(Lie.DRIP, about=STATUS) as port:
        fleet = StaticFleet([StaticServer(f"{HOST}:{port}", PASSWORD)], RconConsoles(), clean_pause_s=0.01)
        async with asyncio.timeout(8):  # a single answer may take 10 s
            await fleet.release("srv_1", f"{HOST}:{port}")


async def test_hanging_static_server_is_not_gone_and_can_be_released() -> None:
    with SimulatorProcess() as one:
        servers = [StaticServer(one.address, PASSWORD)]
        patient = StaticFleet(servers, RconConsoles())
        await patient.allocate(order(patient))
        one.freeze()
        fleet = StaticFleet(servers, RconConsoles(open_s=0.3), clean_pause_s=0.1)
        assert await fleet.observe("srv_1", one.address) is FleetReport.UNKNOWN
        await fleet.release("srv_1", one.address)
        assert await own_ids(fleet) == []
