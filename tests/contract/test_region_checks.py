"""A check of a region names each fault of its servers, disturbs no match, and leaves the servers as they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cs2_protocol.console_commands import log_address_command
from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import Outside
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.wire.farm import Farm
from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.adapters.rcon_client import RconConsoles
from matchpod.adapters.server_probe import SocketProbe
from matchpod.core.errors import NotFoundError, RateLimitError
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.check_report import CheckItem, CheckState, CheckVerdict, ServerReport
from matchpod.ports import Database, Fleet, GameServer, ServerLease, ServerOrder, Statement
from matchpod.service.ingest.posts import Receipt
from matchpod.service.region_checks import runs
from matchpod.service.region_checks.requests import PAUSE_MS, CheckProgress, RegionCheckView, read_report
from matchpod.service.region_checks.runs import FAILED, LAST_FREE, NEEDS_ALLOCATE, NONE_FREE, WAITING, RegionCheck
from matchpod.service.region_checks.server_check import CheckTimes, GiveWayError, ServerCheck
from matchpod.service.regions.regions import Region
from matchpod.storage import region_checks, servers, slots
from matchpod.storage.region_checks import STALE_MS, CheckPost
from tests.clocks import ManualClock
from tests.contract import agones_cluster, databases, fleet_servers
from tests.contract.agones_cluster import DELETE, AgonesCluster
from tests.contract.fleet_servers import SIMULATOR, process_fleet
from tests.contract.parts import Parts
from tests.server_rows import server_row
from tests.waiting import until

harness = databases.mostly_sqlite_harness
folder = fleet_servers.folder
cluster = agones_cluster.two_servers

OURS, THEIRS = "mp-00000000000000aa", "mp-00000000000000bb"
PASSWORD = "a password"
CODE = "eu"
TIMES = CheckTimes(post_s=1.5, asleep_s=0.3, start_s=120.0, pause_s=0.05)


class CheckedRegion(Parts):
    """A region, and what checks it."""

    def __init__(self, db: Database, fleet: Fleet, base: str, *, speed: float = 1.0) -> None:
        self.region = Region(code=CODE, name="Europe", location="Bonn", speed=speed, fleet=fleet)
        super().__init__(db, clock=ManualClock.of_now(), regions=[self.region], base=base, installation=OURS)
        self.check_deps = msgspec.structs.replace(self.checks._deps, times=TIMES)
        self.checks._deps = self.check_deps
        self.requests = self.services.region_checks

    async def begin(self, *, may_allocate: bool = False) -> RegionCheck:
        """Request a check and begin it, as the loop of a process does."""
        await self.requests.request(CODE, actor="tester", may_allocate=may_allocate)
        row = await region_checks.begin(self.db, CODE, self.clock.now_ms())
        assert row is not None
        return RegionCheck(self.check_deps, self.region, row)

    async def check(self, *, may_allocate: bool = False) -> RegionCheckView:
        await (await self.begin(may_allocate=may_allocate)).run()
        return await self.read()

    async def read(self) -> RegionCheckView:
        found = await self.requests.read(CODE)
        assert found is not None
        return found

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the log posts of one connection, as the service does."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                request, *lines = head.decode("latin-1").split("\r\n")[:-2]
                named = [line.partition(": ") for line in lines]
                headers = [(name.lower().encode(), value.encode()) for name, _, value in named]
                body = await reader.readexactly(int(dict(headers)[b"content-length"]))
                token = request.split()[1].rpartition("/")[2]
                receipt = await self.ingest.store_log(token, headers, body, source="198.51.100.4")
                status = b"200 OK" if receipt is Receipt.STORED else b"410 Gone"
                writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def open_region(db: Database, fleet: Fleet, *, speed: float = 1.0) -> AsyncIterator[CheckedRegion]:
    regions: list[CheckedRegion] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await regions[0].receive(reader, writer)

    receiver = await asyncio.start_server(receive, "127.0.0.1", 0)
    try:
        base = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}"
        regions.append(CheckedRegion(db, fleet, base, speed=speed))
        yield regions[0]
    finally:
        receiver.close()


class RunningServer(NamedTuple):
    address: str
    machine: Machine


@asynccontextmanager
async def simulated_servers(*changes: dict[str, object]) -> AsyncIterator[list[RunningServer]]:
    machines: list[Machine] = []

    def make(options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> Machine:
        machines.append(Machine(options, outside, start_ms=start_ms, instance_token=instance_token))
        return machines[-1]

    base = ServerOptions(port=0, rcon_password=PASSWORD)
    farm = Farm([msgspec.structs.replace(base, **change) for change in changes], make, on_exit=lambda _: None)
    await farm.start()
    try:
        addresses = [f"127.0.0.1:{server.options.port}" for server in farm.servers]
        yield [RunningServer(*found) for found in zip(addresses, machines, strict=True)]
    finally:
        await farm.abort()


def static_fleet(running: Sequence[RunningServer], *, passwords: Mapping[int, str] = {}) -> StaticFleet:
    """Return a fleet of these servers; `passwords` are wrong ones, by number."""
    listed = [StaticServer(one.address, passwords.get(number, PASSWORD)) for number, one in enumerate(running)]
    return StaticFleet(listed, RconConsoles(), owner=OURS)


def with_fault(fault: SetupFault) -> dict[str, object]:
    return {"setup_fault": fault}


EXPECTED = {
    SetupFault.RCON_OFF: (CheckItem.USERCON, CheckVerdict.FAULT),
    SetupFault.CONSOLE_SLOW: (CheckItem.ROUND_TRIP, CheckVerdict.WARNING),
    SetupFault.METAMOD_MISSING: (CheckItem.GAMEINFO, CheckVerdict.FAULT),
    SetupFault.CSS_FAILED: (CheckItem.PLUGIN, CheckVerdict.FAULT),
    SetupFault.MATCHZY_MISSING: (CheckItem.PLUGIN, CheckVerdict.FAULT),
    SetupFault.OLD_BUILD: (CheckItem.BUILD, CheckVerdict.FAULT),
    SetupFault.NO_LOGIN_TOKEN: (CheckItem.LOGIN_TOKEN, CheckVerdict.FAULT),
    SetupFault.WRONG_CLOCK: (CheckItem.CLOCK, CheckVerdict.WARNING),
    SetupFault.LOG_REFUSED: (CheckItem.LOG_POST, CheckVerdict.FAULT),
    SetupFault.LOG_UNREACHABLE: (CheckItem.LOG_POST, CheckVerdict.FAULT),
    SetupFault.LOG_NOT_KEPT: (CheckItem.LOG_ADDRESS, CheckVerdict.FAULT),
}
"""What a check must find: not a silent console, which takes longer, and not hibernation, which is no fault."""

ASLEEP = {**with_fault(SetupFault.HIBERNATES), "commands": ("sv_hibernate_when_empty 1",)}


def problems(report: ServerReport) -> dict[CheckItem, CheckVerdict]:
    return {one.item: one.verdict for one in report.findings if one.verdict is not CheckVerdict.OK}


def take(slot: str, server_id: str) -> Statement:
    sql = "INSERT INTO slots (region, slot, server_id) VALUES (:region, :slot, :server_id)"
    return Statement(sql, {"region": CODE, "slot": slot, "server_id": server_id})


def text_about_the_post(report: ServerReport) -> str:
    return next(one.text for one in report.findings if one.item is CheckItem.LOG_POST)


@asynccontextmanager
async def static_region(
    db: Database, *options: dict[str, object]
) -> AsyncIterator[tuple[CheckedRegion, list[RunningServer]]]:
    """Provide a region with a static server for each of these options, and the servers."""
    async with simulated_servers(*options) as running, open_region(db, static_fleet(running)) as region:
        yield region, running


async def wait_for_match(db: Database, name: str = "srv_waiting") -> None:
    row = server_row(name, phase=ServerPhase.PENDING, slot=None)
    await servers.create(db, row, idempotency=None)


async def test_healthy_server_is_ok_in_every_line_and_left_as_it_was(db: Database) -> None:
    async with static_region(db, {}) as (region, running):
        machine = running[0].machine
        before = dict(machine.variables._changed)
        found = await region.check()
        (report,) = found.servers
        assert (found.state, found.healthy, found.note) == (CheckProgress.DONE, True, None)
        assert (report.server, report.state) == (running[0].address, CheckState.OK)
        assert [one.item for one in report.findings] == [item for item in CheckItem if item is not CheckItem.START]
        assert {one.verdict for one in report.findings} == {CheckVerdict.OK}
        assert "A post from 198.51.100.4 arrived" in text_about_the_post(report)
        assert (machine.stream.listeners, machine.stream.is_on) == ([], False)
        assert machine.variables._changed == before
        assert await slots.taken(db) == {}
        assert await db.read("SELECT token_hash FROM check_posts") == []


async def test_every_fault_is_named_with_what_to_do(db: Database) -> None:
    async with static_region(db, {}, *map(with_fault, EXPECTED)) as (region, _):
        found = await region.check()
        healthy, *faulty = found.servers
        assert (found.healthy, healthy.state) == (False, CheckState.OK)
        for (fault, (item, verdict)), report in zip(EXPECTED.items(), faulty, strict=True):
            assert problems(report).get(item) is verdict, fault
            assert (report.state is CheckState.FAULT) == (verdict is CheckVerdict.FAULT), fault
            assert all(
                one.advice for one in report.findings if one.verdict in (CheckVerdict.FAULT, CheckVerdict.WARNING)
            )


class OnTheInternet(SocketProbe):
    """Takes every server for one with a public address."""

    async def is_public(self, host: str) -> bool:
        return True


async def test_server_of_a_lan_whose_players_come_from_the_internet_is_a_fault(db: Database) -> None:
    async with static_region(db, {"commands": ("sv_lan 1",)}) as (region, _):
        region.check_deps = msgspec.structs.replace(region.check_deps, probe=OnTheInternet())
        (report,) = (await region.check()).servers
        assert problems(report) == {CheckItem.LOGIN_TOKEN: CheckVerdict.FAULT}


@pytest.mark.parametrize(
    ("host", "is_public"),
    [("198.51.100.4", False), ("8.8.8.8", True), ("2001:4860:4860::8888", True), ("10.0.0.7", False), ("a..b", False)],
)
async def test_address_for_players_is_known_to_be_public(host: str, is_public: bool) -> None:
    assert await SocketProbe().is_public(host) is is_public


async def test_wrong_password_and_a_server_that_does_not_run_are_named_and_nothing_else(db: Database) -> None:
    async with simulated_servers({}) as gone:
        pass
    async with (
        simulated_servers({}) as running,
        open_region(db, static_fleet([*running, *gone], passwords={0: "no"})) as region,
    ):
        wrong, down = (await region.check()).servers
        assert problems(wrong) == {CheckItem.PASSWORD: CheckVerdict.FAULT}
        assert problems(down) == {CheckItem.RCON: CheckVerdict.FAULT}
        assert "Nothing accepts connections" in down.findings[0].text


async def test_log_other_receivers_and_hibernation_are_as_before_also_with_an_older_build(db: Database) -> None:
    async with static_region(db, {}, {}, ASLEEP) as (region, running):
        logging, older, asleep = (one.machine for one in running)
        logging.execute("log on", "")
        logging.execute(log_address_command("http://127.0.0.1:9/of-the-owner"), "")
        older.stream.remove = lambda url: False  # type: ignore[method-assign]
        found = await region.check()
        assert found.healthy
        assert [one.url for one in logging.stream.listeners] == ["http://127.0.0.1:9/of-the-owner"]
        assert logging.stream.is_on
        assert older.stream.listeners == []
        assert "was woken for it" in text_about_the_post(found.servers[2])
        assert asleep.variables.is_on("sv_hibernate_when_empty")


# --- matches ------------------------------------------------------------------------------------------------------


async def test_server_with_a_match_is_only_named(db: Database) -> None:
    async with static_region(db, {}, {}) as (region, running):
        ours, theirs = running
        await servers.create(db, server_row("srv_x", slot=None), idempotency=None)
        await db.write([take(ours.address, "srv_x")])
        machine = theirs.machine
        machine.execute("log on", "")
        machine.execute(log_address_command(f"http://127.0.0.1:9/ingest/logs/{THEIRS}-token"), "")
        found = await region.check()
        assert [one.state for one in found.servers] == [CheckState.IN_USE] * 2
        assert found.healthy is None
        assert [len(one.machine.stream.listeners) for one in running] == [0, 1], "as before"
        assert "srv_x uses it" in (found.servers[0].note or "")
        assert THEIRS in (found.servers[1].note or "")


async def test_server_that_is_checked_is_held_like_one_with_a_match(db: Database) -> None:
    async with static_region(db, with_fault(SetupFault.LOG_REFUSED)) as (region, running):
        check = await region.begin()
        task = asyncio.create_task(check.run())
        await until(lambda: bool(running[0].machine.stream.listeners), "the check waits for a post")
        row = server_row("srv_new", phase=ServerPhase.ALLOCATING, slot=None)
        await servers.create(db, row, idempotency=None)
        assert await slots.reserve(db, row, [running[0].address]) is None
        await task
        assert await slots.reserve(db, row, [running[0].address]) == running[0].address
        (report,) = (await region.read()).servers
        assert report.state is CheckState.FAULT, "a match that has just been created waits for the check"


async def test_check_gives_way_to_a_match_that_waits(db: Database) -> None:
    async with static_region(db, with_fault(SetupFault.LOG_REFUSED), {}) as (region, running):
        check = await region.begin()
        task = asyncio.create_task(check.run())
        await until(lambda: bool(running[0].machine.stream.listeners), "the check waits for a post")
        await wait_for_match(db)
        await task
        found = await region.read()
        assert [(one.state, one.note) for one in found.servers] == [(CheckState.NOT_CHECKED, WAITING)] * 2
        assert running[0].machine.stream.listeners == []
        assert await slots.taken(db) == {}
        row = await servers.get(db, "srv_waiting")
        assert row is not None
        assert row.next_at_ms <= region.clock.now_ms(), "the match is due, since a server is free"


async def test_check_that_is_stopped_leaves_the_server_first(db: Database) -> None:
    async with static_region(db, with_fault(SetupFault.LOG_REFUSED)) as (region, running):
        stream = running[0].machine.stream
        task = asyncio.create_task((await region.begin()).run())
        await until(lambda: bool(stream.listeners), "the check waits for a post")
        task.cancel()
        await asyncio.wait([task])
        assert (stream.listeners, stream.is_on, await slots.taken(db)) == ([], False, {})
        assert await db.read("SELECT token_hash FROM check_posts") == []


class SlowlyLeftFleet(StaticFleet):
    """Starts a server without end, and releases it when a test says so."""

    def __init__(self) -> None:
        super().__init__([StaticServer("192.0.2.1:27015", "a password")], RconConsoles())
        self.is_starting, self.is_leaving, self.may_leave = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @property
    def keeps_servers(self) -> bool:
        return False

    async def allocate(self, order: ServerOrder) -> GameServer:
        self.is_starting.set()
        await asyncio.Future[None]()
        raise AssertionError

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        self.is_leaving.set()
        await self.may_leave.wait()


async def test_check_that_is_stopped_is_renewed_until_it_has_left_its_server(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RENEW_S", 0.01)
    fleet = SlowlyLeftFleet()
    async with open_region(db, fleet) as region:
        task = asyncio.create_task((await region.begin()).run())
        await fleet.is_starting.wait()
        task.cancel()
        await fleet.is_leaving.wait()
        region.clock.at_ms += STALE_MS
        now_ms = region.clock.now_ms()

        async def is_renewed() -> bool:
            row = await region_checks.newest(db, CODE)
            return row is not None and row.updated_at_ms >= now_ms

        await until(is_renewed, "the row is renewed")
        fleet.may_leave.set()
        await asyncio.wait([task])
        assert (task.cancelled(), await slots.taken(db)) == (True, {})


@pytest.mark.parametrize("is_stopped", [False, True], ids=["frozen", "stopped"])
async def test_check_changes_no_server_that_it_no_longer_holds(db: Database, is_stopped: bool) -> None:
    async with static_region(db, ASLEEP) as (region, running):
        machine = running[0].machine
        task = asyncio.create_task((await region.begin()).run())
        await until(lambda: not machine.variables.is_on("sv_hibernate_when_empty"), "the server is kept awake")
        await db.write([Statement("DELETE FROM slots")])
        if is_stopped:
            task.cancel()
        await asyncio.wait([task])
        assert not machine.variables.is_on("sv_hibernate_when_empty"), "it is another's by now"
        assert is_stopped or machine.stream.listeners == []


async def test_check_gives_way_while_a_server_that_it_started_loads(db: Database) -> None:
    async with simulated_servers({}) as running:
        port = int(running[0].address.rpartition(":")[2])
    server = GameServer(ip="127.0.0.1", port=port, rcon_host="127.0.0.1", rcon_port=port, rcon_password="a password")

    async def go_on() -> None:
        raise GiveWayError

    async def report(_: ServerReport) -> None:
        pass

    async with open_region(db, static_fleet(running)) as region:
        check = ServerCheck(region.check_deps, "chk", "a server", server, is_real_time=True, go_on=go_on, report=report)
        async with asyncio.timeout(10):
            with pytest.raises(GiveWayError):
                await check.run()


async def test_last_free_server_is_not_held_where_matches_do_not_wait(db: Database) -> None:
    async with static_region(db, {}) as (region, _):
        region.check_deps = msgspec.structs.replace(region.check_deps, pending_ms=0)
        (report,) = (await region.check()).servers
        assert (report.state, report.note) == (CheckState.NOT_CHECKED, LAST_FREE)


# --- other fleets -------------------------------------------------------------------------------------------------


async def test_process_fleet_starts_one_server_and_stops_it(db: Database, folder: Path) -> None:
    fleet = process_fleet(folder, command=SIMULATOR)
    async with open_region(db, fleet, speed=60.0) as region:
        found = await region.check()
        (report,) = found.servers
        assert (found.healthy, report.state) == (True, CheckState.OK), report
        assert found.note == "One server was started; 1 more would be started by the same command."
        assert (await fleet.servers(), await slots.taken(db)) == ([], {})


async def test_process_that_cannot_be_started_is_a_fault(db: Database, folder: Path) -> None:
    fleet = process_fleet(folder, command=("/nonexistent/cs2", "-port", "{port}"))
    async with open_region(db, fleet) as region:
        (report,) = (await region.check()).servers
        assert problems(report) == {CheckItem.START: CheckVerdict.FAULT}
        assert "No such file or directory" in report.findings[0].text
        assert await slots.taken(db) == {}


async def test_process_fleet_without_a_free_port_is_not_checked(db: Database, folder: Path) -> None:
    fleet = process_fleet(folder)
    for number, slot in enumerate(fleet.slots):
        await db.write([take(slot, f"srv_{number}")])
    async with open_region(db, fleet) as region:
        found = await region.check()
        assert [one.state for one in found.servers] == [CheckState.IN_USE] * 2
        assert (found.healthy, found.note) == (None, NONE_FREE)


async def test_pod_is_checked_only_if_asked_for_and_deleted_afterwards(db: Database, cluster: AgonesCluster) -> None:
    async with open_region(db, cluster.create()) as region:
        found = await region.check()
        assert (found.servers, found.note, found.healthy) == ((), NEEDS_ALLOCATE, None)
        names = set(cluster.api.game_servers.running)
        region.clock.at_ms += PAUSE_MS
        found = await region.check(may_allocate=True)
        (report,) = found.servers
        assert (report.state, report.server in names) == (CheckState.OK, True), report
        (deletion,) = [call for call in cluster.api.calls if call.right == DELETE]
        assert deletion.name == report.server


async def test_no_pod_is_taken_while_matches_wait(db: Database, cluster: AgonesCluster) -> None:
    async with open_region(db, cluster.create()) as region:
        await wait_for_match(db)
        names = set(cluster.api.game_servers.running)
        found = await region.check(may_allocate=True)
        assert (found.servers, found.note) == ((), WAITING)
        assert set(cluster.api.game_servers.running) == names


# --- requests -----------------------------------------------------------------------------------------------------


async def requested(region: CheckedRegion) -> str:
    return (await region.requests.request(CODE, actor="tester")).id


async def test_one_check_runs_at_a_time_and_the_next_one_later(db: Database) -> None:
    async with static_region(db) as (region, _):
        check_id = await requested(region)
        region.clock.at_ms += PAUSE_MS
        assert await requested(region) == check_id, "it is under way"
        await region_checks.begin(db, CODE, region.clock.now_ms())
        assert await region_checks.begin(db, CODE, region.clock.now_ms()) is None, "another process has begun it"
        assert await region_checks.renew(db, check_id, region.clock.now_ms(), report=b"{}", is_done=True)
        second = await requested(region)
        assert second != check_id
        assert not await region_checks.renew(db, check_id, region.clock.now_ms()), "it was replaced"
        row = await region_checks.begin(db, CODE, region.clock.now_ms())
        assert row is not None
        await region_checks.renew(db, second, region.clock.now_ms(), report=b"{}", is_done=True)
        with pytest.raises(RateLimitError):
            await requested(region)
        acts = await db.read("SELECT action, actor, target FROM audit_log")
        assert acts == [("region_checked", "tester", CODE)] * 2


async def test_check_of_a_dead_process_is_interrupted_and_may_be_repeated(db: Database) -> None:
    async with static_region(db, {}) as (region, _):
        first = await region.begin()
        assert first is not None
        region.clock.at_ms += STALE_MS + 1
        assert (await region.read()).state is CheckProgress.INTERRUPTED
        assert await region_checks.running_ids(db, region.clock.now_ms()) == set()
        assert (await region.check()).healthy


async def test_request_that_came_too_early_for_the_service_is_not_run(db: Database) -> None:
    async with static_region(db, {}) as (region, _):
        await requested(region)
        region.clock.at_ms += STALE_MS + 1
        loop = asyncio.create_task(region.checks.run())
        second = await requested(region)

        async def is_done() -> bool:
            return (await region.read()).state is CheckProgress.DONE

        await until(is_done, "the second request is done")
        loop.cancel()
        found = await region.read()
        assert (found.id, found.healthy) == (second, True)


async def test_check_holds_one_slot_at_a_time(db: Database) -> None:
    async with static_region(db) as (region, _):
        await requested(region)
        row = await region_checks.begin(db, CODE, region.clock.now_ms())
        assert row is not None
        assert await region_checks.hold_slot(db, row, "a")
        assert not await region_checks.hold_slot(db, row, "b"), "which the key of the table refuses"
        assert await slots.taken(db) == {CODE: {"a": row.id}}


async def test_unknown_region_is_not_found(db: Database) -> None:
    async with static_region(db) as (region, _):
        with pytest.raises(NotFoundError, match=r"Unknown region 'us'\. Known regions: eu\."):
            await region.requests.request("us", actor="tester")
        assert await region.requests.read(CODE) is None


async def test_check_that_fails_is_done_with_a_note(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async with static_region(db, {}) as (region, _):
        check = await region.begin()
        monkeypatch.setattr(region.region.fleet, "waiting_server", None)
        with pytest.raises(TypeError):
            await check.run()
        found = await region.read()
        assert (found.state, found.note) == (CheckProgress.DONE, FAILED)


async def test_post_with_an_unknown_token_writes_nothing(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "write", None)
    post = CheckPost(received_ms=1, source="", stamp=None)
    assert not await region_checks.record_post(db, "check-x", post)


def test_report_of_another_version_is_empty() -> None:
    assert read_report(b'{"servers": 7}').servers == ()
