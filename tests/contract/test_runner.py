"""Single steps of the runner: starting and configuring servers, effects, liveness, deadlines, release.

Whole matches are tested in test_supervisor.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import msgspec
import pytest

from cs2_protocol.console_commands import end_match_command
from cs2_protocol.game import Side
from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import UNKNOWN_USER_ID, CancelReason, Kick, StartPlay
from matchpod.core.errors import UnavailableError
from matchpod.core.events import PlayerJoinedSide, PlayersSeen
from matchpod.core.failures import Failure
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.match.presence import NOT_LISTED, Presence
from matchpod.core.model import CvarSetting, SeriesFormat
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.server_loss import NO_POSTS_MS, SILENCE_MS, FleetReport, Silence
from matchpod.core.views.progress import PublicPhase
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import (
    ConsoleFaultError,
    ConsoleLostError,
    Database,
    FleetError,
    GameServer,
    Row,
    ServerOrder,
    Statement,
    Value,
)
from matchpod.service.access.audit import Audit
from matchpod.service.access.quotas import UNLIMITED
from matchpod.service.common.principals import Principal, Role, Scope
from matchpod.service.end_match import end_match
from matchpod.service.ingest.posts import Ingest, Receipt
from matchpod.service.match_log import fold
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.match_log.turns import FoldTurns
from matchpod.service.matches import Matches
from matchpod.service.regions.regions import Region
from matchpod.service.runner import configure, effects, liveness, run, start, supervisor
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.storage import outbox, raw_log, servers
from matchpod.storage.servers import HANDOVER_MS, LEASE_MS
from tests.contract import databases
from tests.contract.databases import DelegatingDatabase
from tests.contract.driven_matches import PLAYERS, SETTINGS, CrashableDatabase, Process, World, open_world
from tests.contract.simulated_region import OPERATOR_PASSWORD, SimulatedServer
from tests.operations import free_disk
from tests.vaults import tokens_of

harness = databases.sqlite_harness

STAMP = "11/15/2026 - 09:00:00.000"
STEAM_ID_BASE = 76561197960265728
UNLISTED_PLAYER = "76561198000000099"


class RecordedPhases(DelegatingDatabase):
    """Records the phases that are written to the row of a running match."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.phases: list[Value] = []

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.phases += [one.params["match_phase"] for one in statements if "match_phase = :" in one.sql]
        return await super().write(statements)


# --- starting a server ------------------------------------------------------------------------------------------------


async def test_error_with_unprintable_characters_is_stored_and_counted(db: Database) -> None:
    async with open_world(db) as world:
        world.region.allocation_errors = [FleetError("its last output: \x00\ud800") for _ in range(20)]
        world.start()
        await world.create()
        assert (await world.outcome()).reason == CancelReason.SERVER_FAILED
        row = await world.row()
        assert (row.tries, row.error) == (3, "its last output:   ")


async def test_phase_of_the_match_is_stored_for_lists(db: Database) -> None:
    stored = RecordedPhases(db)
    async with open_world(stored) as world:
        world.start()
        await world.create()
        await world.outcome()
        assert (await world.row()).match_phase is PublicPhase.ENDED
    passed = [phase.value for phase in PublicPhase]
    assert stored.phases == sorted(set(stored.phases), key=lambda phase: passed.index(str(phase))), (
        "each phase is written once, when it changes"
    )
    assert stored.phases[-1] == PublicPhase.LIVE, "a slow process may skip a short one before it"


async def test_server_that_ends_during_configuration_is_replaced_at_once(db: Database) -> None:
    async with open_world(db) as world:
        world.region.is_paused = True
        world.start()
        await world.create()

        async def has_commands() -> bool:
            return any(server.commands for server in world.region.running.values())

        await world.until(has_commands, "it is being configured")
        ended_ms = world.clock.now_ms()
        world.region.running["srv_1"].exit(is_crash=True)
        world.region.is_paused = False

        errors: set[str | None] = set()

        async def is_replaced() -> bool:
            errors.add((await world.row()).error)  # reset once the next server is running
            return len(world.region.orders) == 2

        await world.until(is_replaced, "there is another server", within_s=12.0)
        # Which of the two is detected first depends on milliseconds.
        assert errors & {"the server process ended during configuration", "no answer"}
        await world.until_phase(ServerPhase.RUNNING)
        allocated_ms = (await world.row()).allocated_at_ms
        assert allocated_ms is not None
        assert allocated_ms > ended_ms, "the time to join counts from the second server"


async def test_posts_of_a_replaced_server_are_rejected(db: Database) -> None:
    async with open_world(db) as world:
        world.region.allocation_errors = [FleetError("it does not answer")]
        await world.create(scenario="no_show")
        before = await world.row()  # with the tokens of the first attempt; the next one gets new tokens
        process = world.start()
        await world.until_phase(ServerPhase.RUNNING)
        row = await world.row()
        assert tokens_of(row).log != tokens_of(before).log
        assert tokens_of(row).report != tokens_of(before).report
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        assert (
            await ingest.store_log(tokens_of(before).log, {}, f"{STAMP} - anything\n".encode())
            is Receipt.UNKNOWN_SENDER
        )
        assert await ingest.store_report(tokens_of(before).report, b"{}") is Receipt.UNKNOWN_SENDER


