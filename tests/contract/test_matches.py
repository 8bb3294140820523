"""Callers create, read and cancel matches, and read their results."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.errors import IdempotencyConflictError, InvalidParamsError, ServerNotRunningError, UnavailableError
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, DatabaseUnavailableError, DuplicateError, Value
from matchpod.service.end_match import end_match
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.match_log import fold
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.live import LocalMatch
from matchpod.service.reading.match_head import ServerView
from matchpod.service.regions.regions import UNAVAILABLE, Region
from matchpod.storage import outbox, raw_log, region_flags, servers
from matchpod.storage.servers import IDEMPOTENCY_MS
from tests.contract import databases
from tests.contract.databases import HookedDatabase, once
from tests.contract.parts import Parts
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


def interrupted(db: Database, *, failing_reads: int = 0) -> HookedDatabase:
    """A database whose writes are committed, but their answers are lost; the next `failing_reads` reads fail too."""
    left: list[int] = []

    async def fail(_: object) -> None:
        raise DatabaseUnavailableError("interrupted")

    async def interrupt(_: object) -> None:
        left[:] = range(failing_reads)
        await fail(_)

    async def fail_while_left(_: object) -> None:
        if left:
            left.pop()
            await fail(_)

    return HookedDatabase(db, before_read=fail_while_left, after_write=interrupt)


class Callers(Parts):
    """One process with two regions, which callers use; nothing drives their matches."""

    def __init__(self, db: Database, **settings: object) -> None:
        self.notified: list[str] = []
        self.fleet = UnusedFleet()
        sandbox = Region(code="sandbox", name="Sandbox", location="here", allows_simulator=True, fleet=self.fleet)
        frankfurt = Region(code="eu", name="Europe", location="Frankfurt", fleet=self.fleet)
        super().__init__(db, regions=[frankfurt, sandbox], settings=settings)
        self.supervisor.notify = self.notified.append  # type: ignore[method-assign, assignment]

    async def create(self, key: str | None = None, **fields: object) -> ServerView:
        return (await self.matches.create(OWNER, body(**fields), key)).server

    async def change(self, server_id: str, **columns: Value) -> None:
        row = await self.row(server_id)
        await self.db.write([servers.change(server_id, row.fence, **columns)])

    async def start(self, server_id: str) -> None:
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


def body(**fields: object) -> bytes:
    defaults: dict[str, object] = {
        "region": "eu",
        "gameType": "cs2",
        "gameSettings": {"matchType": "competitive", "map": "de_mirage"},
    }
    return msgspec.json.encode(defaults | fields)


def as_json(view: msgspec.Struct) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(view), type=dict[str, object])


@pytest.fixture
def world(db: Database) -> Callers:
    return Callers(db)


# --- create -------------------------------------------------------------------------------------------------------


async def test_created_match_is_due_at_once_and_notifies_the_supervisor(world: Callers) -> None:
    view = await world.create()
    row = await world.row(view.server_id)
    assert (row.phase, row.next_at_ms, row.created_at_ms) == (ServerPhase.ALLOCATING, NOW_MS, NOW_MS)
    assert tokens_of(row).log != tokens_of(row).report
    assert 1 <= row.plugin_match_id <= 2**31 - 1
    assert world.notified == [view.server_id]
    assert world.metrics.matches_created.value("eu") == 1


async def test_secrets_are_stored_encrypted_and_not_in_the_settings(world: Callers) -> None:
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


async def test_creation_is_logged_without_secrets(world: Callers, caplog: pytest.LogCaptureFixture) -> None:
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


async def test_simulator_region_allows_its_cvars_and_inactive_or_unknown_regions_are_rejected(world: Callers) -> None:
    settings = {"matchType": "casual", "map": "de_dust2", "customCvars": "sim_seed 7"}
    await world.create(region="sandbox", gameSettings=settings)
    await region_flags.set_active(world.db, "sandbox", False)
    for region in ("sandbox", "mars"):
        with pytest.raises(InvalidParamsError) as caught:
            await world.create(region=region)
        assert [str(fault.path) for fault in caught.value.faults] == ["region"]


async def test_region_whose_fleet_has_a_fault_is_inactive_with_a_notice_and_accepts_matches(world: Callers) -> None:
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
async def test_same_key_and_body_return_the_current_state_of_the_same_server(world: Callers) -> None:
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


async def test_repeated_creation_succeeds_even_if_the_region_was_switched_off_since(world: Callers) -> None:
    first = await world.create("once")
    await region_flags.set_active(world.db, "eu", False)
    assert await world.create("once") == first
    with pytest.raises(InvalidParamsError):
        await world.create("twice")


async def test_same_key_with_another_body_is_a_conflict(world: Callers) -> None:
    await world.create("once")
    with pytest.raises(IdempotencyConflictError):
        await world.create("once", externalMatchId="other")
    with pytest.raises(InvalidParamsError):
        await world.create("once", region="mars")
    assert await world.count("servers") == 1


async def test_idempotency_key_belongs_to_one_organization_and_lasts_a_day(world: Callers) -> None:
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
    worlds = [Callers(first), Callers(second)]
    views = await asyncio.gather(*(world.create("once") for world in worlds * 3))
    assert len({view.server_id for view in views}) == 1
    assert len({view.rcon_password for view in views}) == 1
    assert await worlds[0].count("servers") == 1
    assert len(worlds[0].notified + worlds[1].notified) == 1


async def test_loser_of_a_race_with_another_body_gets_a_conflict(world: Callers) -> None:
    late = Callers(HookedDatabase(world.db, before_write=once(lambda: world.create("once", externalMatchId="other"))))
    with pytest.raises(IdempotencyConflictError):
        await late.create("once")
    assert await world.count("servers") == 1


async def test_duplicate_server_id_is_an_internal_error(db: Database) -> None:
    world = Callers(db)
    world.matches._random_bytes = bytes
    await world.create()
    for key in (None, "once"):
        with pytest.raises(DuplicateError):
            await world.create(key)
    assert await world.count("servers") == 1
    assert len(world.notified) == 1


# --- get ----------------------------------------------------------------------------------------------------------


async def test_server_has_no_address_and_no_match_until_it_runs(world: Callers) -> None:
    created = await world.create()
    await world.change(created.server_id, ip="10.0.0.1", port=27015)
    shown = as_json(await world.matches.get(OWNER, created.server_id))
    live = ("match", "deadline", "round", "sides", "lastHeardAt", "connect", "pendingAction")
    assert shown == as_json(created) | dict.fromkeys(live) | {"roster": [], "createdBy": "key_1"}


async def test_running_server_contains_the_live_view_of_a_match_driven_by_this_process(world: Callers) -> None:
    server_id = (await world.create()).server_id
    await world.start(server_id)
    live = LocalMatch(server_id, fold.Fold.begin(await world.row(server_id), 1.0), 0)
    live.fold.match.current_map.team1_score = 9
    world.live.add(live)
    shown = as_json(await world.matches.get(OWNER, server_id))
    assert (shown["status"], shown["ip"], shown["port"]) == ("running", "10.0.0.1", 27015)
    assert shown["match"] == msgspec.json.decode(live.state().match)
    assert b'"team1":9' in live.state().match


async def test_match_of_another_process_is_read_from_its_stored_log(world: Callers) -> None:
    server_id = (await world.create()).server_id
    await world.start(server_id)
    line = b'09/21/2026 - 13:34:00.000 - "Ann<3><[U:1:39734273]><>" entered the game\n'
    await world.db.write(raw_log.append(server_id, EntryKind.LOG, received_ms=NOW_MS, headers=b"{}", body=line))
    shown = as_json(await world.matches.get(OWNER, server_id))
    assert isinstance(shown["match"], dict)
    assert (shown["match"]["game"], shown["match"]["matchType"]) == ("cs2", "competitive")
    assert [player["name"] for player in shown["match"]["players"]] == ["Ann"]


@databases.on_both
async def test_encoded_server_is_kept_until_its_row_or_its_log_changes(world: Callers) -> None:
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


# --- cancel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING])
async def test_match_can_be_canceled_in_every_open_phase(world: Callers, phase: ServerPhase) -> None:
    created = await world.create(
        callbackUrl="https://a.example/cb", callbackAuthToken="s3cret", externalMatchId="cup-7"
    )
    await world.change(created.server_id, phase=phase, status=ServerStatus(phase.value))
    world.clock.at_ms += 5_000
    await world.matches.cancel(OWNER, created.server_id)
    row = await world.row(created.server_id)
    assert (row.phase, row.status) == (ServerPhase.ENDING, ServerStatus.STOPPED)
    assert (row.ended_at_ms, row.next_at_ms) == (NOW_MS + 5_000, NOW_MS + 5_000)
    (callback,) = await outbox.list_callbacks(world.db, org_id="org_1", state=None, limit=10)
    assert callback.auth is not None
    assert VAULT.open(callback.auth) == "s3cret"
    sent = msgspec.json.decode(callback.body)
    assert (sent["eventType"], sent["reason"]) == ("match_canceled", "canceled_by_user")
    assert (sent["externalMatchId"], sent["sessionId"]) == ("cup-7", created.game_id)
    assert world.notified == [created.server_id] * 2
    assert world.metrics.matches_ended.value("eu", "canceled_by_user") == 1


@databases.on_both
async def test_repeated_cancellation_succeeds_sends_one_callback_and_is_logged_once(
    world: Callers, caplog: pytest.LogCaptureFixture
) -> None:
    server_id = (await world.create(callbackUrl="https://a.example/cb")).server_id
    with caplog.at_level(logging.INFO, "matchpod.service.cancellation"):
        for _ in range(3):
            await world.matches.cancel(OWNER, server_id)
    assert [(one.getMessage(), vars(one)["server_id"]) for one in caplog.records] == [("match canceled", server_id)]
    assert await world.count("callbacks") == 1
    assert await world.count("outcomes") == 1
    assert world.notified == [server_id] * 2


async def test_match_that_ends_during_a_cancellation_keeps_its_result(world: Callers) -> None:
    server_id = (await world.create(callbackUrl="https://a.example/cb")).server_id
    late = Callers(
        HookedDatabase(world.db, before_write=once(lambda: world.end(server_id, result=b'{"winner":"team1"}')))
    )
    with pytest.raises(ServerNotRunningError):
        await late.matches.cancel(OWNER, server_id)
    outcome = await outbox.outcome_of(world.db, server_id)
    assert outcome is not None
    assert outcome.kind == "match_over"
    assert await world.count("callbacks") == 1
    assert late.notified == []


@databases.on_both
async def test_concurrent_cancellations_succeed_and_end_the_match_once(replicas: databases.Replicas) -> None:
    first, second = replicas
    worlds = [Callers(first), Callers(second)]
    server_id = (await worlds[0].create(callbackUrl="https://a.example/cb")).server_id
    await asyncio.gather(*(world.matches.cancel(OWNER, server_id) for world in worlds * 3))
    assert await worlds[0].count("callbacks") == 1
    assert len(worlds[0].notified + worlds[1].notified) == 2


# --- database outage ----------------------------------------------------------------------------------------------


async def test_match_whose_commit_was_interrupted_is_created_once(world: Callers) -> None:
    late = Callers(interrupted(world.db))
    first = await late.create()
    assert (await world.matches.get(OWNER, first.server_id)).server_id == first.server_id
    assert await world.count("servers") == 1
    assert late.notified == [first.server_id]


async def test_request_whose_commit_was_interrupted_can_be_repeated(world: Callers) -> None:
    with pytest.raises(UnavailableError):
        await Callers(interrupted(world.db, failing_reads=1)).create("once")
    again = await world.create("once")
    assert await world.count("servers") == 1
    with pytest.raises(UnavailableError):
        await Callers(interrupted(world.db)).matches.cancel(OWNER, again.server_id)
    await world.matches.cancel(OWNER, again.server_id)
    assert await world.count("outcomes") == 1
