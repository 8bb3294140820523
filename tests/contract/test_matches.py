"""Callers create and read matches. What they end with is tested in test_match_results."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import (
    IdempotencyConflictError,
    InvalidParamsError,
)
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import (
    Database,
    DatabaseUnavailableError,
    DuplicateError,
    Row,
    Statement,
    Value,
)
from matchpod.service.access.audit import Audit
from matchpod.service.access.quotas import UNLIMITED, Quotas
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.end_match import end_match
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.match_log import fold
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.live import LocalMatch, LocalMatches
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.matches import Matches
from matchpod.service.reading.match_head import ServerView
from matchpod.service.regions.regions import UNAVAILABLE, Region, Regions
from matchpod.service.telemetry.metrics import Metrics
from matchpod.service.telemetry.prometheus import Registry
from matchpod.storage import raw_log, region_flags, servers
from matchpod.storage.servers import IDEMPOTENCY_MS, ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.operations import free_disk
from tests.unused_fleet import UnusedFleet
from tests.vaults import VAULT, tokens_of

harness = databases.mostly_sqlite_harness

NOW_MS = 1_790_000_000_123
PLAYER = "76561198000000001"

OWNER = Principal(
    org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset({Scope.SERVERS_READ, Scope.SERVERS_WRITE})
)
READER = Principal(org_id="org_1", key_id="key_2", role=Role.MEMBER, scopes=frozenset({Scope.SERVERS_READ}))
OTHER_OWNER = msgspec.structs.replace(OWNER, org_id="org_2", key_id="key_3")


class InterleavingDatabase(databases.DelegatingDatabase):
    """A database that runs an action right before its first write."""

    def __init__(self, db: Database, action: Callable[[], Awaitable[object]]) -> None:
        super().__init__(db)
        self._action: Callable[[], Awaitable[object]] | None = action

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        action, self._action = self._action, None
        if action is not None:
            await action()
        return await super().write(statements)


class InterruptedDatabase(databases.DelegatingDatabase):
    """A database whose writes are committed, but their answers are lost; the next `failing_reads` reads fail too."""

    def __init__(self, db: Database, *, failing_reads: int = 0) -> None:
        super().__init__(db)
        self._failing_reads = failing_reads
        self._is_interrupted = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        if self._is_interrupted and self._failing_reads:
            self._failing_reads -= 1
            raise DatabaseUnavailableError("interrupted")
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        await super().write(statements)
        self._is_interrupted = True
        raise DatabaseUnavailableError("interrupted")


class UnavailableDatabase:
    """A database that is always unavailable."""

    is_shared = is_postgres = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        raise DatabaseUnavailableError("unavailable")

    async def read_one(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise DatabaseUnavailableError("unavailable")

    async def listen(self, channel: str, on_announced: Callable[[str], None]) -> None:
        raise AssertionError("unexpected")

    async def close(self) -> None:
        pass


class World:
    """The use cases under test, with their dependencies."""

    def __init__(
        self,
        db: Database,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        *,
        quotas: Quotas = UNLIMITED,
    ) -> None:
        self.db = db
        self.clock = ManualClock(NOW_MS)
        self.live = LocalMatches()
        self.notified: list[str] = []
        self.metrics = Metrics(Registry())
        self.fleet = fleet = UnusedFleet()
        self.regions = regions = Regions(
            [
                Region(code="eu", name="Europe", location="Frankfurt", fleet=fleet),
                Region(code="sandbox", name="Sandbox", location="here", allows_simulator=True, fleet=fleet),
            ],
            db,
        )
        self.matches = Matches(
            db=db,
            clock=self.clock,
            vault=VAULT,
            regions=regions,
            live=self.live,
            remote=RemoteMatches(db=db, regions=regions, turns=FoldTurns()),
            read_cvars=read_custom_cvars,
            notify=self.notified.append,
            audit=Audit(db=db, clock=self.clock),
            metrics=self.metrics,
            quotas=quotas,
            private_callbacks=PrivateCallbacks(db=db, by_settings=True, is_explicit=True),
            disk=free_disk(self.clock),
            installation="",
            random_bytes=random_bytes,
        )

    async def create(self, key: str | None = None, **fields: object) -> ServerView:
        return (await self.matches.create(OWNER, body(**fields), key)).server

    async def row(self, server_id: str) -> ServerRow:
        row = await servers.get(self.db, server_id)
        assert row is not None
        return row

    async def change(self, server_id: str, **columns: Value) -> None:
        row = await self.row(server_id)
        await self.db.write([servers.change(server_id, row.fence, **columns)])

    async def start(self, server_id: str) -> None:
        """Mark the server as running, with an address."""
        await self.change(
            server_id,
            phase=ServerPhase.RUNNING,
            status=ServerStatus.RUNNING,
            match_phase=PublicPhase.WAITING_FOR_PLAYERS,
            running_at_ms=NOW_MS,
            ip="10.0.0.1",
            port=27015,
        )

    async def end(self, server_id: str, *, reason: CancelReason | None = None, result: bytes | None = None) -> None:
        row = await self.row(server_id)
        outcome = Outcome(at_ms=self.clock.now_ms(), reason=reason)
        callback_id = f"msg_{server_id}"
        await self.db.write(end_match(row, outcome, result=result, fence=row.fence, callback_id=callback_id))

    async def count(self, table: str) -> Value:
        return (await self.db.read(f"SELECT COUNT(*) FROM {table}"))[0][0]


def body(**fields: object) -> bytes:
    defaults: dict[str, object] = {
        "region": "eu",
        "gameType": "cs2",
        "gameSettings": {"matchType": "competitive", "map": "de_mirage"},
    }
    return msgspec.json.encode(defaults | fields)


def as_json(view: msgspec.Struct) -> dict[str, object]:
    """The decoded JSON of a view."""
    return msgspec.json.decode(msgspec.json.encode(view), type=dict[str, object])


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


# --- create -------------------------------------------------------------------------------------------------------


async def test_created_match_is_due_at_once_and_notifies_the_supervisor(world: World) -> None:
    view = await world.create()
    row = await world.row(view.server_id)
    assert (row.phase, row.next_at_ms, row.created_at_ms) == (ServerPhase.ALLOCATING, NOW_MS, NOW_MS)
    assert tokens_of(row).log != tokens_of(row).report
    assert 1 <= row.plugin_match_id <= 2**31 - 1
    assert world.notified == [view.server_id]
    assert world.metrics.matches_created.value("eu") == 1


async def test_secrets_are_stored_encrypted_and_not_in_the_settings(world: World) -> None:
    settings = {"matchType": "deathmatch", "map": "de_dust2", "serverPassword": "open sesame", "players": [PLAYER]}
    view = await world.create(callbackAuthToken="Bearer s3cret", gameSettings=settings)
    row = await world.row(view.server_id)
    assert row.server_password is not None
    assert row.callback_auth is not None
    assert row.rcon_password is not None
    assert VAULT.open(row.server_password) == "open sesame"
    assert VAULT.open(row.callback_auth) == "Bearer s3cret"
    assert VAULT.open(row.rcon_password) == view.rcon_password
    assert b"sesame" not in row.settings
    stored = msgspec.json.decode(row.settings, type=GameSettings)
    assert stored == GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_dust2",), players=(PLAYER,))
    assert "sesame" not in repr(view)
    assert "s3cret" not in repr(view)


async def test_creation_is_logged_without_secrets(world: World, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "matchpod.service.matches"):
        view = await world.create(externalMatchId="cup-7", callbackAuthToken="s3cret")
    (record,) = caplog.records
    fields = vars(record)
    assert record.getMessage() == "match created"
    assert {name: fields[name] for name in ("server_id", "org_id", "region", "match_type", "external_match_id")} == {
        "server_id": view.server_id,
        "org_id": "org_1",
        "region": "eu",
        "match_type": "competitive",
        "external_match_id": "cup-7",
    }
    assert "s3cret" not in str(fields)
    assert str(view.rcon_password) not in str(fields)


async def test_simulator_region_allows_its_cvars_and_inactive_or_unknown_regions_are_rejected(world: World) -> None:
    settings = {"matchType": "casual", "map": "de_dust2", "customCvars": "sim_seed 7"}
    await world.create(region="sandbox", gameSettings=settings)
    await region_flags.set_active(world.db, "sandbox", False)
    for region in ("sandbox", "mars"):
        with pytest.raises(InvalidParamsError) as caught:
            await world.create(region=region)
        assert [str(fault.path) for fault in caught.value.faults] == ["region"]


async def test_region_whose_fleet_has_a_fault_is_inactive_with_a_notice_and_accepts_matches(world: World) -> None:
    world.fleet.why_unusable = "https://10.1.2.3 cannot be reached."
    assert (await world.create()).status is ServerStatus.ALLOCATING
    views = await world.regions.views()
    assert [(view.is_active, view.notice) for view in views] == [(False, UNAVAILABLE)] * 2
    assert [(region.code, why) for region, why in world.regions.faults()] == [
        ("eu", "https://10.1.2.3 cannot be reached."),
        ("sandbox", "https://10.1.2.3 cannot be reached."),
    ]
    await region_flags.set_active(world.db, "eu", False)
    with pytest.raises(InvalidParamsError, match="is not accepting new servers"):
        await world.create()
    assert [view.notice for view in await world.regions.views()] == [None, UNAVAILABLE]
    world.fleet.why_unusable = None
    assert [(view.is_active, view.notice) for view in await world.regions.views()] == [(False, None), (True, None)]
    assert world.regions.faults() == []


# --- idempotency keys ---------------------------------------------------------------------------------------------


@databases.on_both
async def test_same_key_and_body_return_the_current_state_of_the_same_server(world: World) -> None:
    key = "k" * 255
    first = await world.create(key)
    await world.start(first.server_id)
    # The same JSON in another format.
    spaced = msgspec.json.format(body(), indent=4)
    repeated = await world.matches.create(OWNER, spaced, key)
    again = repeated.server
    assert repeated.is_replayed
    assert again == msgspec.structs.replace(
        first, status=ServerStatus.RUNNING, phase=PublicPhase.WAITING_FOR_PLAYERS, ip="10.0.0.1", port=27015
    )
    assert "match" not in as_json(again)
    assert await world.count("servers") == 1
    assert world.notified == [first.server_id]
    assert world.metrics.matches_created.value("eu") == 1


async def test_repeated_creation_succeeds_even_if_the_region_was_switched_off_since(world: World) -> None:
    first = await world.create("once")
    await region_flags.set_active(world.db, "eu", False)
    assert await world.create("once") == first
    with pytest.raises(InvalidParamsError):
        await world.create("twice")


async def test_same_key_with_another_body_is_a_conflict(world: World) -> None:
    await world.create("once")
    with pytest.raises(IdempotencyConflictError):
        await world.create("once", externalMatchId="other")
    with pytest.raises(InvalidParamsError):
        await world.create("once", region="mars")
    assert await world.count("servers") == 1


async def test_idempotency_key_belongs_to_one_organization_and_lasts_a_day(world: World) -> None:
    first = await world.create("once")
    others = (await world.matches.create(OTHER_OWNER, body(), "once")).server
    world.clock.at_ms += IDEMPOTENCY_MS
    assert (await world.create("once")).server_id == first.server_id
    world.clock.at_ms += 1
    later = await world.create("once")
    assert len({first.server_id, others.server_id, later.server_id}) == 3


@databases.on_both
async def test_concurrent_equal_requests_get_the_same_server(replicas: databases.Replicas) -> None:
    first, second = replicas
    worlds = [World(first), World(second)]
    views = await asyncio.gather(*(world.create("once") for world in worlds * 3))
    assert len({view.server_id for view in views}) == 1
    assert len({view.rcon_password for view in views}) == 1
    assert await worlds[0].count("servers") == 1
    assert len(worlds[0].notified + worlds[1].notified) == 1


async def test_loser_of_a_race_for_a_key_gets_the_server_of_the_winner(world: World) -> None:
    won: list[ServerView] = []

    async def create_first() -> None:
        won.append(await world.create("once"))

    late = World(InterleavingDatabase(world.db, create_first))
    assert await late.create("once") == won[0]
    assert late.notified == []


async def test_loser_of_a_race_with_another_body_gets_a_conflict(world: World) -> None:
    late = World(InterleavingDatabase(world.db, lambda: world.create("once", externalMatchId="other")))
    with pytest.raises(IdempotencyConflictError):
        await late.create("once")
    assert await world.count("servers") == 1


async def test_duplicate_server_id_is_an_internal_error(db: Database) -> None:
    world = World(db, random_bytes=bytes)
    await world.create()
    for key in (None, "once"):
        with pytest.raises(DuplicateError):
            await world.create(key)
    assert await world.count("servers") == 1
    assert len(world.notified) == 1


# --- get ----------------------------------------------------------------------------------------------------------


@databases.on_both
async def test_server_has_no_address_and_no_match_until_it_runs(world: World) -> None:
    created = await world.create()
    await world.change(created.server_id, ip="10.0.0.1", port=27015)
    shown = as_json(await world.matches.get(OWNER, created.server_id))
    live = ("match", "deadline", "round", "sides", "lastHeardAt", "connect", "pendingAction")
    assert shown == as_json(created) | dict.fromkeys(live) | {"roster": [], "createdBy": "key_1"}


async def test_running_server_contains_the_live_view_of_a_match_driven_by_this_process(world: World) -> None:
    server_id = (await world.create()).server_id
    await world.start(server_id)
    live = LocalMatch(server_id, fold.Fold.begin(await world.row(server_id), 1.0), 0)
    live.fold.match.current_map.team1_score = 9
    world.live.add(live)
    shown = as_json(await world.matches.get(OWNER, server_id))
    assert (shown["status"], shown["ip"], shown["port"]) == ("running", "10.0.0.1", 27015)
    assert shown["match"] == msgspec.json.decode(live.state().match)
    assert b'"team1":9' in live.state().match


async def test_match_of_another_process_is_read_from_its_stored_log(world: World) -> None:
    server_id = (await world.create()).server_id
    await world.start(server_id)
    line = b'09/21/2026 - 13:34:00.000 - "Ann<3><[U:1:39734273]><>" entered the game\n'
    await world.db.write(raw_log.append(server_id, EntryKind.LOG, received_ms=NOW_MS, headers=b"{}", body=line))
    shown = as_json(await world.matches.get(OWNER, server_id))
    assert isinstance(shown["match"], dict)
    assert (shown["match"]["game"], shown["match"]["matchType"]) == ("cs2", "competitive")
    assert [player["name"] for player in shown["match"]["players"]] == ["Ann"]


@databases.on_both
async def test_encoded_server_is_kept_until_its_row_or_its_log_changes(world: World) -> None:
    server_id = (await world.create()).server_id
    line = b'09/21/2026 - 13:34:00.000 - "Ann<3><[U:1:39734273]><>" entered the game\n'
    entry = raw_log.append(server_id, EntryKind.LOG, received_ms=NOW_MS, headers=b"{}", body=line)
    bodies = set()
    for change in (None, world.start(server_id), world.db.write(entry), world.end(server_id, result=b"{}")):
        if change is not None:
            await change
        encoded = await world.matches.get_encoded(OWNER, server_id)
        assert encoded.body == msgspec.json.encode(await world.matches.get(OWNER, server_id))
        assert await world.matches.get_encoded(OWNER, server_id) is encoded
        assert (await world.matches.get_encoded(READER, server_id)).body == msgspec.json.encode(
            await world.matches.get(READER, server_id)
        )
        bodies.add(encoded.body)
    assert len(bodies) == 4