class _LogLosingIngest:
    """Rejects the log of a server and stores everything else."""

    def __init__(self, ingest: Ingest) -> None:
        self.store_report = ingest.store_report
        self.match_file = ingest.match_file

    async def store_log(self, token: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        raise UnavailableError("The database is unavailable. Retry later.")


def reject_log_posts(world: World, base: str) -> Ingest:
    ingest = world.region.ingest_at(base)
    assert ingest is not None
    world.region.add_ingest(base, cast(Ingest, _LogLosingIngest(ingest)))
    return ingest


async def test_plugin_report_does_not_prove_that_log_posts_arrive(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configure, "LOG_S", 2.0)
    async with open_world(db) as world:
        process = world.start()
        reject_log_posts(world, process.base)
        await world.create(scenario="no_show")

        async def has_failed() -> bool:
            row = await world.row()
            assert row.phase is ServerPhase.ALLOCATING
            return row.tries > 0

        await world.until(has_failed, "the attempt has failed")
        assert "no log post arrived" in ((await world.row()).error or "")


@pytest.mark.parametrize("does_load", [True, False])
async def test_workshop_map_is_accepted_only_after_the_map_has_changed(
    db: Database, monkeypatch: pytest.MonkeyPatch, does_load: bool
) -> None:
    monkeypatch.setattr(start, "MIN_TRY_S", 6.0)
    monkeypatch.setattr(start, "TRY_S", 6.0)
    game = msgspec.structs.replace(SETTINGS, maps=("workshop/3070244462",), team1=None, team2=None)
    async with open_world(db) as world:
        world.region.use_static_server()
        world.region.ignored_commands = set() if does_load else {"host_workshop_map"}
        world.start()
        await world.create(scenario="no_show", game=game, tries=start.TRIES - 1)
        if does_load:
            await world.until_phase(ServerPhase.RUNNING)
        else:
            assert (await world.outcome()).reason == CancelReason.SERVER_FAILED


async def test_process_that_lost_its_lease_does_not_mark_the_match_as_configured(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        row = await world.row()
        stale = Lease(msgspec.structs.replace(row, fence=row.fence - 1), db, world.clock)
        line = ConsoleLine(stale, process.deps)
        entries = await raw_log.newest_seq(db, row.id)
        world.region.is_paused = True
        world.region.running["srv_1"].machine.execute(end_match_command(), "")  # there is something to configure
        with pytest.raises(LeaseLostError):
            await configure.configure(stale, process.deps, line, is_fresh=True)
        later = await raw_log.read_after(db, row.id, entries, limit=100)
        assert EntryKind.CONFIGURED not in [entry.kind for entry in later]


async def test_match_that_is_over_is_not_configured_again(db: Database) -> None:
    """It was played while no process drove it; its plugin may still have it, with the settings of the next map."""
    async with open_world(db) as world:
        process = world.start()
        await world.create()
        await world.outcome()
        lease = Lease(
            msgspec.structs.replace(await world.row(), lease_until_ms=world.clock.now_ms() + LEASE_MS), db, world.clock
        )
        line = FakeLine()
        await configure.configure(lease, process.deps, cast(ConsoleLine, line), is_fresh=True)
        assert line.commands == []


# --- static servers ---------------------------------------------------------------------------------------------------

GRAVITY = CvarSetting("sv_gravity", "200")
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))


def position(server: SimulatedServer, command: str) -> int:
    return next(number for number, sent in enumerate(server.commands) if sent.startswith(command))


async def test_static_server_is_reset_before_a_match_and_restored_after_it(db: Database) -> None:
    async with open_world(db) as world:
        server = world.region.use_static_server()
        before = server.machine.execute("sv_gravity", "")
        process = world.start()
        await world.create(scenario="no_show", cvars=[GRAVITY])
        await world.until_phase(ServerPhase.RUNNING)
        assert "200" in server.machine.execute("sv_gravity", "")
        for command in ("css_endmatch", "logaddress_delall_http"):
            assert position(server, command) < position(server, "logaddress_add_http")
        await world.cancel()
        process.supervisor.notify("srv_1")
        await world.outcome()
        assert server.machine.execute("sv_gravity", "") == before


async def test_static_server_is_restored_after_a_failed_attempt(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configure, "LOG_S", 2.0)
    async with open_world(db) as world:
        server = world.region.use_static_server()
        before = server.machine.execute("sv_gravity", "")
        process = world.start()
        reject_log_posts(world, process.base)
        await world.create(scenario="no_show", cvars=[GRAVITY])

        async def has_failed() -> bool:
            return (await world.row()).slot is None and bool(world.region.releases)

        await world.until(has_failed, "the attempt has failed")
        assert "sv_gravity 200" in server.commands
        assert server.machine.execute("sv_gravity", "") == before
        assert (await world.row()).changed_cvars is None


def matches_of(process: Process) -> Matches:
    deps = process.deps
    return Matches(
        db=deps.db,
        clock=deps.clock,
        vault=deps.vault,
        regions=deps.regions,
        live=deps.live,
        remote=RemoteMatches(db=deps.db, regions=deps.regions, turns=FoldTurns(deps.db)),
        read_cvars=read_custom_cvars,
        notify=process.supervisor.notify,
        audit=Audit(db=deps.db, clock=deps.clock),
        metrics=deps.metrics,
        quotas=UNLIMITED,
        disk=free_disk(deps.clock),
        installation=deps.installation,
    )


