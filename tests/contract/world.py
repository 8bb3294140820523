"""Run several processes of the service on one database, as objects: supervisors and ingests, without sockets.

Game servers are simulated. A process can be killed as with kill -9, before or after any of its writes.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, cast

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.model import CvarSetting, GameSettings, MatchType, TeamRoster
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, DatabaseUnavailableError, Row, ServerOrder, Statement
from matchpod.service.end_match import end_match
from matchpod.service.history.rows import initial_history
from matchpod.service.ingest.posts import Ingest, RawHeaders, Receipt
from matchpod.service.match_log.live import LocalMatch
from matchpod.service.regions.regions import Region
from matchpod.service.runner.intervals import Intervals
from matchpod.storage import outbox, raw_log, servers, slots, snapshots
from matchpod.storage.outbox import OutcomeRow
from matchpod.storage.servers import LEASE_MS, ServerRow
from tests.clocks import ManualClock
from tests.contract.databases import HookedDatabase
from tests.contract.history_checks import assert_final_history
from tests.contract.match_histories import insert_counted
from tests.contract.parts import Parts
from tests.contract.simulated_region import SimulatedRegion
from tests.server_rows import server_row
from tests.vaults import VAULT, stored_tokens, tokens_of

SPEED = 2.0
"""Speed of the region: players have two and a half minutes to join, a failed server is replaced after seconds."""
TIMEOUT_S = 300.0
PENDING_MS = 600_000
START_MS = 1_790_000_000_000
PLAYERS = tuple(str(76561198000000001 + number) for number in range(4))
SETTINGS = GameSettings(
    match_type=MatchType.WINGMAN,
    maps=("de_nuke",),
    max_rounds=4,
    team1=TeamRoster("Reds", PLAYERS[:2]),
    team2=TeamRoster("Blues", PLAYERS[2:]),
)

ORPHAN_ORDER = ServerOrder(
    server_id="srv_unknown", slot="b", map_name="de_nuke", game_type=0, game_mode=2, rcon_password="secret"
)


class CrashableDatabase(HookedDatabase):
    """The database of one process; unavailable once the process is dead."""

    def __init__(self, db: Database) -> None:
        # Shared even on SQLite: the processes of a test take over matches from each other.
        super().__init__(db, is_shared=True)
        self.crashes_before = ""
        """The process dies before it writes a statement with this text, or with this value."""
        self.crashes_after = ""
        """The process dies after it wrote such a statement, before the write returns."""

    @property
    def is_dead(self) -> bool:
        return self.error is not None

    def die(self) -> None:
        self.error = DatabaseUnavailableError("this process is dead")

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if _contains(statements, self.crashes_before):
            self.die()
        rows = await super().write(statements)
        if _contains(statements, self.crashes_after):
            self.die()
        self.check()
        return rows

    async def close(self) -> None:
        pass


def _contains(statements: Sequence[Statement], text: str) -> bool:
    return bool(text) and any(
        text in one.sql or text == value or (isinstance(value, list) and text in value)
        for one in statements
        for value in one.params.values() or ("",)
    )


class Process(Parts):
    """One process of the service whose supervisor runs: it drives matches."""

    db: CrashableDatabase

    def __init__(self, db: Database, region: SimulatedRegion, *, name: str, speed: float = SPEED, **given: Any) -> None:
        """`given` are arguments and dependencies that are not as usual."""
        self.base = f"http://{name}.example"
        crashable = CrashableDatabase(db)
        self.region = region
        self.matches_ended = 0
        super().__init__(
            crashable,
            name=name,
            regions=[Region(code="eu", name="Europe", location="here", speed=speed, fleet=region)],
            consoles=region,
            base="http://other.example",
            log_urls={"eu": self.base},  # servers of this region post to a URL of their own
            demo_base="http://uploads.example",
            on_match_ended=self._count,
            **given,
        )
        region.add_ingest(self.base, self.ingest)
        self._task = asyncio.create_task(self.supervisor.run())

    def _count(self) -> None:
        self.matches_ended += 1

    def has_died(self) -> bool:
        return self.db.is_dead

    async def kill(self) -> None:
        """Stop as with kill -9: without further reads and writes."""
        self.db.die()
        self.region.remove_ingest(self.base)
        await self.end()

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class Between:
    """Stands between the servers of a process and its ingest, which it passes everything to unless a test overrides it.

    Log posts are awaited: none is taken without a task.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.ingest = process.ingest
        process.region.add_ingest(process.base, cast(Ingest, self))

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        return await self.ingest.store_log(token, headers, body)

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        return await self.ingest.store_report(token, body)

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        return await self.ingest.store_shots(token, body)

    async def match_file(self, token: str | None) -> bytes | None:
        return await self.ingest.match_file(token)


