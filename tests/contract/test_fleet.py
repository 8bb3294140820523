"""Every fleet keeps the promises of `Fleet`, with simulated servers in processes of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.fleets.process import ProcessFleet, ProcessOptions
from matchpod.adapters.fleets.process_record import MARK_NAME, ProcessRecord, RecordFolder
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles, accepts
from matchpod.cs2.console_answers import StatusPlayer, parse_status
from matchpod.ports import Fleet, FleetError, GameServer, ServerOrder
from tests.contract.simulator_process import PASSWORD, SIMULATE, SPEED, SimulatorProcess, free_ports

HOST = "127.0.0.1"
LIMIT_S = 120.0
COMMAND = (
    *(*SIMULATE, "-port", "{port}", "-ip", "{ip}", "+map", "{map}", "+game_type", "{game_type}"),
    *("+game_mode", "{game_mode}", "+rcon_password", "{rcon_password}", "--players", "{players}"),
    *("--speed", "{speed}", "--quiet"),
)


class Trial:
    """A fleet under test, and what the test does to its servers behind its back."""

    def __init__(self, make: Callable[[], Fleet], kill: Callable[[str], None], *, is_owner: bool) -> None:
        self.make = make
        self.kill = kill
        self.is_owner = is_owner
        """True when the servers are the fleet's own: it starts and ends them, and can list them."""
        self.fleet = make()


def order(fleet: Fleet, server_id: str = "srv_1", slot: int = 0) -> ServerOrder:
    return ServerOrder(
        server_id=server_id,
        slot=fleet.slots[slot],
        map_name="de_nuke",
        game_type=0,
        game_mode=1,
        rcon_password=PASSWORD,
    )