async def test_rcon_password_of_a_static_server_is_not_shown(db: Database) -> None:
    async with open_world(db) as world:
        world.region.use_static_server()
        process = world.start()
        name = "srv_" + "0" * 26
        await world.create(name, scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, name)
        row = await world.row(name)
        assert row.rcon_password is not None
        assert process.deps.vault.open(row.rcon_password) == OPERATOR_PASSWORD
        view = await matches_of(process).get(OWNER, name)
        assert (view.status, view.ip, view.rcon_password) == ("running", "203.0.113.7", None)


# --- effects ----------------------------------------------------------------------------------------------------------


class FakeLine:
    """A fake `ConsoleLine`. The first `failures` commands fail, as while a map is loading.

    Commands that begin with `unanswered` are executed without an answer; the answer to `faulty` is too long.
    """

    def __init__(
        self, *, failures: int = 0, map_name: str = "de_nuke", unanswered: str | None = None, faulty: str | None = None
    ) -> None:
        self.failures = failures
        self.faulty = faulty
        self.map_name = map_name
        self.unanswered = unanswered
        self.players: dict[str, str] = {}
        """The names of the connected players, by id; their user ids begin at 2."""
        self.commands: list[str] = []

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 5.0) -> list[str]:
        return [await self.run(command, timeout_s=timeout_s) for command in commands]

    async def ask(self, command: str, parse: Callable[[str], object], *, timeout_s: float = 5.0) -> object:
        return parse(await self.run(command, timeout_s=timeout_s))

    async def run(self, command: str, *, timeout_s: float = 5.0) -> str:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConsoleLostError("the connection was reset")
        self.commands.append(command)
        if self.faulty is not None and command.startswith(self.faulty):
            raise ConsoleFaultError("packet size 8388618 is not between 10 and 65546")
        if self.unanswered is not None and command.startswith(self.unanswered):
            raise ConsoleLostError("the connection was reset")
        if command == "status_json":
            clients = [{"steamid64": player_id, "name": name} for player_id, name in self.players.items()]
            return json.dumps({"server": {"map": self.map_name, "clients": clients}})
        if command == "status":
            rows = [f"{number} 00:40 9 0 active 0 192.0.2.1:1 '{name}'\n" for number, name in self._numbered()]
            return f"---------players--------\n{''.join(rows)}#end\n"
        return ""

    def _numbered(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.players.values(), start=2)


class ManualClock:
    def __init__(self, now_ms: int) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms


class RunnerFixture(msgspec.Struct):
    """A match that no supervisor drives, and what an effect executor and a liveness probe need."""

    lease: Lease
    deps: Deps
    region: Region
    fold: Fold
    clock: ManualClock

    @property
    def match(self) -> Match:
        return self.fold.match


class _FakeFleet:
    """A fleet with given reports; then it does not know more."""

    def __init__(self, answers: Sequence[FleetReport] = ()) -> None:
        self.answers = list(answers)
        self.on_probe: Callable[[], object] = bool

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        self.on_probe()
        return self.answers.pop(0) if self.answers else FleetReport.UNKNOWN


@asynccontextmanager
async def open_fixture(db: Database, fleet: _FakeFleet | None = None) -> AsyncIterator[RunnerFixture]:
    async with open_world(db) as world:
        process = world.start()
        await world.create(phase=ServerPhase.RELEASED)
        row, clock = await world.row(), ManualClock(world.clock.now_ms())
        region = process.deps.regions.get("eu")
        assert region is not None
        lease = Lease(msgspec.structs.replace(row, lease_until_ms=clock.at_ms + LEASE_MS), db, clock)
        yield RunnerFixture(
            lease,
            msgspec.structs.replace(process.deps, clock=clock),
            msgspec.structs.replace(region, fleet=fleet or _FakeFleet()),
            Fold.begin(row, 1.0),
            clock,
        )


def executor_of(
    fixture: RunnerFixture, line: FakeLine, on_failed: Callable[[Failure], None] = print
) -> effects.EffectExecutor:
    console = cast(ConsoleLine, line)
    return effects.EffectExecutor(
        fixture.lease, fixture.deps, fixture.region, line=console, match=fixture.match, on_failed=on_failed
    )


