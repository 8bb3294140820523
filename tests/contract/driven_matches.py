"""Processes of the service that drive matches on one database: their supervisors and ingests, without sockets.

Servers are simulated in this process. Processes can die as after kill -9, before or after any of their writes.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic, time

import msgspec

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.model import CvarSetting, GameSettings, MatchType, TeamRoster
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, DatabaseAwayError, Row, ServerOrder, Statement, Value
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.history.rows import upcoming
from matchpod.service.history.streams import Streams
from matchpod.service.ingest import Ingest
from matchpod.service.live import LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.regions import Region, Regions
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.supervisor import Supervisor
from matchpod.storage import history, outbox, servers, slots, snapshots
from matchpod.storage.outbox import Outcome
from matchpod.storage.servers import ServerRow
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.told_history import assert_told

SPEED = 2.0
"""Players have two and a half minutes to come; a server that was given up is replaced after a second."""
PATIENCE_S = 300.0
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

    is_shared = True
    """To this process it may be, for others take its matches over; one that is alone hears of its own only."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.is_dead = False
        self.dies_before = ""
        """Dead when it is about to write a statement with these words."""
        self.dies_after = ""
        """Dead when such a statement was written, and before it knows."""

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

    def __init__(
        self, db: Database, region: SimulatedRegion, *, name: str, clock: ShiftedClock, speed: float = SPEED
    ) -> None:
        self.base = f"http://{name}.example"
        self.db = Mortal(db)
        self.region = region
        self.live = LiveMatches()
        self.concluded = 0
        measures = Measures(Metrics())
        regions = [Region(code="eu", name="Europe", location="here", speed=speed, fleet=region)]
        self.around = around = Surroundings(
            db=self.db,
            clock=clock,
            vault=VAULT,
            regions=Regions(regions, self.db),
            live=self.live,
            streams=Streams(db=self.db, live=self.live),
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

    def __init__(self, db: Database, slot_names: Sequence[str] = ("a", "b", "c"), speed: float = SPEED) -> None:
        self.db = db
        self.speed = speed
        self.clock = ShiftedClock()
        self.region = SimulatedRegion(slot_names, start_ms=START_MS)
        self.processes: list[Process] = []

    def start(self, name: str = "one") -> Process:
        process = Process(self.db, self.region, name=name, clock=self.clock, speed=self.speed)
        self.processes.append(process)
        return process

    async def create(
        self,
        name: str = "srv_1",
        *,
        seed: int = 5,
        played: str = "full_match",
        game: GameSettings = SETTINGS,
        cvars: Sequence[CvarSetting] = (),
        **fields: object,
    ) -> None:
        simulated = (CvarSetting("sim_seed", str(seed)), CvarSetting("sim_scenario", played))
        settings = msgspec.structs.replace(game, custom_cvars=(*simulated, *cvars))
        now_ms = self.clock.now_ms()
        row = ServerRow(
            id=name,
            game_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
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
        row = msgspec.structs.replace(row, **fields)
        begun = history.begin(upcoming(row, settings, "Europe"))
        await servers.create(self.db, row, idempotency=None, also=begun)
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
        await assert_told(self.db, await self.row(name), self.speed)
        return outcome

    async def cancel(self, name: str = "srv_1") -> None:
        """As its caller does, through a process that tells nobody."""
        ending = Ending(reason=CancelReason.CANCELED_BY_USER)
        now_ms = self.clock.now_ms()
        row = await self.row(name)
        await self.db.write(conclude(row, ending, fence=None, now_ms=now_ms, callback_id=f"msg of {name}"))

    async def close(self) -> None:
        for process in self.processes:
            await process.end()
        await self.region.close()


@asynccontextmanager
async def world(
    db: Database, slot_names: Sequence[str] = ("a", "b", "c"), *, speed: float = SPEED
) -> AsyncIterator[World]:
    made = World(db, slot_names, speed)
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
