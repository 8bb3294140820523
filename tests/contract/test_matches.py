"""A caller creates a match once, sees his own servers, cancels once and reads the result that the callback carried."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.errors import (
    Fault,
    ForbiddenError,
    IdempotencyConflictError,
    InvalidParamsError,
    NotFoundError,
    ServerNotRunningError,
    UnavailableError,
)
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import Database, DatabaseAwayError, DuplicateError, GameServer, Row, ServerOrder, Statement, Value
from matchpod.service import folding
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.live import LiveMatch, LiveMatches
from matchpod.service.matches import Matches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.service.principals import Principal, Role, Scope
from matchpod.service.regions import Region, Regions
from matchpod.service.server_views import ServerView
from matchpod.service.spectators import Spectators
from matchpod.storage import outbox, raw_log, region_flags, servers
from matchpod.storage.servers import IDEMPOTENCY_MS, ServerRow
from tests.contract import databases

home = databases.home

NOW_MS = 1_790_000_000_123
VAULT = KeyFileVault.from_text("A" * 43 + "=")
PLAYER = "76561198000000001"

OWNER = Principal(
    org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset({Scope.SERVERS_READ, Scope.SERVERS_WRITE})
)
READER = Principal(org_id="org_1", key_id="key_2", role=Role.MEMBER, scopes=frozenset({Scope.SERVERS_READ}))
STRANGER = msgspec.structs.replace(OWNER, org_id="org_2", key_id="key_3")


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.at_ms = now_ms

    def now_ms(self) -> int:
        return self.at_ms


class NoFleet:
    """A fleet that nobody is meant to ask for anything."""

    slots: Sequence[str] = ()

    async def allocate(self, order: ServerOrder) -> GameServer:
        raise AssertionError(order)

    async def is_alive(self, server_id: str, slot: str) -> bool:
        raise AssertionError(server_id, slot)

    async def release(self, server_id: str, slot: str) -> None:
        raise AssertionError(server_id, slot)

    async def servers(self) -> Sequence[str]:
        return ()

    async def close(self) -> None:
        pass


class Interrupted(databases.PassedOn):
    """A database in which something else happens right before the first write."""

    def __init__(self, db: Database, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__(db)
        self._meanwhile: Callable[[], Awaitable[object]] | None = meanwhile

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().write(statements)


class AwayDatabase:
    """A database that cannot be reached."""

    is_shared = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        raise DatabaseAwayError("away")

    async def look_up(self, sql: str, params: Mapping[str, Value]) -> Row | None:
        rows = await self.read(sql, params)
        return rows[0] if rows else None

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        raise DatabaseAwayError("away")

    async def close(self) -> None:
        pass


class Desk:
    """The use cases under test with everything around them, on one database."""

    def __init__(self, db: Database, random_bytes: Callable[[int], bytes] = secrets.token_bytes) -> None:
        self.db = db
        self.clock = ManualClock()
        self.live = LiveMatches()
        self.notified: list[str] = []
        self.measures = Measures(Metrics())
        fleet = NoFleet()
        regions = Regions(
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
            spectators=Spectators(db=db, regions=regions),
            read_cvars=read_custom_cvars,
            notify=self.notified.append,
            measures=self.measures,
            random_bytes=random_bytes,
        )

    async def create(self, key: str | None = None, **fields: object) -> ServerView:
        return await self.matches.create(OWNER, body(**fields), key)

    async def row(self, server_id: str) -> ServerRow:
        row = await servers.get(self.db, server_id)
        assert row is not None
        return row

    async def change(self, server_id: str, **columns: Value) -> None:
        row = await self.row(server_id)
        await self.db.write([servers.change(server_id, row.fence, **columns)])

    async def start(self, server_id: str) -> None:
        """Let the server run, at an address."""
        await self.change(
            server_id,
            phase=ServerPhase.RUNNING,
            status=ServerStatus.RUNNING,
            running_at_ms=NOW_MS,
            ip="10.0.0.1",
            port=27015,
        )

    async def end(self, server_id: str, ending: Ending) -> None:
        row = await self.row(server_id)
        await self.db.write(
            conclude(row, ending, fence=row.fence, now_ms=self.clock.now_ms(), callback_id=f"msg_{server_id}")
        )

    async def count(self, table: str) -> Value:
        return (await self.db.read(f"SELECT COUNT(*) FROM {table}"))[0][0]


def body(**fields: object) -> bytes:
    asked: dict[str, object] = {
        "region": "eu",
        "gameType": "cs2",
        "gameSettings": {"matchType": "competitive", "map": "de_mirage"},
    }
    return msgspec.json.encode(asked | fields)


def shown(view: msgspec.Struct) -> dict[str, object]:
    """What a caller reads."""
    return msgspec.json.decode(msgspec.json.encode(view), type=dict[str, object])


def run(home: databases.Home, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def on(db: Database) -> None:
        await scenario(Desk(db))

    home.run(on)


# --- create -------------------------------------------------------------------------------------------------------


def test_a_created_match_is_told_without_address_and_without_match(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        view = await desk.create(callbackUrl="https://a.example/cb", externalMatchId="cup-7")
        told = shown(view)
        assert list(told) == [
            "serverId", "gameId", "region", "status", "ip", "port", "callbackUrl", "externalMatchId", "gameType",
            "createdAt", "rconPassword",
        ]  # fmt: skip
        assert re.fullmatch(r"srv_[0-9a-z]{26}", view.server_id)
        assert uuid.UUID(view.game_id).version == 4
        assert view.rcon_password is not None
        assert re.fullmatch(r"[0-9a-f]{32}", view.rcon_password)
        assert (told["region"], told["status"], told["ip"], told["port"]) == ("eu", "allocating", None, None)
        assert (told["callbackUrl"], told["externalMatchId"]) == ("https://a.example/cb", "cup-7")
        assert (told["gameType"], told["createdAt"]) == ("cs2", "2026-09-21T14:13:20.123Z")

    run(home, scenario)


def test_a_created_match_is_due_at_once_and_its_driver_is_woken(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        view = await desk.create()
        row = await desk.row(view.server_id)
        assert (row.phase, row.next_at_ms, row.created_at_ms) == (ServerPhase.ALLOCATING, NOW_MS, NOW_MS)
        assert row.log_token != row.report_token
        assert 1 <= row.plugin_match_id <= 2**31 - 1
        assert desk.notified == [view.server_id]
        assert desk.measures.matches_created.value("eu") == 1

    run(home, scenario)


def test_secrets_are_stored_sealed_and_apart_from_the_settings(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        settings = {"matchType": "deathmatch", "map": "de_dust2", "serverPassword": "open sesame", "players": [PLAYER]}
        view = await desk.create(callbackAuthToken="Bearer s3cret", gameSettings=settings)
        row = await desk.row(view.server_id)
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

    run(home, scenario)


def test_a_creation_is_logged_without_secrets(home: databases.Home, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(desk: Desk) -> None:
        with caplog.at_level(logging.INFO, "matchpod.service.matches"):
            view = await desk.create(externalMatchId="cup-7", callbackAuthToken="s3cret")
        (record,) = caplog.records
        fields = vars(record)
        assert record.getMessage() == "match created"
        assert {
            name: fields[name] for name in ("server_id", "org_id", "region", "match_type", "external_match_id")
        } == {
            "server_id": view.server_id,
            "org_id": "org_1",
            "region": "eu",
            "match_type": "competitive",
            "external_match_id": "cup-7",
        }
        assert "s3cret" not in str(fields)
        assert str(view.rcon_password) not in str(fields)

    run(home, scenario)


@pytest.mark.parametrize("sent", [b"", b"{", b"\xff", b'"\xff"', b'"\\ud800"', b"NaN", b"[" * 100_000, b'{"a":1e999}'])
def test_a_body_that_is_not_json_is_refused(home: databases.Home, sent: bytes) -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(InvalidParamsError, match="not JSON"):
            await desk.matches.create(OWNER, sent, None)
        assert await desk.count("servers") == 0
        assert desk.notified == []

    run(home, scenario)


def test_all_faults_of_a_body_are_told(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        settings = {"matchType": "casual", "map": "DUST", "customCvars": "sim_seed 7"}
        with pytest.raises(InvalidParamsError) as refused:
            await desk.create(gameType="csgo", gameSettings=settings)
        assert [fault.path for fault in refused.value.faults] == [
            "gameType",
            "gameSettings.map",
            "gameSettings.customCvars",
        ]
        assert await desk.count("servers") == 0

    run(home, scenario)


def test_regions_decide_what_a_match_may_ask_for(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        settings = {"matchType": "casual", "map": "de_dust2", "customCvars": "sim_seed 7"}
        await desk.create(region="sandbox", gameSettings=settings)
        await region_flags.set_active(desk.db, "sandbox", False)
        for region in ("sandbox", "mars"):
            with pytest.raises(InvalidParamsError) as refused:
                await desk.create(region=region)
            assert [fault.path for fault in refused.value.faults] == ["region"]

    run(home, scenario)


# --- idempotency keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "ключ", "x" * 256, "\x7f"])
def test_an_idempotency_key_is_visible_ascii(home: databases.Home, key: str) -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(InvalidParamsError, match="Idempotency-Key") as refused:
            await desk.create(key)
        assert refused.value.faults == (Fault("Idempotency-Key", "must be 1 to 255 visible ASCII characters"),)

    run(home, scenario)


def test_the_same_key_and_body_answer_the_same_server_as_it_is_now(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        key = "k" * 255
        first = await desk.create(key)
        await desk.start(first.server_id)
        # Written another way, but the same JSON.
        spaced = msgspec.json.format(body(), indent=4)
        again = await desk.matches.create(OWNER, spaced, key)
        assert again == msgspec.structs.replace(first, status=ServerStatus.RUNNING, ip="10.0.0.1", port=27015)
        assert "match" not in shown(again)
        assert await desk.count("servers") == 1
        assert desk.notified == [first.server_id]
        assert desk.measures.matches_created.value("eu") == 1

    run(home, scenario)


def test_a_repeated_creation_is_answered_when_the_region_was_switched_off_since(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        first = await desk.create("once")
        await region_flags.set_active(desk.db, "eu", False)
        assert await desk.create("once") == first
        with pytest.raises(InvalidParamsError):
            await desk.create("twice")

    run(home, scenario)


def test_the_same_key_with_another_body_is_a_conflict(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.create("once")
        with pytest.raises(IdempotencyConflictError):
            await desk.create("once", externalMatchId="other")
        with pytest.raises(InvalidParamsError):
            await desk.create("once", region="mars")
        assert await desk.count("servers") == 1

    run(home, scenario)


def test_a_key_is_one_organizations_own_and_lasts_a_day(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        first = await desk.create("once")
        strangers = await desk.matches.create(STRANGER, body(), "once")
        desk.clock.at_ms += IDEMPOTENCY_MS
        assert (await desk.create("once")).server_id == first.server_id
        desk.clock.at_ms += 1
        later = await desk.create("once")
        assert len({first.server_id, strangers.server_id, later.server_id}) == 3

    run(home, scenario)


def test_equal_requests_at_the_same_time_get_the_same_server(home: databases.Home) -> None:
    async def scenario(first: Database, second: Database) -> None:
        desks = [Desk(first), Desk(second)]
        views = await asyncio.gather(*(desk.create("once") for desk in desks * 3))
        assert len({view.server_id for view in views}) == 1
        assert len({view.rcon_password for view in views}) == 1
        assert await desks[0].count("servers") == 1
        assert len(desks[0].notified + desks[1].notified) == 1

    home.run_replicas(scenario)


def test_whoever_loses_the_race_for_a_key_gets_the_winners_server(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        won: list[ServerView] = []

        async def meanwhile() -> None:
            won.append(await desk.create("once"))

        late = Desk(Interrupted(desk.db, meanwhile))
        assert await late.create("once") == won[0]
        assert late.notified == []

    run(home, scenario)


def test_whoever_loses_the_race_with_another_body_has_a_conflict(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        late = Desk(Interrupted(desk.db, lambda: desk.create("once", externalMatchId="other")))
        with pytest.raises(IdempotencyConflictError):
            await late.create("once")
        assert await desk.count("servers") == 1

    run(home, scenario)


def test_without_a_key_every_creation_is_a_new_match(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        assert (await desk.create()).server_id != (await desk.create()).server_id

    run(home, scenario)


def test_an_id_that_comes_up_twice_is_our_own_fault_and_nobodys_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        desk = Desk(db, random_bytes=bytes)
        await desk.create()
        for key in (None, "once"):
            with pytest.raises(DuplicateError):
                await desk.create(key)
        assert await desk.count("servers") == 1
        assert len(desk.notified) == 1

    home.run(scenario)


# --- get ----------------------------------------------------------------------------------------------------------


def test_a_server_has_no_address_and_no_match_until_it_runs(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        created = await desk.create()
        await desk.change(created.server_id, ip="10.0.0.1", port=27015)
        told = shown(await desk.matches.get(OWNER, created.server_id))
        assert told == shown(created) | {"match": None}

    run(home, scenario)


def test_a_running_server_is_told_with_the_match_that_this_process_follows(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        await desk.start(server_id)
        live = LiveMatch(server_id, folding.Fold.begin(await desk.row(server_id), 1.0), 0)
        live.fold.reader.match.current_map.team1_score = 9
        desk.live.add(live)
        told = shown(await desk.matches.get(OWNER, server_id))
        assert (told["status"], told["ip"], told["port"]) == ("running", "10.0.0.1", 27015)
        assert told["match"] == msgspec.json.decode(live.view())
        assert b'"team1":9' in live.view()

    run(home, scenario)


def test_a_match_that_another_process_follows_is_read_from_what_is_stored(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        await desk.start(server_id)
        line = b'09/21/2026 - 13:34:00.000 - "Ann<3><[U:1:39734273]><>" entered the game\n'
        await desk.db.write(raw_log.append(server_id, folding.LOG, received_ms=NOW_MS, headers=b"{}", body=line))
        told = shown(await desk.matches.get(OWNER, server_id))
        assert isinstance(told["match"], dict)
        assert (told["match"]["game"], told["match"]["matchType"]) == ("cs2", "competitive")
        assert [player["name"] for player in told["match"]["players"]] == ["Ann"]

    run(home, scenario)


def test_an_ended_server_keeps_its_address_and_has_no_match(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        await desk.start(server_id)
        desk.live.add(LiveMatch(server_id, folding.Fold.begin(await desk.row(server_id), 1.0), 0))
        await desk.end(server_id, Ending(result=b"{}"))
        told = shown(await desk.matches.get(OWNER, server_id))
        assert (told["status"], told["ip"], told["match"]) == ("stopped", "10.0.0.1", None)

    run(home, scenario)


def test_the_console_password_is_for_those_who_could_have_created_the_match_until_it_ends(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        created = await desk.create()
        server_id = created.server_id
        admin = msgspec.structs.replace(OWNER, role=Role.ADMIN)
        member = msgspec.structs.replace(OWNER, role=Role.MEMBER)
        read_only_owner = msgspec.structs.replace(OWNER, scopes=READER.scopes)
        for principal, password in (
            (OWNER, created.rcon_password),
            (admin, created.rcon_password),
            (READER, None),
            (member, None),
            (read_only_owner, None),
        ):
            assert (await desk.matches.get(principal, server_id)).rcon_password == password
        await desk.end(server_id, Ending(reason=CancelReason.SERVER_FAILED))
        ended = await desk.matches.get(OWNER, server_id)
        assert (ended.status, ended.rcon_password) == (ServerStatus.FAILED, None)

    run(home, scenario)


@pytest.mark.parametrize("server_id", ["srv_0", "", "srv_\x00", "\ud800", "ü", "x" * 10_000, "srv_' OR '1'='1"])
def test_an_unknown_server_is_not_found_whatever_its_id_looks_like(home: databases.Home, server_id: str) -> None:
    async def scenario(desk: Desk) -> None:
        for work in (desk.matches.get, desk.matches.cancel):
            with pytest.raises(NotFoundError):
                await work(OWNER, server_id)

    run(home, scenario)


def test_another_organizations_server_is_forbidden(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        for work in (desk.matches.get, desk.matches.cancel):
            with pytest.raises(ForbiddenError):
                await work(STRANGER, server_id)
        assert (await desk.row(server_id)).phase is ServerPhase.ALLOCATING

    run(home, scenario)


# --- cancel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING])
def test_a_match_can_be_canceled_in_every_open_phase(home: databases.Home, phase: ServerPhase) -> None:
    async def scenario(desk: Desk) -> None:
        created = await desk.create(
            callbackUrl="https://a.example/cb", callbackAuthToken="s3cret", externalMatchId="cup-7"
        )
        await desk.change(created.server_id, phase=phase, status=ServerStatus(phase.value))
        desk.clock.at_ms += 5_000
        await desk.matches.cancel(OWNER, created.server_id)
        row = await desk.row(created.server_id)
        assert (row.phase, row.status) == (ServerPhase.ENDING, ServerStatus.STOPPED)
        assert (row.ended_at_ms, row.next_at_ms) == (NOW_MS + 5_000, NOW_MS + 5_000)
        (callback,) = await outbox.list_callbacks(desk.db, org_id="org_1", state=None, limit=10)
        assert callback.auth is not None
        assert VAULT.open(callback.auth) == "s3cret"
        sent = msgspec.json.decode(callback.body)
        assert (sent["eventType"], sent["reason"]) == ("match_canceled", "canceled_by_user")
        assert (sent["externalMatchId"], sent["sessionId"]) == ("cup-7", created.game_id)
        assert desk.notified == [created.server_id] * 2
        assert desk.measures.matches_ended.value("eu", "canceled_by_user") == 1

    run(home, scenario)


def test_a_cancel_is_logged(home: databases.Home, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        with caplog.at_level(logging.INFO, "matchpod.service.matches"):
            await desk.matches.cancel(OWNER, server_id)
            await desk.matches.cancel(OWNER, server_id)
        (record,) = caplog.records
        assert record.getMessage() == "match canceled"
        assert vars(record)["server_id"] == server_id

    run(home, scenario)


def test_a_repeated_cancel_succeeds_and_sends_nothing(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create(callbackUrl="https://a.example/cb")).server_id
        for _ in range(3):
            await desk.matches.cancel(OWNER, server_id)
        assert await desk.count("callbacks") == 1
        assert await desk.count("outcomes") == 1
        assert desk.notified == [server_id] * 2

    run(home, scenario)


@pytest.mark.parametrize(
    "ending", [Ending(result=b"{}"), Ending(reason="no_players_joined"), Ending(reason="server_lost")]
)
def test_a_match_that_ended_another_way_cannot_be_canceled(home: databases.Home, ending: Ending) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create()).server_id
        await desk.end(server_id, ending)
        with pytest.raises(ServerNotRunningError):
            await desk.matches.cancel(OWNER, server_id)
        assert desk.notified == [server_id]

    run(home, scenario)


def test_a_match_that_ends_while_it_is_canceled_keeps_its_result(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create(callbackUrl="https://a.example/cb")).server_id
        late = Desk(Interrupted(desk.db, lambda: desk.end(server_id, Ending(result=b'{"winner":"team1"}'))))
        with pytest.raises(ServerNotRunningError):
            await late.matches.cancel(OWNER, server_id)
        outcome = await outbox.outcome_of(desk.db, server_id)
        assert outcome is not None
        assert outcome.kind == "match_over"
        assert await desk.count("callbacks") == 1
        assert late.notified == []

    run(home, scenario)


def test_cancels_at_the_same_time_all_succeed_and_end_the_match_once(home: databases.Home) -> None:
    async def scenario(first: Database, second: Database) -> None:
        desks = [Desk(first), Desk(second)]
        server_id = (await desks[0].create(callbackUrl="https://a.example/cb")).server_id
        await asyncio.gather(*(desk.matches.cancel(OWNER, server_id) for desk in desks * 3))
        assert await desks[0].count("callbacks") == 1
        assert len(desks[0].notified + desks[1].notified) == 2

    home.run_replicas(scenario)


# --- by external id -----------------------------------------------------------------------------------------------


def test_a_match_is_found_by_its_external_id_without_a_result_until_it_is_over(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create(externalMatchId="Cup / 7 ü")).server_id
        view = await desk.matches.by_external_id(READER, "Cup / 7 ü")
        assert list(shown(view).items()) == [
            ("externalMatchId", "Cup / 7 ü"),
            ("serverId", server_id),
            ("status", "allocating"),
            ("region", "eu"),
            ("createdAt", "2026-09-21T14:13:20.123Z"),
            ("result", None),
        ]

    run(home, scenario)


def test_the_result_is_byte_for_byte_that_of_the_callback(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create(externalMatchId="cup", callbackUrl="https://a.example/cb")).server_id
        result = b'{"winner": "team1",  "adr": 81.20}'
        await desk.end(server_id, Ending(result=result))
        view = await desk.matches.by_external_id(READER, "cup")
        assert view.status is ServerStatus.STOPPED
        assert view.result is not None
        assert bytes(view.result) == result
        (callback,) = await outbox.list_callbacks(desk.db, org_id=None, state=None, limit=10)
        assert result in callback.body
        assert result in msgspec.json.encode(view)

    run(home, scenario)


def test_a_canceled_match_has_no_result(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        server_id = (await desk.create(externalMatchId="cup")).server_id
        await desk.matches.cancel(OWNER, server_id)
        view = await desk.matches.by_external_id(READER, "cup")
        assert (view.status, view.result) == (ServerStatus.STOPPED, None)

    run(home, scenario)


def test_the_newest_of_the_own_matches_is_found(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.create(externalMatchId="cup")
        desk.clock.at_ms += 1
        newest = await desk.create(externalMatchId="cup")
        desk.clock.at_ms += 1
        await desk.matches.create(STRANGER, body(externalMatchId="cup"), None)
        assert (await desk.matches.by_external_id(READER, "cup")).server_id == newest.server_id

    run(home, scenario)


def test_an_external_id_is_unknown_or_somebody_elses(home: databases.Home) -> None:
    async def scenario(desk: Desk) -> None:
        await desk.create(externalMatchId="cup")
        with pytest.raises(ForbiddenError):
            await desk.matches.by_external_id(STRANGER, "cup")
        with pytest.raises(NotFoundError):
            await desk.matches.by_external_id(STRANGER, "Cup")

    run(home, scenario)


@pytest.mark.parametrize("external_id", ["", "x" * 256, "a\x00b", "a\nb", "\ud800"])
def test_a_malformed_external_id_is_refused(home: databases.Home, external_id: str) -> None:
    async def scenario(desk: Desk) -> None:
        with pytest.raises(InvalidParamsError) as refused:
            await desk.matches.by_external_id(READER, external_id)
        assert [fault.path for fault in refused.value.faults] == ["externalMatchId"]

    run(home, scenario)


# --- the database is away -----------------------------------------------------------------------------------------


def test_callers_are_told_to_come_back_while_the_database_is_away() -> None:
    matches = Desk(AwayDatabase()).matches

    async def scenario() -> None:
        for work in (
            matches.create(OWNER, body(), None),
            matches.create(OWNER, body(), "once"),
            matches.get(OWNER, "srv_1"),
            matches.cancel(OWNER, "srv_1"),
            matches.by_external_id(OWNER, "cup"),
        ):
            with pytest.raises(UnavailableError):
                await work

    asyncio.run(scenario())