@asynccontextmanager
async def running(executor: effects.EffectExecutor) -> AsyncIterator[None]:
    task = asyncio.create_task(executor.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_settings_are_restored_even_if_a_loading_server_drops_the_console_repeatedly(db: Database) -> None:
    async with open_fixture(db) as fixture:
        line = FakeLine(failures=2 * effects.TRIES)
        executor = executor_of(fixture, line)
        async with running(executor):
            executor.enqueue(effects.MapLoaded())
            await until(lambda: any(command.startswith("mp_maxrounds") for command in line.commands))


async def test_server_that_never_loads_its_map_fails(db: Database) -> None:
    async with open_fixture(db) as fixture:
        line, why = FakeLine(map_name="de_mirage"), list[Failure]()
        executor = executor_of(fixture, line, why.append)
        fixture.match.phase = MatchPhase.STARTING
        async with running(executor):
            for _ in range((effects.WRONG_MAPS + 1) * effects.PLUGIN_LOADS_AFTER):
                executor.enqueue(StartPlay(1))
            await until(lambda: bool(why))
        assert why == [Failure.MAP_NOT_LOADED]
        assert line.commands.count("changelevel de_nuke") == effects.WRONG_MAPS
        assert "css_start" not in line.commands


async def test_match_whose_play_does_not_start_fails(db: Database) -> None:
    async with open_fixture(db) as fixture:
        line, why = FakeLine(), list[Failure]()
        executor = executor_of(fixture, line, why.append)
        fixture.match.phase = MatchPhase.STARTING
        limit_ms = round(effects.START_S / fixture.region.speed) * 1000

        async def request_start(after_ms: int) -> None:
            fixture.clock.at_ms += after_ms
            fixture.lease.until_ms = fixture.clock.at_ms + LEASE_MS
            line.commands.clear()
            executor.enqueue(StartPlay(1))
            await until(lambda: "css_start" in line.commands or bool(why))

        async with running(executor):
            await request_start(0)
            await request_start(limit_ms)
            fixture.match.live_at_ms = fixture.clock.at_ms  # it was live, and the server returned to warmup
            await request_start(limit_ms)
            await request_start(limit_ms)
            assert why == []
            await request_start(1)
        assert why == [Failure.PLAY_NOT_STARTED]
        assert "css_start" not in line.commands


async def test_map_change_that_drops_the_console_is_not_retried(db: Database) -> None:
    """If it were retried, a server that is loading would reach the limit of failed map changes."""
    async with open_fixture(db) as fixture:
        line, why = FakeLine(map_name="de_mirage", unanswered="changelevel"), list[str]()
        executor = executor_of(fixture, line, why.append)
        fixture.match.phase = MatchPhase.STARTING
        async with running(executor):
            for _ in range(effects.WRONG_MAPS * effects.PLUGIN_LOADS_AFTER):
                executor.enqueue(StartPlay(1))
            executor.enqueue(Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, NOT_LISTED))
            await until(lambda: "status" in line.commands)
        assert why == []
        assert line.commands.count("changelevel de_nuke") == effects.WRONG_MAPS
        assert fixture.deps.metrics.console_failures.value("eu") == 0


async def test_unlisted_player_without_a_connect_line_is_kicked(db: Database) -> None:
    async with open_fixture(db) as fixture:
        line = FakeLine()
        line.players = {PLAYERS[0]: "listed", UNLISTED_PLAYER: "it's me"}
        executor = executor_of(fixture, line)
        listed = PlayersSeen(0, names=line.players, load_ms=1)
        fixture.match.presence.mark_doubtful(0)
        joined = PlayerJoinedSide(0, UNLISTED_PLAYER, "it's me", Side.CT, None)
        kicks = [*fixture.match.presence.apply(listed, 1), *fixture.match.presence.apply(joined, 1)]
        assert kicks == 2 * [Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, NOT_LISTED)]
        async with running(executor):
            for kick in kicks:
                executor.enqueue(kick)
            await until(lambda: line.commands.count(f'kickid 3 "{NOT_LISTED}"') == len(kicks))


async def test_player_who_has_left_is_not_kicked(db: Database) -> None:
    """Neither by user id, which another player may have by now, nor if the server does not list the player."""
    async with open_fixture(db) as fixture:
        line = FakeLine()
        line.players = {PLAYERS[0]: "listed"}
        executor = executor_of(fixture, line)
        async with running(executor):
            executor.enqueue(Kick(UNLISTED_PLAYER, 2, NOT_LISTED))
            for _ in range(2):  # when the second is executed, the first is done
                executor.enqueue(Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, NOT_LISTED))
            await until(lambda: line.commands.count("status") == 2)
        assert set(line.commands) == {"status", "status_json"}


async def test_unlisted_player_is_kicked_without_the_old_user_id_after_a_resume(db: Database) -> None:
    """Another player may have the same user id by now."""
    async with open_fixture(db) as fixture:
        fixture.match.presence.turned_away[UNLISTED_PLAYER] = 3
        executor = executor_of(fixture, FakeLine())
        executor.resume()
        queued = [executor._queue.get_nowait() for _ in range(executor._queue.qsize())]
        assert queued == [effects.Resume(), Kick(UNLISTED_PLAYER, UNKNOWN_USER_ID, NOT_LISTED)]


# --- liveness ---------------------------------------------------------------------------------------------------------


def probe_of(
    fixture: RunnerFixture, line: FakeLine, why: list[str], on_failed: Callable[[Failure], None] = print
) -> liveness.LivenessProbe:
    """Return a liveness probe that appends the reason of a loss to `why`."""
    return liveness.LivenessProbe(
        fixture.lease,
        fixture.deps,
        fixture.region,
        line=cast(ConsoleLine, line),
        fold=fixture.fold,
        on_lost=why.append,
        on_failed=on_failed,
    )


