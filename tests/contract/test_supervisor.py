"""Matches are driven from their creation to their release by whoever holds them, and end once whatever happens.

Servers are simulated in this process and as fast as it can be; the waits of the service itself are real.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import product
from time import monotonic, time

import msgspec

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.model import CvarSetting, GameSettings, MatchType, TeamRoster
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, DatabaseAwayError, FleetError, Row, ServerOrder, Statement, Value
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.ingest import Ingest
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.regions import Region, Regions
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.supervisor import Supervisor
from matchpod.storage import outbox, servers, slots, snapshots
from matchpod.storage.outbox import Outcome
from matchpod.storage.servers import LEASE_MS, ServerRow
from tests.contract import databases
from tests.contract.simulated_region import SimulatedRegion
from tests.e2e.service.same_matches import assert_same_match

home = databases.home

SPEED = 2.0
"""Players have two and a half minutes to come; a server that was given up is replaced after a second."""
PATIENCE_S = 40.0
PENDING_MS = 600_000
START_MS = 1_790_000_000_000
VAULT = KeyFileVault.from_text("A" * 43 + "=")
PLAYERS = tuple(str(76561198000000001 + number) for number in range(4))
SETTINGS = GameSettings(
    match_type=MatchType.WINGMAN,
    maps=("de_nuke",),
    max_rounds=4,
    team1=TeamRoster("Reds", PLAYERS[:2]),
    team2=TeamRoster("Blues", PLAYERS[2:]),
)

FORGOTTEN = ServerOrder(
    server_id="srv_unknown", slot="b", map_name="de_nuke", game_type=0, game_mode=2, rcon_password="secret"
)


class ShiftedClock:
    """The time of this machine, and a little later."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return round(time() * 1000) + self.ahead_ms