def run(work: Coroutine[object, object, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(LIMIT_S):
            await work

    asyncio.run(limited())


def running_pids(folder: Path) -> list[int]:
    """All processes that were started for servers of this folder, ended ones that nobody reaped included."""
    wanted = f"{MARK_NAME}={folder.resolve()}:".encode()
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes():
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
def trial_of_processes(folder: Path) -> Iterator[Trial]:
    ports = free_ports(2)
    yield Trial(
        lambda: process_fleet(folder, ports),
        kill=lambda server_id: os.kill(recorded_pid(folder, server_id), signal.SIGKILL),
        is_owner=True,
    )


@contextmanager
def trial_of_static_servers() -> Iterator[Trial]:
    with SimulatorProcess() as first, SimulatorProcess() as second:
        servers = [StaticServer(one.address, PASSWORD) for one in (first, second)]
        yield Trial(
            lambda: StaticFleet(servers, RconConsoles(), clean_pause_s=0.1),
            kill=lambda _id: first.kill(),
            is_owner=False,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the records lie. No process may be left when a test is over; what is, ends here."""
    yield tmp_path / "fleet"
    left = running_pids(tmp_path / "fleet")
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.fixture(params=["processes", "static"])
def trial(request: pytest.FixtureRequest, folder: Path) -> Iterator[Trial]:
    with trial_of_processes(folder) if request.param == "processes" else trial_of_static_servers() as one:
        yield one


async def answer_of(server: GameServer, command: str) -> str:
    console = await RconConsoles().open(server.rcon_host, server.rcon_port, server.rcon_password)
    try:
        return await console.run(command)
    finally:
        await console.close()


async def players_on(server: GameServer) -> tuple[StatusPlayer, ...]:
    status = parse_status(await answer_of(server, "status"))
    assert status is not None
    return status.players


async def until_gone(fleet: Fleet, server_id: str, slot: str) -> None:
    while await fleet.is_alive(server_id, slot):
        await asyncio.sleep(0.05)


# --- every fleet --------------------------------------------------------------------------------------------------


def test_allocated_server_can_be_reached_and_is_listed_until_it_is_released(trial: Trial) -> None:
    async def work() -> None:
        fleet = trial.fleet
        wanted = order(fleet)
        server = await fleet.allocate(wanted)
        assert "hello" in await answer_of(server, "echo hello")
        assert await fleet.is_alive("srv_1", wanted.slot)
        assert list(await fleet.servers()) == (["srv_1"] if trial.is_owner else [])
        await fleet.release("srv_1", wanted.slot)
        assert list(await fleet.servers()) == []
        await fleet.close()

    run(work())


def test_repeated_allocation_finds_the_same_server(trial: Trial) -> None:
    async def work() -> None:
        wanted = order(trial.fleet)
        first = await trial.fleet.allocate(wanted)
        await answer_of(first, "hostname the_same_one")
        assert await trial.fleet.allocate(wanted) == first
        other = trial.make()
        assert await other.allocate(wanted) == first
        assert "the_same_one" in await answer_of(first, "hostname")
        await other.release("srv_1", wanted.slot)

    run(work())


def test_two_matches_have_a_server_each(trial: Trial) -> None:
    async def work() -> None:
        wanted = [order(trial.fleet, f"srv_{slot}", slot) for slot in range(2)]
        servers = await asyncio.gather(*map(trial.fleet.allocate, wanted))
        assert servers[0].port != servers[1].port
        await trial.fleet.release("srv_0", wanted[0].slot)
        assert await trial.fleet.is_alive("srv_1", wanted[1].slot)
        assert list(await trial.fleet.servers()) == (["srv_1"] if trial.is_owner else [])
        await trial.fleet.release("srv_1", wanted[1].slot)

    run(work())


def test_release_can_be_repeated_and_an_unknown_server_can_be_released(trial: Trial) -> None:
    async def work() -> None:
        wanted = order(trial.fleet)
        await trial.fleet.release("srv_1", wanted.slot)
        await trial.fleet.release("srv_1", "no such slot")
        await trial.fleet.allocate(wanted)
        await trial.fleet.release("srv_1", wanted.slot)
        await trial.fleet.release("srv_1", wanted.slot)

    run(work())


def test_killed_server_is_noticed_and_can_be_released(trial: Trial) -> None:
    async def work() -> None:
        wanted = order(trial.fleet)
        await trial.fleet.allocate(wanted)
        trial.kill("srv_1")
        await until_gone(trial.fleet, "srv_1", wanted.slot)
        await trial.fleet.release("srv_1", wanted.slot)
        assert list(await trial.fleet.servers()) == []

    run(work())


def test_slot_of_another_fleet_is_refused(trial: Trial) -> None:
    async def work() -> None:
        elsewhere = msgspec.structs.replace(order(trial.fleet), slot="192.0.2.1:1")
        with pytest.raises(FleetError):
            await trial.fleet.allocate(elsewhere)

    run(work())


# --- processes ----------------------------------------------------------------------------------------------------


def test_repeated_allocation_and_a_second_fleet_find_the_same_process(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder, ports := free_ports(1))
        await fleet.allocate(order(fleet))
        pid = recorded_pid(folder)
        await fleet.allocate(order(fleet))
        await fleet.close()
        successor = process_fleet(folder, ports)
        assert list(await successor.servers()) == ["srv_1"]
        await successor.allocate(order(successor))
        assert running_pids(folder) == [pid]
        await successor.release("srv_1", successor.slots[0])

    run(work())


def test_record_holds_no_password(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        await fleet.allocate(order(fleet))
        kept = [path.read_text() for path in folder.iterdir()]
        await fleet.release("srv_1", fleet.slots[0])
        assert len(kept) == 2
        assert not any(PASSWORD in text for text in kept)
        assert list(folder.iterdir()) == []

    run(work())


def test_server_that_crashed_is_started_anew(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        wanted = order(fleet)
        await fleet.allocate(wanted)
        pid = recorded_pid(folder)
        os.kill(pid, signal.SIGSEGV)
        await until_gone(fleet, "srv_1", wanted.slot)
        assert not Path(f"/proc/{pid}").exists()  # reaped
        server = await fleet.allocate(wanted)
        assert recorded_pid(folder) != pid
        assert "de_nuke" in await answer_of(server, "status")
        await fleet.release("srv_1", wanted.slot)

    run(work())


def test_started_server_whose_number_was_never_written_down_is_ended_first(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        wanted = order(fleet)
        await fleet.allocate(wanted)
        pid = recorded_pid(folder)
        RecordFolder(folder).write(ProcessRecord(server_id="srv_1", slot=wanted.slot))
        assert list(await fleet.servers()) == ["srv_1"]
        await fleet.allocate(wanted)
        assert running_pids(folder) == [recorded_pid(folder)] != [pid]
        await fleet.release("srv_1", wanted.slot)

    run(work())


def test_process_that_only_has_the_number_of_a_server_is_left_alone(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        wanted = order(fleet)
        await fleet.allocate(wanted)
        pid = recorded_pid(folder)
        records = RecordFolder(folder)
        record = records.read("srv_1")
        assert record is not None
        assert record.process is not None
        ours = msgspec.structs.replace(record.process, pid=os.getpid())
        records.write(ProcessRecord(server_id="srv_2", slot=fleet.slots[1], process=ours))
        assert not await fleet.is_alive("srv_2", fleet.slots[1])
        assert list(await fleet.servers()) == ["srv_1"]
        await fleet.release("srv_2", fleet.slots[1])
        assert running_pids(folder) == [pid]
        await fleet.release("srv_1", wanted.slot)

    run(work())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((sys.executable, "-c", "print('no such map:', '{map}', '{rcon_password}')"), "no such map: de_nuke ***"),
        ((sys.executable, "-c", "raise SystemExit('{rcon_password} is odd')"), "*** is odd"),
        ((*SIMULATE, "--nonsense"), "there is no option --nonsense"),
        (("/no/such/program", "{rcon_password}"), "cannot be started"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "did not open port"),
    ],
)
def test_server_that_does_not_start_is_an_error_with_its_output(
    folder: Path, command: tuple[str, ...], said: str
) -> None:
    async def work() -> None:
        fleet = process_fleet(folder, command=command, start_s=3.0 if "sleep" in command[-1] else 60.0)
        with pytest.raises(FleetError) as failed:
            await fleet.allocate(order(fleet))
        assert said in str(failed.value)
        assert PASSWORD not in str(failed.value)
        assert not await fleet.is_alive("srv_1", fleet.slots[0])
        assert list(await fleet.servers()) == []
        await fleet.release("srv_1", fleet.slots[0])

    run(work())


def test_port_of_somebody_else_is_not_taken_for_the_server(folder: Path) -> None:
    async def work() -> None:
        stranger = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, 0)
        port = stranger.sockets[0].getsockname()[1]
        fleet = process_fleet(folder, (port,))
        with pytest.raises(FleetError, match="in use by something else"):
            await fleet.allocate(order(fleet))
        stranger.close()
        await stranger.wait_closed()

    run(work())


def test_server_that_ignores_the_request_to_end_is_killed_with_its_children(folder: Path) -> None:
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    program = (
        f"import signal, socket, subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]);"
        " signal.signal(signal.SIGTERM, signal.SIG_IGN); s = socket.create_server(('{ip}', {port})); time.sleep(600)"
    )

    async def work() -> None:
        fleet = process_fleet(folder, command=(sys.executable, "-c", program))
        await fleet.allocate(order(fleet))
        assert len(running_pids(folder)) == 2
        await fleet.release("srv_1", fleet.slots[0])
        assert running_pids(folder) == []

    run(work())


def test_server_outlives_the_service_that_started_it_and_sees_none_of_its_secrets(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATCHPOD_SECRET", "hidden")

    async def start() -> None:
        fleet = process_fleet(folder, ports, environment={"FROM_FLEET": "1"})
        await fleet.allocate(msgspec.structs.replace(order(fleet), environment={"FROM_ORDER": "2"}))

    async def end() -> None:
        fleet = process_fleet(folder, ports)
        assert await fleet.is_alive("srv_1", fleet.slots[0])
        pid = recorded_pid(folder)
        environment = Path(f"/proc/{pid}/environ").read_text().split("\0")
        assert {"FROM_FLEET=1", "FROM_ORDER=2"} <= set(environment)
        assert "MATCHPOD_SECRET=hidden" not in environment
        assert os.getsid(pid) == pid
        await fleet.release("srv_1", fleet.slots[0])

    ports = free_ports(1)
    run(start())  # its event loop is gone afterwards
    run(end())


def test_cancelled_allocation_leaves_one_server_for_the_next_one(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        first = asyncio.create_task(fleet.allocate(order(fleet)))
        while not running_pids(folder):
            await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await fleet.allocate(order(fleet))
        assert running_pids(folder) == [recorded_pid(folder)]
        await fleet.release("srv_1", fleet.slots[0])

    run(work())


def test_allocations_and_releases_at_the_same_time_leave_nothing_unrecorded(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        wanted = order(fleet)
        calls = [
            work
            for _ in range(3)
            for work in (fleet.allocate(wanted), fleet.release("srv_1", wanted.slot), fleet.allocate(wanted))
        ]
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert result is None or isinstance(result, (GameServer, FleetError))
        assert running_pids(folder) in ([], [recorded_pid(folder)] if list(folder.glob("*.json")) else [])
        await fleet.release("srv_1", wanted.slot)

    run(work())


def test_memory_limit_holds_for_the_server(folder: Path) -> None:
    program = "import socket, time; s = socket.create_server(('{ip}', {port})); time.sleep(600)"

    async def work() -> None:
        fleet = process_fleet(folder, command=(sys.executable, "-c", program), memory_bytes=2**30)
        await fleet.allocate(order(fleet))
        limits = Path(f"/proc/{recorded_pid(folder)}/limits").read_text()
        await fleet.release("srv_1", fleet.slots[0])
        (line,) = [line for line in limits.splitlines() if line.startswith("Max address space")]
        assert line.split()[3:5] == [str(2**30)] * 2

    run(work())


def test_server_that_cannot_be_limited_is_not_left_running(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder, memory_bytes=2**64)  # more than the system can count
        with pytest.raises(FleetError, match="cannot be started"):
            await fleet.allocate(order(fleet))
        assert running_pids(folder) == []

    run(work())


def test_id_that_is_no_file_name_is_refused_and_counts_as_gone(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        with pytest.raises(FleetError):
            await fleet.allocate(order(fleet, "../srv_1"))
        assert not await fleet.is_alive("../srv_1", fleet.slots[0])
        await fleet.release("../srv_1", fleet.slots[0])

    run(work())


def test_folder_that_cannot_be_read_tells_nothing_about_its_servers(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        (folder / "srv_1.json").mkdir(parents=True)
        assert await fleet.is_alive("srv_1", fleet.slots[0])
        with pytest.raises(FleetError):
            await fleet.allocate(order(fleet))
        with pytest.raises(FleetError):
            await fleet.release("srv_1", fleet.slots[0])

    run(work())


def test_password_that_looks_like_an_option_is_refused(folder: Path) -> None:
    async def work() -> None:
        fleet = process_fleet(folder)
        with pytest.raises(FleetError, match="begins like an option"):
            await fleet.allocate(msgspec.structs.replace(order(fleet), rcon_password="-secret"))

    run(work())


# --- servers that run already -------------------------------------------------------------------------------------


def test_released_static_server_is_clean() -> None:
    async def work(one: SimulatorProcess) -> None:
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
        assert await accepts(HOST, one.port)

    with SimulatorProcess() as one:
        run(work(one))


def test_lent_server_is_cleaned_up_by_a_process_that_lent_it_to_another_match() -> None:
    async def work(one: SimulatorProcess) -> None:
        first, second = (StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles()) for _ in range(2))
        await first.allocate(order(first, "srv_1"))
        await second.release("srv_1", one.address)  # whoever claims the ended match first
        server = await second.allocate(order(second, "srv_2"))
        await answer_of(server, "sv_password secret")
        await first.release("srv_2", one.address)
        assert "secret" not in await answer_of(server, "sv_password")

    with SimulatorProcess() as one:
        run(work(one))


def test_servers_of_a_list_are_not_swept() -> None:
    async def work(one: SimulatorProcess) -> None:
        fleet = StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles())
        server = await fleet.allocate(order(fleet))
        await answer_of(server, "sv_password secret")
        assert list(await fleet.servers()) == []
        await fleet.release("srv_1", "")  # as a sweep would: it does not know the place
        assert "secret" in await answer_of(server, "sv_password")

    with SimulatorProcess() as one:
        run(work(one))


def test_static_server_with_another_password_is_not_lent_and_its_release_succeeds() -> None:
    async def work(one: SimulatorProcess) -> None:
        fleet = StaticFleet([StaticServer(one.address, "another")], RconConsoles())
        with pytest.raises(FleetError):
            await fleet.allocate(order(fleet))
        await fleet.release("srv_1", one.address)
        assert await fleet.is_alive("srv_1", one.address)

    with SimulatorProcess() as one:
        run(work(one))


def test_static_server_that_hangs_counts_as_alive_and_its_release_ends() -> None:
    async def work(one: SimulatorProcess) -> None:
        fleet = StaticFleet([StaticServer(one.address, PASSWORD)], RconConsoles(open_s=0.3), clean_pause_s=0.1)
        await fleet.allocate(order(fleet))
        one.freeze()
        assert await fleet.is_alive("srv_1", one.address)
        await fleet.release("srv_1", one.address)
        assert list(await fleet.servers()) == []

    with SimulatorProcess() as one:
        run(work(one))