async def probe_until_lost(fixture: RunnerFixture, line: FakeLine) -> str:
    """Run a liveness probe until the server is lost; return the reason."""
    why: list[str] = []
    async with asyncio.timeout(20):
        await probe_of(fixture, line, why).run()
    return why[0]


async def test_server_without_log_posts_gets_the_log_address_again_and_is_then_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:

        def pass_time() -> None:
            fixture.clock.at_ms += 5_000

        began_ms, fleet.on_probe, line = fixture.clock.at_ms, pass_time, FakeLine()
        assert await probe_until_lost(fixture, line) == "its log posts do not arrive"
        assert sum(command.startswith("logaddress_del_http") for command in line.commands) == 1
        took_ms = fixture.clock.at_ms - began_ms
        assert 0 <= took_ms - liveness.NO_LOG_MS - NO_POSTS_MS <= 10_000


async def test_server_is_lost_at_once_if_its_fleet_reports_that_it_is_gone(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet([FleetReport.ALIVE, FleetReport.UNKNOWN, FleetReport.GONE, FleetReport.ALIVE])
    async with open_fixture(db, fleet) as fixture:
        assert await probe_until_lost(fixture, FakeLine()) == "its fleet reports that it is gone"
        assert len(fleet.answers) == 1


@pytest.mark.parametrize("is_doubtful", [True, False])
async def test_server_whose_console_lies_when_it_is_probed_fails(
    db: Database, monkeypatch: pytest.MonkeyPatch, is_doubtful: bool
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:

        def pass_time() -> None:
            fixture.clock.at_ms += 5_000

        fleet.on_probe = bool if is_doubtful else pass_time
        lost, failed = list[str](), list[Failure]()
        probe = probe_of(fixture, FakeLine(faulty="status_json"), lost, failed.append)
        if is_doubtful:
            monkeypatch.setattr(Presence, "is_doubtful", True)
            probe.log_received(fixture.clock.at_ms)
        async with asyncio.timeout(20):
            await probe.run()
        assert (lost, failed) == ([], [Failure.CONSOLE_FAULT])


async def test_time_in_which_the_service_did_not_run_is_not_silence_of_the_server(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:
        probes = 0

        def pass_time(ms: int) -> None:
            fixture.clock.at_ms += ms

        def stall_or_pass_time() -> None:
            nonlocal probes
            probes += 1
            if probes <= 5:
                asyncio.get_running_loop().call_later(0, pass_time, 60_000)  # while the probe sleeps or asks
            else:
                pass_time(1_000)

        fleet.on_probe = stall_or_pass_time
        assert await probe_until_lost(fixture, FakeLine(failures=1000)) == "no sign of life for 30 s"
        assert probes == 5 + SILENCE_MS // 1_000


@pytest.mark.parametrize("delay_ms", [60_000, -3_600_000])
async def test_a_delay_or_a_set_clock_is_not_taken_for_a_log_that_does_not_arrive(
    db: Database, monkeypatch: pytest.MonkeyPatch, delay_ms: int
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet([FleetReport.ALIVE] * 8 + [FleetReport.GONE])
    async with open_fixture(db, fleet) as fixture:

        def pass_time(ms: int) -> None:
            fixture.clock.at_ms += ms

        def stall() -> None:
            pass_time(1_000)
            if len(fleet.answers) > 1:
                asyncio.get_running_loop().call_later(0, pass_time, delay_ms)  # while the probe sleeps or asks

        fleet.on_probe = stall
        assert await probe_until_lost(fixture, line := FakeLine()) == "its fleet reports that it is gone"
        assert "status_json" in line.commands
        assert not [command for command in line.commands if command.startswith("logaddress_del_http")]


async def test_server_that_hangs_after_the_clock_was_set_back_is_lost(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:
        probes = 0

        def set_back_or_pass_time() -> None:
            nonlocal probes
            probes += 1
            fixture.clock.at_ms += -3_600_000 if probes == 3 else 1_000

        fleet.on_probe = set_back_or_pass_time
        assert await probe_until_lost(fixture, FakeLine(failures=1000)) == "no sign of life for 30 s"
        assert probes == 1 + SILENCE_MS // 1_000


def reporting(fixture: RunnerFixture, probe: liveness.LivenessProbe, ms: int = 1_000) -> Callable[[], None]:
    """Return what lets time pass with a log post."""

    def pass_time() -> None:
        fixture.clock.at_ms += ms
        probe.log_received(fixture.clock.at_ms)

    return pass_time


async def test_server_that_posts_its_log_is_alive_although_its_console_refuses_connections(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet([FleetReport.UNKNOWN] * 200 + [FleetReport.GONE])
    async with open_fixture(db, fleet) as fixture:
        probe = probe_of(fixture, FakeLine(failures=1000), why := list[str]())
        fleet.on_probe = reporting(fixture, probe)
        async with asyncio.timeout(20):
            await probe.run()
        assert why == ["its fleet reports that it is gone"], "200 s later"


async def test_refused_console_of_a_waiting_server_is_no_loss_for_twenty_seconds(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet([FleetReport.UNKNOWN] * 60 + [FleetReport.GONE])
    async with open_fixture(db, fleet) as fixture:
        line = FakeLine()

        def pass_time() -> None:
            fixture.clock.at_ms += 1_000
            line.failures = 1 if 20 < len(fleet.answers) <= 40 else 0  # one question per probe

        fleet.on_probe = pass_time
        assert await probe_until_lost(fixture, line) == "its fleet reports that it is gone"
        assert fixture.deps.regions.silent.count("eu") == 0


async def test_servers_that_fall_silent_together_are_given_more_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:
        silent, began_ms = fixture.deps.regions.silent, fixture.clock.at_ms
        silent.report("another", Silence(region="eu", host="", since_ms=began_ms))
        notices = set[str | None]()

        def pass_time() -> None:
            fixture.clock.at_ms += 1_000
            notices.add(silent.notice("eu"))
            if fixture.clock.at_ms - began_ms == 40_000:
                silent.forget("another")  # it is back; so may be ours in a moment

        fleet.on_probe = pass_time
        why = await probe_until_lost(fixture, FakeLine(failures=1000))
        assert why == "no sign of life for 90 s, together with 1 other"
        assert any("several fell silent together" in (notice or "") for notice in notices)
        assert silent.notice("eu") is None, "it is no longer probed"


async def test_silence_of_one_server_is_shown_until_its_next_sign_of_life(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet([FleetReport.UNKNOWN] * 20 + [FleetReport.GONE])
    async with open_fixture(db, fleet) as fixture:
        silent, began_ms = fixture.deps.regions.silent, fixture.clock.at_ms
        probe = probe_of(fixture, FakeLine(failures=1000), why := list[str]())
        seen = list[int | None]()

        def pass_time() -> None:
            fixture.clock.at_ms += 1_000
            seen.append(silent.since_ms("srv_1"))
            if len(seen) == 15:
                probe.log_received(fixture.clock.at_ms)
                seen.append(silent.since_ms("srv_1"))

        fleet.on_probe = pass_time
        async with asyncio.timeout(20):
            await probe.run()
        assert why == ["its fleet reports that it is gone"]
        assert seen[:4] == [None] * 4, "it is asked after 4 s"
        assert set(seen[4:15]) == {began_ms}
        assert seen[15] is None


async def test_server_that_died_is_lost_although_its_log_is_from_the_future(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was set back before the service was restarted; the stored log is applied again."""
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:
        probe = probe_of(fixture, FakeLine(failures=1000), why := list[str]())
        probe.log_received(fixture.clock.at_ms + 3_600_000)

        def pass_time() -> None:
            fixture.clock.at_ms += 1_000

        fleet.on_probe = pass_time
        async with asyncio.timeout(20):
            await probe.run()
        assert why == ["no sign of life for 30 s"]


async def test_players_of_a_server_that_posts_no_log_are_not_recorded(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be a new process at the same address, without our players."""
    monkeypatch.setattr(liveness, "PROBE_S", 0.001)
    fleet = _FakeFleet()
    async with open_fixture(db, fleet) as fixture:
        fixture.match.presence.mark_doubtful(fixture.clock.at_ms)
        probe = probe_of(fixture, line := FakeLine(), why := list[str]())

        def pass_time() -> None:
            fixture.clock.at_ms += 5_000

        fleet.on_probe = pass_time
        async with asyncio.timeout(20):
            await probe.run()
        assert why == ["its log posts do not arrive"]
        assert sum(command.startswith("logaddress_add_http") for command in line.commands) > 1
        assert not await raw_log.has_kind(db, "srv_1", EntryKind.PRESENCE, after_seq=0)


async def test_presence_is_recorded_after_a_resume(db: Database) -> None:
    async with open_world(db) as world:
        dead = world.start("dead")
        await world.create()
        await world.until_live()
        world.region.is_paused = True
        await dead.kill()
        world.clock.ahead_ms += LEASE_MS
        server = world.region.running["srv_1"]
        server.command_ms = 20  # it logs and posts the commands
        world.start("successor")

        def reports() -> list[str]:
            return [sent for sent in server.commands if sent.startswith("matchzy_remote_log_url")]

        async def is_recorded() -> bool:
            return bool(reports()) and await raw_log.has_kind(db, "srv_1", EntryKind.PRESENCE, after_seq=0)

        await world.until(is_recorded, "the presence is recorded, and its plugin has a new report URL")
        entries = await raw_log.read_after(db, "srv_1", 0, limit=10_000)
        (names, *_) = [json.loads(entry.body) for entry in entries if entry.kind == EntryKind.PRESENCE]
        assert set(names) == set(PLAYERS)
        assert "http://successor.example/" in reports()[-1]


# --- late entries and deadlines ---------------------------------------------------------------------------------------


class _SlowIngest:
    """Lets a subclass act before the log of the match's end is stored."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self.match_file = ingest.match_file
        self.is_over = asyncio.Event()

    async def store_log(self, token: str, headers: Mapping[str, str], body: bytes) -> Receipt:
        if b"Game Over" in body:
            await self.before_end()
            self.is_over.set()
        return await self._ingest.store_log(token, headers, body)

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        return await self._ingest.store_report(token, body)

    async def before_end(self) -> None:
        pass


class _DyingIngest(_SlowIngest):
    """Kills the server before the end of the match is stored, and drops the plugin's reports of that end."""

    def __init__(self, ingest: Ingest, die: Callable[[], None], noticed: asyncio.Event) -> None:
        super().__init__(ingest)
        self._die = die
        self._noticed = noticed

    async def before_end(self) -> None:
        self._die()
        await self._noticed.wait()
        await asyncio.sleep(0.2)

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        if b"series_end" in body or b"map_result" in body:
            return Receipt.STORED
        return await super().store_report(token, body)


async def test_last_log_post_counts_even_if_the_server_dies_before_it_is_stored(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(db) as world:
        process = world.start()
        noticed = asyncio.Event()
        observe = world.region.observe

        async def observe_and_notify(server_id: str, slot: str) -> FleetReport:
            report = await observe(server_id, slot)
            if report is FleetReport.GONE:
                noticed.set()
            return report

        def die() -> None:
            world.region.running["srv_1"].is_over = True

        monkeypatch.setattr(world.region, "observe", observe_and_notify)
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        world.region.add_ingest(process.base, cast(Ingest, _DyingIngest(ingest, die, noticed)))
        await world.create()
        outcome = await world.outcome()
        assert (outcome.kind, outcome.reason) == ("match_over", None)


class _SlowErrors(DelegatingDatabase):
    """Takes long to store the error of a match, and says that it has begun to."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.begun = asyncio.Event()

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if any(one.params.get("error") for one in statements):
            self.begun.set()
            await asyncio.sleep(1.0)
        return await super().write(statements)


async def test_last_log_post_counts_even_if_it_is_stored_while_the_loss_is_recorded(db: Database) -> None:
    slow = _SlowErrors(db)
    async with open_world(slow) as world:
        process = world.start()

        def die() -> None:
            world.region.running["srv_1"].is_over = True

        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        world.region.add_ingest(process.base, cast(Ingest, _DyingIngest(ingest, die, slow.begun)))
        await world.create()
        outcome = await world.outcome()
        assert (outcome.kind, outcome.reason) == ("match_over", None)


class _LateReports(_SlowIngest):
    """Plugin reports are stored shortly after the log."""

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        await asyncio.sleep(0.3)
        return await super().store_report(token, body)


class _LateShots(_SlowIngest):
    """Counts of shots are stored shortly after the log; with `is_last_lost`, the last one is not stored at all."""

    is_last_lost = False

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        await asyncio.sleep(0.3)
        is_lost = self.is_last_lost and json.loads(body).get("final", False)
        return Receipt.STORED if is_lost else await self._ingest.store_shots(token, body)


async def test_plugin_report_of_the_last_round_counts_even_if_it_arrives_after_the_log(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        world.region.add_ingest(process.base, cast(Ingest, _LateReports(ingest)))
        await world.create()
        result = json.loads((await world.outcome()).callback_body)["result"]
        (played,) = result["maps"]
        rounds = played["team1Score"] + played["team2Score"]
        assert sum(player["mvps"] for player in result["overall"]) == rounds


async def test_nothing_is_awaited_after_the_last_reports(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LAST_REPORT_S", 3600.0)
    async with open_world(db) as world:
        process = world.start()
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        world.region.add_ingest(process.base, cast(Ingest, _LateShots(ingest)))
        maps = ("de_nuke", "de_inferno", "de_vertigo")
        await world.create(game=msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=maps))
        result = json.loads((await world.outcome()).callback_body)["result"]
        assert len(result["maps"]) > 1
        for players in (result["overall"], *(one["players"] for one in result["maps"])):
            assert all(player["extraStats"]["shotsFired"] >= 0 for player in players)


async def test_wait_for_the_last_count_of_shots_is_bounded(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        late = _LateShots(ingest)
        late.is_last_lost = True
        world.region.add_ingest(process.base, cast(Ingest, late))
        await world.create()
        result = json.loads((await world.outcome()).callback_body)["result"]
        assert not any("shotsFired" in player["extraStats"] for player in result["overall"])


def connected(players: Sequence[str]) -> bytes:
    lines = [
        f'{STAMP} - "p{number}<{number}><[U:1:{int(player) - STEAM_ID_BASE}]><>" connected, address "1.2.3.4:27005"\n'
        for number, player in enumerate(players)
    ]
    return "".join(lines).encode()


async def test_post_received_before_a_deadline_counts_even_if_it_is_stored_after_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        await asyncio.sleep(0.5)
        gate = asyncio.Event()
        read, write = process.db.read, process.db.write

        async def slow_read(sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
            if "FROM raw_log " in sql:
                await gate.wait()
            return await read(sql, params)

        async def slow_write(statements: Sequence[Statement]) -> list[list[Row]]:
            if "INSERT INTO raw_log_heads" in statements[0].sql:
                await gate.wait()
            return await write(statements)

        monkeypatch.setattr(process.db, "read", slow_read)
        monkeypatch.setattr(process.db, "write", slow_write)
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        post = asyncio.ensure_future(ingest.store_log(tokens_of(await world.row()).log, {}, connected(PLAYERS)))
        await asyncio.sleep(1.5)
        world.clock.ahead_ms += 160_000
        gate.set()
        assert await post is Receipt.STORED
        await asyncio.sleep(2)
        assert await outbox.outcome_of(db, "srv_1") is None


async def test_time_of_a_server_whose_log_does_not_arrive_is_recorded(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "OBSERVE_MS", 1_000)
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        live = await world.until_driven()
        reject_log_posts(world, process.base)

        async def is_observed() -> bool:
            stored = await raw_log.read_after(db, "srv_1", 0, limit=100)
            return [entry.kind for entry in stored[-2:]] == [EntryKind.OBSERVED, EntryKind.OBSERVED]

        await world.until(is_observed, "entries are appended for the clock", within_s=30.0)
        assert live.fold.reader.skipped_ms == 0


async def test_post_right_after_a_stall_does_not_fire_overdue_deadlines(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CrashableDatabase, "is_shared", False)
    async with open_world(db, speed=20) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        world.region.is_paused = True
        await world.until_driven()
        await asyncio.sleep(0.5)
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        token = tokens_of(await world.row()).log
        world.clock.ahead_ms += 20_000  # the join time is fifteen seconds
        assert await ingest.store_log(token, {}, connected(PLAYERS)) is Receipt.STORED

        live = await world.until_driven()

        async def are_connected() -> bool:
            return set(live.fold.match.presence.connected) == set(PLAYERS)

        await world.until(are_connected, "the post is applied")
        assert await outbox.outcome_of(db, "srv_1") is None


async def test_deadlines_of_a_process_that_is_always_late_fire_eventually(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LATE_MS", 200)
    monkeypatch.setattr(supervisor, "RENEW_S", 1.0)
    async with open_world(db, speed=600) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        world.region.is_paused = True
        read = process.db.read

        async def slow_read(sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
            if "FROM raw_log " in sql:
                await asyncio.sleep(0.3)
            return await read(sql, params)

        monkeypatch.setattr(process.db, "read", slow_read)

        async def is_canceled() -> bool:
            world.clock.ahead_ms += 2_000
            await asyncio.sleep(0.2)
            return await outbox.outcome_of(db, "srv_1") is not None

        await world.until(is_canceled, "the match is canceled", within_s=120)
        assert await raw_log.has_kind(db, "srv_1", EntryKind.RESUMED, after_seq=0), "the deadline was postponed"
        assert (await world.outcome()).reason == CancelReason.NO_PLAYERS_JOINED


async def test_entries_stored_during_configuration_are_applied_at_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CrashableDatabase, "is_shared", False)
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await _pause_when_running(world)

        async def is_applied() -> bool:
            live = process.live.get("srv_1")
            return live is not None and live.seq == await raw_log.newest_seq(db, "srv_1") > 0

        await world.until(is_applied, "all entries are applied", within_s=60.0)


async def _pause_when_running(world: World) -> None:
    while (await world.row()).phase is not ServerPhase.RUNNING:
        world.region.is_paused = await raw_log.has_kind(world.db, "srv_1", EntryKind.LOG, after_seq=0)
        await asyncio.sleep(0.001)
    world.region.is_paused = True


# --- release ----------------------------------------------------------------------------------------------------------


async def test_server_is_released_even_if_its_password_cannot_be_decrypted(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        row = await world.row()
        other = KeyFileVault.from_text("B" * 43 + "=")
        outcome = Outcome(at_ms=world.clock.now_ms(), reason=CancelReason.CANCELED_BY_USER)
        change = servers.change(row.id, row.fence, rcon_password=other.seal("x"))
        await db.write([change, *end_match(row, outcome, fence=None, callback_id="cb")])
        process.supervisor.notify("srv_1")
        await world.outcome()


async def test_process_does_not_release_a_slot_that_another_process_released(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_world(db, ("a",)) as world:
        first = world.start("one")
        reached, go_on = asyncio.Event(), asyncio.Event()
        allocate = world.region.allocate

        async def slow_allocate(order: ServerOrder) -> GameServer | None:
            if order.server_id != "srv_1":
                return await allocate(order)
            reached.set()
            await go_on.wait()
            raise FleetError("the server process ended during its start")

        monkeypatch.setattr(world.region, "allocate", slow_allocate)
        await world.create()
        await reached.wait()
        first.supervisor._is_draining = True  # so that the other process gets the match
        world.start("two")
        await world.cancel()
        world.clock.ahead_ms += HANDOVER_MS
        await world.outcome()
        await world.create("srv_2", scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, "srv_2")
        before = len(world.region.releases)
        go_on.set()
        await asyncio.sleep(1)
        assert world.region.releases[before:] == [], "slot a belongs to srv_2 by now"


# --- costly posts -----------------------------------------------------------------------------------------------------


async def test_match_with_overlong_lines_goes_on_at_once_also_after_a_restart(db: Database) -> None:
    line = b"01/19/2026 - 19:02:08.000 - Game Over: competitive " + b"a" * 65_000 + b"\n"
    async with open_world(db) as world:
        process = world.start("first")
        await world.create()
        await world.until_live()
        ingest = world.region.ingest_at(process.base)
        assert ingest is not None
        began_s = time.thread_time()
        assert await ingest.store_log(tokens_of(await world.row()).log, {}, line * 2) is Receipt.STORED
        await process.kill()
        world.clock.ahead_ms += LEASE_MS
        world.start("second")
        assert (await world.outcome()).result is not None
        assert time.thread_time() - began_s < 30, "reading the lines took minutes once"