class Mortal:
    """The database as one process reaches it: gone for a process that is dead."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.is_dead = False
        self.dies_before = ""
        """Dead when it is about to write a statement with these words."""
        self.dies_after = ""
        """Dead when such a statement was written, and before it knows."""

    @property
    def is_shared(self) -> bool:
        return True  # to this process it may be, for others take its matches over

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self._live()
        return await self._db.read(sql, params)

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        self._live()
        return await self._db.look_up(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self.is_dead = self.is_dead or _says(statements, self.dies_before)
        self._live()
        rows = await self._db.write(statements)
        self.is_dead = self.is_dead or _says(statements, self.dies_after)
        self._live()
        return rows

    async def close(self) -> None:
        pass

    def _live(self) -> None:
        if self.is_dead:
            raise DatabaseAwayError("this process is dead")


def _says(statements: Sequence[Statement], words: str) -> bool:
    return bool(words) and any(words in statement.sql for statement in statements)


class Process:
    """One process of the service: its supervisor, its ingest, its clock."""

    def __init__(self, db: Database, region: SimulatedRegion, *, name: str, clock: ShiftedClock) -> None:
        self.base = f"http://{name}.example"
        self.db = Mortal(db)
        self.region = region
        self.live = LiveMatches()
        self.concluded = 0
        measures = Measures(Metrics())
        regions = [Region(code="eu", name="Europe", location="here", speed=SPEED, fleet=region)]
        around = Surroundings(
            db=self.db,
            clock=clock,
            vault=VAULT,
            regions=Regions(regions, self.db),
            live=self.live,
            consoles=region,
            measures=measures,
            ingest_base=self.base,
            pending_ms=PENDING_MS,
            random_bytes=secrets.token_bytes,
            on_concluded=self._count,
        )
        self.supervisor = Supervisor(around, owner=name)
        ingest = Ingest(db=self.db, clock=clock, live=self.live, measures=measures, ingest_base=self.base)
        region.listen(self.base, ingest)
        self._task = asyncio.create_task(self.supervisor.run())

    def _count(self) -> None:
        self.concluded += 1

    async def die(self) -> None:
        """As after kill -9: nothing more is read, written or heard."""
        self.db.is_dead = True
        self.region.hang_up(self.base)
        await self.end()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class World:
    """A database, a region, and the processes that drive its matches."""

    def __init__(self, db: Database, slot_names: Sequence[str] = ("a", "b", "c")) -> None:
        self.db = db
        self.clock = ShiftedClock()
        self.region = SimulatedRegion(slot_names, start_ms=START_MS)
        self.processes: list[Process] = []

    def start(self, name: str = "one") -> Process:
        process = Process(self.db, self.region, name=name, clock=self.clock)
        self.processes.append(process)
        return process

    async def create(self, name: str = "srv_1", *, seed: int = 5, **fields: object) -> None:
        settings = msgspec.structs.replace(SETTINGS, custom_cvars=(CvarSetting("sim_seed", str(seed)),))
        now_ms = self.clock.now_ms()
        row = ServerRow(
            id=name,
            game_id=f"game of {name}",
            org_id="org_1",
            region="eu",
            phase=ServerPhase.ALLOCATING,
            status=ServerStatus.ALLOCATING,
            settings=msgspec.json.encode(settings),
            callback_url="https://example.com/",
            rcon_password=VAULT.seal(f"secret of {name}"),
            log_token=f"{name:x<43}",
            report_token=f"{name:y<43}",
            plugin_match_id=27,
            created_at_ms=now_ms,
            next_at_ms=now_ms,
        )
        await servers.create(self.db, msgspec.structs.replace(row, **fields), idempotency=None)
        for process in self.processes:
            process.supervisor.notify(name)

    async def row(self, name: str = "srv_1") -> ServerRow:
        row = await servers.get(self.db, name)
        assert row is not None
        return row

    async def until(self, is_so: Callable[[], Awaitable[bool]], what: str, *, within_s: float = PATIENCE_S) -> None:
        deadline = monotonic() + within_s
        while not await is_so():
            assert monotonic() < deadline, what
            await asyncio.sleep(0.02)

    async def phase(self, phase: ServerPhase, name: str = "srv_1") -> None:
        async def is_there() -> bool:
            return (await self.row(name)).phase is phase

        await self.until(is_there, f"{name} is {phase}")

    async def live(self, name: str = "srv_1") -> None:
        """Until a round of the match was decided."""

        async def has_score() -> bool:
            following = [process.live.get(name) for process in self.processes]
            views = [json.loads(match.view()) for match in following if match is not None]
            return any(sum(view["score"].values()) > 0 for view in views)

        await self.until(has_score, f"{name} is live")

    async def outcome(self, name: str = "srv_1") -> Outcome:
        """The outcome of a match, once its server is gone."""
        await self.phase(ServerPhase.RELEASED, name)
        outcome = await outbox.outcome_of(self.db, name)
        assert outcome is not None
        assert name not in self.region.running
        assert name not in (await slots.taken(self.db)).get("eu", {}).values()
        assert await snapshots.load(self.db, name) is None
        return outcome

    async def close(self) -> None:
        for process in self.processes:
            await process.end()
        await self.region.close()


@asynccontextmanager
async def world(db: Database, slot_names: Sequence[str] = ("a", "b", "c")) -> AsyncIterator[World]:
    made = World(db, slot_names)
    try:
        yield made
    finally:
        await made.close()


def told(outcome: Outcome) -> dict[str, object]:
    """What the callback says of the match itself."""
    body: dict[str, object] = json.loads(outcome.callback_body)
    return {name: body[name] for name in body if name not in ("serverId", "sessionId", "timestamp")}


async def undisturbed(db: Database, seed: int) -> dict[str, object]:
    """The match of this seed, driven by one process."""
    async with world(db) as around:
        around.start("undisturbed")
        await around.create("srv_undisturbed", seed=seed)
        return told(await around.outcome("srv_undisturbed"))


# --- from creation to release -----------------------------------------------------------------------------------------


def test_a_match_is_driven_from_its_creation_to_its_release(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            assert (row.status, row.ip, row.port) == (ServerStatus.RUNNING, "203.0.113.7", 27015)
            assert row.allocated_at_ms is not None
            assert row.running_at_ms is not None
            (order,) = around.region.orders
            assert (order.map_name, order.players, order.rcon_password) == ("de_nuke", PLAYERS, "secret of srv_1")
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_over", None)
            assert outcome.result is not None
            assert json.loads(outcome.callback_body)["result"] == json.loads(outcome.result)
            row = await around.row()
            assert (row.status, row.rcon_password, row.lease_owner) == (ServerStatus.STOPPED, None, None)
            assert process.concluded == 1
            assert process.live.get("srv_1") is None
            callbacks = await outbox.claim_callbacks(db, owner="test", now_ms=around.clock.now_ms(), limit=5)
            assert [one.server_id for one in callbacks] == ["srv_1"]

    home.run(scenario)


def test_a_match_waits_while_its_region_is_full(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, ("a",)) as around:
            around.start()
            around.region.is_still = True
            await around.create("srv_1")

            async def is_taken() -> bool:
                return bool(await slots.taken(db))

            await around.until(is_taken, "the place is taken")
            await around.create("srv_2")
            await around.phase(ServerPhase.PENDING, "srv_2")
            assert (await around.row("srv_2")).was_pending
            around.region.is_still = False
            assert (await around.outcome("srv_1")).kind == "match_over"
            assert (await around.outcome("srv_2")).kind == "match_over"
            assert [order.slot for order in around.region.orders] == ["a", "a"]

    home.run(scenario)


def test_a_match_that_finds_no_place_in_time_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, ()) as around:
            around.start()
            await around.create()
            await around.phase(ServerPhase.PENDING)
            around.clock.ahead_ms += PENDING_MS
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_canceled", CancelReason.NO_CAPACITY)
            assert (await around.row()).status is ServerStatus.FAILED

    home.run(scenario)


def test_a_server_that_does_not_come_up_is_replaced(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("no"), FleetError("no")]
            around.start()
            await around.create()
            assert (await around.outcome()).kind == "match_over"
            assert len({order.slot for order in around.region.orders}) == 3, "each try at another place"
            assert (await around.row()).tries == 2

    home.run(scenario)


def test_a_match_whose_servers_never_come_up_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError(f"no {number}") for number in range(9)]
            around.start()
            await around.create()
            assert (await around.outcome()).reason == CancelReason.SERVER_FAILED
            row = await around.row()
            assert (row.status, row.tries, row.error) == (ServerStatus.FAILED, 3, "no 2")

    home.run(scenario)


def test_a_match_of_a_region_that_is_gone_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            await around.create("srv_1", region="away")
            await around.create("srv_2", region="away", phase=ServerPhase.RUNNING)
            around.start()
            await around.phase(ServerPhase.ENDING, "srv_1")
            await around.phase(ServerPhase.ENDING, "srv_2")
            reasons = [await outbox.outcome_of(db, name) for name in ("srv_1", "srv_2")]
            assert [one.reason for one in reasons if one] == [CancelReason.SERVER_FAILED, CancelReason.SERVER_LOST]

    home.run(scenario)


# --- ends that nobody wanted ------------------------------------------------------------------------------------------


def test_a_server_that_dies_is_noticed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create()
            await around.live()
            around.region.running["srv_1"].exit(is_crash=True)
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_canceled", CancelReason.SERVER_LOST)
            assert (await around.row()).status is ServerStatus.FAILED

    home.run(scenario)


def test_a_server_that_hangs_is_noticed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create()
            await around.live()
            around.region.running["srv_1"].hang()
            began = monotonic()
            assert (await around.outcome()).reason == CancelReason.SERVER_LOST
            assert monotonic() - began < 20

    home.run(scenario)


def test_a_match_that_its_caller_cancels_ends_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.live()
            ending = Ending(reason=CancelReason.CANCELED_BY_USER)
            row = await around.row()
            now_ms = around.clock.now_ms()
            await db.write(conclude(row, ending, fence=None, now_ms=now_ms, callback_id="msg_1"))
            process.supervisor.notify(row.id)
            server = around.region.running[row.id]
            assert (await around.outcome()).reason == CancelReason.CANCELED_BY_USER
            assert process.concluded == 0, "nobody ends it a second time"
            assert sum(command.startswith("kickid") for command in server.said) >= len(PLAYERS)

    home.run(scenario)


def test_a_server_that_cannot_be_released_is_released_later(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.stuck = [FleetError("not now")]
            around.start()
            await around.create()
            await around.phase(ServerPhase.ENDING)
            assert (await around.outcome()).kind == "match_over"
            assert around.region.releases == ["srv_1"]

    home.run(scenario)


def test_an_unexpected_error_does_not_end_a_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.deaf = [RuntimeError("a mistake of ours")]
            process = around.start()
            await around.create()
            assert (await around.outcome()).kind == "match_over"
            assert len(around.region.orders) == 2, "the same server was found again"
            assert process.concluded == 1

    home.run(scenario)


def test_servers_and_places_without_a_match_are_swept(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            await around.create("srv_old", phase=ServerPhase.RELEASED)
            await slots.reserve(db, "eu", "srv_old", ["a"])
            await slots.reserve(db, "eu", "srv_unknown", ["b"])
            await around.region.allocate(FORGOTTEN)
            around.start()

            async def is_swept() -> bool:
                return not around.region.running and not await slots.taken(db)

            await around.until(is_swept, "all is swept")
            assert around.region.releases == ["srv_unknown"]

    home.run(scenario)


# --- other processes --------------------------------------------------------------------------------------------------


def test_a_match_of_a_process_that_died_goes_on_in_another(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            dead = around.start("dead")
            await around.create(seed=5)
            await around.live()
            await dead.die()
            holder = await around.row()
            assert (holder.phase, holder.lease_owner) == (ServerPhase.RUNNING, "dead")
            heir = around.start("heir")
            await asyncio.sleep(1)
            assert (await around.row()).lease_owner == "dead", "its claim has not run out"
            around.clock.ahead_ms += LEASE_MS
            assert_same_match(told(await around.outcome()), expected)
            assert (dead.concluded, heir.concluded) == (0, 1)
            assert (await around.row()).fence > holder.fence

    home.run(scenario)


def test_a_log_is_moved_to_the_process_that_drives_the_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            dead = around.start("dead")
            await around.create()
            await around.live()
            await dead.die()
            around.region.is_still = True
            server = around.region.running["srv_1"]
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")

            async def is_moved() -> bool:
                listed = server.machine.execute("logaddress_list_http", "")
                return "http://heir.example/" in listed and "http://dead.example/" not in listed

            await around.until(is_moved, "the log is sent to the heir alone")
            around.region.is_still = False
            assert (await around.outcome()).kind == "match_over"

    home.run(scenario)


def test_a_match_that_was_starting_is_started_by_another_process(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 6)
        async with world(db) as around:
            around.region.is_still = True  # nothing is logged, so nothing is proven
            dead = around.start("dead")
            await around.create(seed=6)

            async def is_allocated() -> bool:
                return (await around.row()).allocated_at_ms is not None

            await around.until(is_allocated, "the server is allocated")
            await dead.die()
            around.region.is_still = False
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")
            assert_same_match(told(await around.outcome()), expected)
            assert {order.server_id for order in around.region.orders} == {"srv_1"}

    home.run(scenario)


def test_a_process_that_stops_gives_its_matches_back_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            first = around.start("first")
            await around.create(seed=5)
            await around.live()
            await first.supervisor.drain()
            assert (await around.row()).lease_owner is None
            assert len(first.supervisor) == 0
            await first.die()
            second = around.start("second")
            assert_same_match(told(await around.outcome()), expected)
            assert second.concluded == 1

    home.run(scenario)


def test_a_process_whose_claim_ran_out_touches_nothing(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            slow = around.start("slow")
            await around.create(seed=5)
            await around.live()
            # The other one believes that the claim is over; this one does not know yet.
            heir = Process(db, around.region, name="heir", clock=_ahead(LEASE_MS))
            around.processes.append(heir)
            assert_same_match(told(await around.outcome()), expected)
            assert slow.concluded + heir.concluded == 1

    home.run(scenario)


def _ahead(ms: int) -> ShiftedClock:
    clock = ShiftedClock()
    clock.ahead_ms = ms
    return clock


def test_processes_share_matches_and_each_ends_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        names = [f"srv_{number}" for number in range(6)]
        async with world(db, [f"slot {number}" for number in range(6)]) as around:
            processes = [around.start(name) for name in ("one", "two", "three")]
            for number, name in enumerate(names):
                await around.create(name, seed=number)
            outcomes = [await around.outcome(name) for name in names]
            assert [one.kind for one in outcomes] == ["match_over"] * 6
            assert sum(process.concluded for process in processes) == 6
            assert sorted(around.region.releases) == names

    home.run(scenario)


def test_a_match_survives_many_deaths(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 8)
        async with world(db) as around:
            process = around.start("process-0")
            await around.create(seed=8)
            await around.live()
            for number in range(1, 5):
                await process.die()
                around.clock.ahead_ms += LEASE_MS
                process = around.start(f"process-{number}")
                await asyncio.sleep(0.3)
            assert_same_match(told(await around.outcome()), expected)
            assert sum(one.concluded for one in around.processes) == 1

    home.run(scenario)


WRITES = (
    "INSERT INTO slots",
    "rcon_host = ",
    "log_from_seq = ",
    "running_at_ms = ",
    "INSERT INTO outcomes",
    "DELETE FROM slots",
    "rcon_password = ",
)
"""What is written on the way of a match, from its place to its release."""


def test_a_match_survives_a_death_before_and_after_everything_that_is_written(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 9)
        async with world(db) as around:
            await around.create(seed=9)
            for number, (words, is_written) in enumerate(product(WRITES, (False, True))):
                process = around.start(f"process-{number}")
                process.db.dies_before, process.db.dies_after = ("", words) if is_written else (words, "")

                async def is_dead(process: Process = process) -> bool:
                    return process.db.is_dead

                await around.until(is_dead, f"the process of {words!r} is dead")
                await process.die()
                await servers.drop_leases(db)
            around.start("survivor")
            outcome = await around.outcome()
            assert_same_match(told(outcome), expected)
            callbacks = await outbox.claim_callbacks(db, owner="test", now_ms=around.clock.now_ms(), limit=99)
            assert [one.server_id for one in callbacks].count("srv_1") == 1

    home.run(scenario)