async def create_match(
    db: Database,
    name: str = "srv_1",
    *,
    now_ms: int,
    seed: int = 5,
    scenario: str = "full_match",
    game: GameSettings = SETTINGS,
    cvars: Sequence[CvarSetting] = (),
    **fields: object,
) -> None:
    """Store a new match for a simulated server; `fields` are those of its row."""
    simulated = (CvarSetting("sim_seed", str(seed)), CvarSetting("sim_scenario", scenario))
    settings = msgspec.structs.replace(game, custom_cvars=(*simulated, *cvars))
    row = server_row(
        name,
        game_id=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        phase=ServerPhase.ALLOCATING,
        status=ServerStatus.ALLOCATING,
        settings=msgspec.json.encode(settings),
        callback_url="https://example.com/",
        rcon_password=VAULT.seal(f"secret of {name}"),
        **stored_tokens(f"{name:x<43}", f"{name:y<43}"),
        created_at_ms=now_ms,
        next_at_ms=now_ms,
    )
    row = msgspec.structs.replace(row, **fields)
    statements = insert_counted(initial_history(row, settings, "Europe"))
    await servers.create(db, row, idempotency=None, also=statements)


Condition = Callable[[], bool | Awaitable[bool]]


class World:
    """A database, a region, and the processes that drive its matches."""

    def __init__(self, db: Database, region: SimulatedRegion, speed: float = SPEED) -> None:
        self.db = db
        self.speed = speed
        self.clock = ManualClock.of_now()
        self.region = region
        self.quota_bytes: int | None = None
        """What a server of a match may store, for processes that are started from now on."""
        self.distance_of: Callable[[int], float] | None = None
        """How long they hold answers to a server, by their number of matches; None for the usual time."""
        self.processes: list[Process] = []

    def start(self, name: str = "one", **changed: object) -> Process:
        """Start a process; `changed` is what is not as usual, such as `intervals`."""
        given = {"clock": self.clock, "quota_bytes": self.quota_bytes, "distance_of": self.distance_of, **changed}
        process = Process(self.db, self.region, name=name, speed=self.speed, **given)
        self.processes.append(process)
        return process

    async def create(self, name: str = "srv_1", *, notified: Process | None = None, **fields: Any) -> None:
        """Create a match, as `create_match` does. All processes learn of it at once, or only the one `notified`."""
        await create_match(self.db, name, now_ms=self.clock.now_ms(), **fields)
        for process in self.processes if notified is None else (notified,):
            process.supervisor.notify(name)

    async def running_match(self, name: str = "one", **given: Any) -> Process:
        """Start a process and create a match; return the process once the server of the match runs."""
        process = await self._begin(name, **given)
        await self.until_phase(ServerPhase.RUNNING)
        return process

    async def driven_match(self, name: str = "one", **given: Any) -> Process:
        """As `running_match`; return the process once it drives the match."""
        process = await self._begin(name, **given)
        await self.until_driven()
        return process

    async def live_match(self, name: str = "one", **given: Any) -> Process:
        """As `running_match`; return the process once a round is decided."""
        process = await self._begin(name, **given)
        await self.until_live()
        return process

    async def _begin(self, name: str, *, intervals: Intervals | None = None, **fields: Any) -> Process:
        process = self.start(name, intervals=intervals or Intervals())
        await self.create(**fields)
        return process

    async def row(self, name: str = "srv_1") -> ServerRow:
        row = await servers.get(self.db, name)
        assert row is not None
        return row

    async def until(self, condition: Condition, what: str, *, within_s: float = TIMEOUT_S, step_ms: int = 0) -> None:
        """Wait until a condition is true. The clock is set forward by `step_ms` after each of fifty looks per second."""
        deadline = monotonic() + within_s
        while not (await found if isinstance(found := condition(), Awaitable) else found):
            assert monotonic() < deadline, f"not within {within_s:g} s: {what}\n{await self.describe()}"
            await asyncio.sleep(0.02)
            self.clock.at_ms += step_ms

    async def describe(self) -> str:
        """Describe all matches, for the message of a failed test."""
        now_ms, texts = self.clock.now_ms(), []
        for row in await servers.newest(self.db, status=None, limit=10):
            texts.append(
                f"{row.id} {row.phase} due in {row.next_at_ms - now_ms} ms, owner {row.lease_owner}, {row.error}"
            )
            for process in self.processes:
                live = process.live.get(row.id)
                if live is not None:
                    due_ms = live.fold.due_ms()
                    texts.append(
                        f"in {process.base}: {live.fold.match.phase}, entry {live.seq} of {live.newest_seq},"
                        f" deadline in {due_ms and due_ms - now_ms} ms, {live.fold.match.presence},"
                        f" {live.fold.match.reported}, {live.state().match.decode()}"
                    )
            server = self.region.running.get(row.id)
            texts.append(f"server: {server and server.describe()}, slots: {await slots.taken(self.db)}")
        return "\n".join(texts)

    async def until_row(
        self,
        condition: Callable[[ServerRow], bool],
        what: str,
        name: str = "srv_1",
        *,
        within_s: float = TIMEOUT_S,
        step_ms: int = 0,
    ) -> ServerRow:
        found: list[ServerRow] = []

        async def is_found() -> bool:
            found[:] = [await self.row(name)]
            return condition(found[0])

        await self.until(is_found, what, within_s=within_s, step_ms=step_ms)
        return found[0]

    async def until_phase(self, phase: ServerPhase, name: str = "srv_1") -> ServerRow:
        return await self.until_row(lambda row: row.phase is phase, f"{name} is {phase}", name)

    async def until_driven(self, name: str = "srv_1") -> LocalMatch:
        """Wait until the newest process drives the match, which is some time after its server is running."""
        live = self.processes[-1].live
        await self.until(lambda: live.get(name) is not None, f"{name} is driven")
        match = live.get(name)
        assert match is not None
        return match

    async def until_applied(self, name: str = "srv_1") -> LocalMatch:
        live = await self.until_driven(name)

        async def is_applied() -> bool:
            return live.seq == await raw_log.newest_seq(self.db, name) > 0

        await self.until(is_applied, f"all entries of {name} are applied")
        return live

    async def post(self, body: bytes, name: str = "srv_1") -> None:
        """Post to the newest process, as the server of the match does."""
        token = tokens_of(await self.row(name)).log
        assert await self.processes[-1].ingest.store_log(token, (), body) is Receipt.STORED

    async def until_live(self, name: str = "srv_1") -> None:
        def has_score() -> bool:
            matches = [process.live.get(name) for process in self.processes]
            views = [json.loads(match.state().match) for match in matches if match is not None]
            return any(sum(view["score"].values()) > 0 for view in views)

        await self.until(has_score, f"{name} is live")

    async def outcome(self, name: str = "srv_1", *, is_same_version: bool = True) -> OutcomeRow:
        """Wait until the server is released; return the outcome of its match, with the body of its callback."""
        await self.until_phase(ServerPhase.RELEASED, name)
        outcome = await outbox.outcome_of(self.db, name)
        assert outcome is not None
        assert name not in self.region.running
        assert name not in (await slots.taken(self.db)).get("eu", {}).values()
        assert await snapshots.load(self.db, name) is None
        await assert_final_history(self.db, await self.row(name), self.speed, is_same_version=is_same_version)
        callback = await outbox.callback_of(self.db, name)
        return outcome if callback is None else msgspec.structs.replace(outcome, callback_body=callback.body)

    async def result(self, name: str = "srv_1") -> dict[str, Any]:
        result: dict[str, Any] = json.loads((await self.outcome(name)).callback_body)["result"]
        return result

    async def replace(self, dead: Process, name: str = "successor", **changed: object) -> Process:
        await dead.kill()
        self.clock.at_ms += LEASE_MS
        return self.start(name, **changed)

    async def cancel(self, name: str = "srv_1", *, notified: Process | None = None) -> None:
        """Cancel the match as its caller does; no supervisor learns of it, except that of `notified`."""
        outcome = Outcome(at_ms=self.clock.now_ms(), reason=CancelReason.CANCELED_BY_USER)
        row = await self.row(name)
        await self.db.write(end_match(row, outcome, fence=None, callback_id=f"msg of {name}"))
        if notified is not None:
            notified.supervisor.notify(name)

    async def close(self) -> None:
        for process in self.processes:
            await process.end()
        await self.region.close()
        assert self.region.faults == []


@asynccontextmanager
async def open_world(
    db: Database,
    slot_names: Sequence[str] = ("a", "b", "c"),
    *,
    speed: float = SPEED,
    kind: type[SimulatedRegion] = SimulatedRegion,
) -> AsyncIterator[World]:
    world = World(db, kind(slot_names, start_ms=START_MS), speed)
    try:
        yield world
    finally:
        await world.close()


def callback_fields(outcome: OutcomeRow) -> dict[str, object]:
    """The fields of the callback that do not depend on the run."""
    body: dict[str, object] = json.loads(outcome.callback_body)
    return {name: body[name] for name in body if name not in ("serverId", "sessionId", "timestamp")}


_undisturbed: dict[tuple[int, GameSettings], dict[str, object]] = {}


async def play_undisturbed(db: Database, seed: int, game: GameSettings = SETTINGS) -> dict[str, object]:
    """Play the match of this seed with a single process, unless it was played; return the fields of its callback."""
    if (seed, game) not in _undisturbed:
        async with open_world(db) as world:
            world.start("undisturbed")
            await world.create("srv_undisturbed", seed=seed, game=game)
            _undisturbed[seed, game] = callback_fields(await world.outcome("srv_undisturbed"))
    return _undisturbed[seed, game]
