"""What game servers send is stored before it is answered, without secrets, and only while their match goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import pytest

from matchpod.core.errors import PayloadTooLargeError, UnavailableError
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.cs2.log_batches import read_post
from matchpod.ports import Database, DatabaseAwayError, Row, Statement, Value
from matchpod.service.conclusion import Ending, conclude
from matchpod.service.folding import ENDED, LOG, Fold
from matchpod.service.ingest import MAX_BODY_BYTES, MAX_KNOWN_TOKENS, OPEN_FOR_MS, TOKEN_HEADER, Ingest
from matchpod.service.live import LiveMatch, LiveMatches
from matchpod.service.measures import Measures
from matchpod.service.metrics import Metrics
from matchpod.storage import raw_log, servers
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow
from tests.contract import databases

home = databases.home

NOW_MS = 1_790_000_000_000
LINE = b'09/21/2026 - 14:13:20.000 - World triggered "Round_Start"\n'
REPORT = b'{"event":"going_live","matchid":7,"map_number":0}'
POSTED = {
    "X-LogBytes-BeginOffset": "118",
    "x-logbytes-endoffset": "177",
    "X-SERVER-INSTANCE-TOKEN": "7be6ded70c65df71",
    "X-Game-Map": "de_mirage",
    "X-Timestamp": "09/21/2026 - 14:13:20.392",
}
TEAMS = GameSettings(
    match_type=MatchType.COMPETITIVE,
    maps=("de_mirage", "workshop/123", "de_nuke"),
    series_format=SeriesFormat.BO3,
    team1=TeamRoster("Reds", ("76561198000000001",)),
    team2=TeamRoster("Blues", ("76561198000000002",)),
)
OPEN_TO_ALL = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_mirage",))


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS

    def now_ms(self) -> int:
        return self.at_ms


class Watched(databases.PassedOn):
    """A database whose reads are counted, and that can be away."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.reads = 0
        self.is_away = False

    async def read(self, sql: str, params: Mapping[str, Value] | None = None) -> list[Row]:
        self.reads += 1
        if self.is_away:
            raise DatabaseAwayError("away")
        return await super().read(sql, params)

    async def write(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if self.is_away:
            raise DatabaseAwayError("away")
        return await super().write(statements)


class Gate:
    """The use case under test with what is around it; the match `srv_1` is followed by this process."""

    def __init__(self, db: Database) -> None:
        self.db = Watched(db)
        self.clock = ManualClock()
        self.measures = Measures(Metrics())
        lives = LiveMatches()
        self.live = LiveMatch("srv_1", Fold.begin(server(), 1.0), 0)
        lives.add(self.live)
        self.ingest = Ingest(
            db=self.db,
            clock=self.clock,
            live=lives,
            measures=self.measures,
            ingest_base="http://10.0.0.9:8080",
        )

    async def stored(self, server_id: str = "srv_1") -> list[RawEntry]:
        return await raw_log.read_after(self.db, server_id, 0, limit=100)

    async def end(self, server_id: str = "srv_1") -> None:
        row = await servers.get(self.db, server_id)
        assert row is not None
        ending = Ending(reason="canceled_by_user")
        await self.db.write(conclude(row, ending, fence=None, now_ms=self.clock.now_ms(), callback_id="msg_1"))


def server(name: str = "srv_1", settings: GameSettings = TEAMS, **fields: object) -> ServerRow:
    row = ServerRow(
        id=name,
        game_id=f"game of {name}",
        org_id="org_1",
        region="eu",
        phase=ServerPhase.RUNNING,
        status=ServerStatus.RUNNING,
        settings=msgspec.json.encode(settings),
        log_token=f"log-{name}",
        report_token=f"report-{name}",
        plugin_match_id=7,
        created_at_ms=NOW_MS,
        next_at_ms=NOW_MS,
    )
    return msgspec.structs.replace(row, **fields)


def run(home: databases.Home, scenario: Callable[[Gate], Awaitable[None]], *rows: ServerRow) -> None:
    async def on(db: Database) -> None:
        for row in rows or (server(),):
            await servers.create(db, row, idempotency=None)
        await scenario(Gate(db))

    home.run(on)


# --- logs ---------------------------------------------------------------------------------------------------------


def test_a_log_post_is_stored_with_the_headers_that_are_read_and_handed_on(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        sent = {**POSTED, "User-Agent": "Valve/Steam", "Authorization": "s3cret"}
        assert await gate.ingest.take_log("log-srv_1", sent, LINE) == 200
        (entry,) = await gate.stored()
        assert (entry.server_id, entry.seq, entry.kind, entry.received_ms) == ("srv_1", 1, "log", NOW_MS)
        assert entry.body == LINE
        assert b"s3cret" not in entry.headers
        headers = msgspec.json.decode(entry.headers, type=dict[str, str])
        assert len(headers) == 5
        read_back = read_post(headers, entry.body, received_ms=entry.received_ms)
        assert read_back == read_post(POSTED, LINE, received_ms=NOW_MS)
        assert gate.live.take() == entry
        assert gate.live.take() is None
        assert gate.measures.log_posts.value() == 1
        assert gate.measures.log_bytes.value() == len(LINE)

    run(home, scenario)


def test_a_post_without_headers_is_stored(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        assert [entry.headers for entry in await gate.stored()] == [b"{}"]

    run(home, scenario)


def test_a_header_is_not_stored_at_any_length(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {"X-Game-Map": "m" * 50_000}, LINE) == 200
        (entry,) = await gate.stored()
        assert len(entry.headers) < 200

    run(home, scenario)


def test_secrets_are_neither_stored_nor_handed_on(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        echo = b'09/21/2026 - 14:13:20.000 - rcon from "10.0.0.9:1": command "sv_password sesame"\n'
        assert await gate.ingest.take_log("log-srv_1", POSTED, echo + LINE) == 200
        (entry,) = await gate.stored()
        assert b"sesame" not in entry.body
        assert len(entry.body) == len(echo + LINE)
        assert entry.body.endswith(LINE)
        assert gate.live.take() == entry

    run(home, scenario)


def test_posts_are_numbered_in_their_order(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        for number in range(5):
            gate.clock.at_ms += 1
            assert await gate.ingest.take_log("log-srv_1", {}, b"%d\n" % number) == 200
        assert [(entry.seq, entry.body) for entry in await gate.stored()] == [(n + 1, b"%d\n" % n) for n in range(5)]
        assert gate.live.newest_seq == 5

    run(home, scenario)


def test_posts_at_the_same_time_all_get_a_number(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        posts = [gate.ingest.take_log("log-srv_1", {}, LINE) for _ in range(10)]
        posts += [gate.ingest.take_report("report-srv_1", REPORT) for _ in range(10)]
        assert await asyncio.gather(*posts) == [200] * 20
        assert [entry.seq for entry in await gate.stored()] == list(range(1, 21))
        assert gate.live.newest_seq == 20

    run(home, scenario)


def test_a_match_that_another_process_follows_is_stored_all_the_same(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_2", {}, LINE) == 200
        assert len(await gate.stored("srv_2")) == 1
        assert gate.live.take() is None

    run(home, scenario, server("srv_1"), server("srv_2"))


def test_an_empty_post_is_acknowledged_and_not_stored(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", POSTED, b"") == 200
        assert await gate.ingest.take_log("nobody", POSTED, b"") == 410
        assert await gate.stored() == []

    run(home, scenario)


@pytest.mark.parametrize("token", ["nobody", "report-srv_1", "", "a\x00b", "\ud800", "ü", "x" * 100_000])
def test_a_server_with_an_unknown_token_is_told_to_stop(home: databases.Home, token: str) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log(token, POSTED, LINE) == 410
        assert await gate.stored() == []
        assert gate.measures.log_refused.value("unknown") == 1

    run(home, scenario)


def test_a_match_is_looked_up_once_in_two_seconds(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        for _ in range(10):
            assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
            gate.clock.at_ms += OPEN_FOR_MS // 10
        assert gate.db.reads == 1
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        assert gate.db.reads == 2

    run(home, scenario)


def test_an_ended_match_takes_no_log_two_seconds_after_its_end(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        await gate.end()
        gate.clock.at_ms += OPEN_FOR_MS
        for _ in range(3):
            assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 410
        assert [entry.kind for entry in await gate.stored()] == [LOG, ENDED]
        assert gate.measures.log_refused.value("ended") == 3

    run(home, scenario)


def test_an_end_is_remembered_without_looking_again(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        await gate.end()
        gate.db.reads = 0
        for _ in range(3):
            assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 410
            gate.clock.at_ms += 10 * OPEN_FOR_MS
        assert gate.db.reads == 1

    run(home, scenario)


def test_a_token_that_was_replaced_ends_within_two_seconds(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        await gate.db.write([servers.change("srv_1", 0, log_token="another")])
        gate.clock.at_ms += OPEN_FOR_MS
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 410
        assert await gate.ingest.take_log("another", {}, LINE) == 200

    run(home, scenario)


@pytest.mark.parametrize("phase", [ServerPhase.ALLOCATING, ServerPhase.PENDING, ServerPhase.RUNNING])
def test_a_match_takes_logs_in_every_open_phase(home: databases.Home, phase: ServerPhase) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200

    run(home, scenario, server(phase=phase))


@pytest.mark.parametrize("phase", [ServerPhase.ENDING, ServerPhase.RELEASED])
def test_nothing_is_taken_for_a_match_that_has_ended(home: databases.Home, phase: ServerPhase) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 410
        assert await gate.ingest.take_report("report-srv_1", REPORT) == 410
        assert await gate.ingest.take_detection("report-srv_1", REPORT) == 410
        assert await gate.ingest.match_file("report-srv_1") is None
        assert await gate.stored() == []

    run(home, scenario, server(phase=phase))


def test_a_body_over_the_limit_is_refused_and_one_at_the_limit_is_stored(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        body = b"x" * MAX_BODY_BYTES
        assert await gate.ingest.take_log("log-srv_1", {}, body) == 200
        with pytest.raises(PayloadTooLargeError):
            await gate.ingest.take_log("log-srv_1", {}, body + b"x")
        with pytest.raises(PayloadTooLargeError):
            await gate.ingest.take_report("report-srv_1", body + b"x")
        with pytest.raises(PayloadTooLargeError):
            await gate.ingest.take_detection("report-srv_1", body + b"x")
        assert len(await gate.stored()) == 1
        assert gate.measures.log_refused.value("too_large") == 1

    run(home, scenario)


class Sent:
    """A body that is read when it is wanted."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.times_read = 0

    async def __call__(self) -> bytes:
        self.times_read += 1
        return self.body


def test_a_body_is_read_only_of_those_who_are_known(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        body = Sent(LINE)
        assert await gate.ingest.take_log("unknown", {}, body) == 410
        assert await gate.ingest.take_report("unknown", body) == 401
        assert await gate.ingest.take_report(None, body) == 401
        assert await gate.ingest.take_detection("unknown", body) == 401
        assert body.times_read == 0
        gate.db.reads = 0
        assert await gate.ingest.take_log("log-srv_1", {}, body) == 200
        assert await gate.ingest.take_report("report-srv_1", body) == 200
        assert (body.times_read, gate.db.reads) == (2, 2), "one look a token"
        await gate.end()
        gate.clock.at_ms += OPEN_FOR_MS
        assert await gate.ingest.take_log("log-srv_1", {}, body) == 410
        assert await gate.ingest.take_detection("report-srv_1", body) == 410
        assert body.times_read == 2

    run(home, scenario)


def test_a_body_that_came_slowly_is_as_old_as_its_end(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        async def slowly() -> bytes:
            gate.clock.at_ms += 3_000
            return LINE

        assert await gate.ingest.take_log("log-srv_1", {}, slowly) == 200
        assert [entry.received_ms for entry in await gate.stored()] == [NOW_MS + 3_000]

    run(home, scenario)


def test_more_tokens_than_are_kept_are_still_served(home: databases.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_KNOWN_TOKENS >= 1_000
    monkeypatch.setattr("matchpod.service.ingest.MAX_KNOWN_TOKENS", 2)

    async def scenario(gate: Gate) -> None:
        for _ in range(2):
            for number in range(4):
                assert await gate.ingest.take_log(f"log-srv_{number}", {}, LINE) == 200
        assert gate.db.reads == 8
        assert await gate.ingest.take_log("log-srv_3", {}, LINE) == 200
        assert gate.db.reads == 8

    run(home, scenario, *(server(f"srv_{number}") for number in range(4)))


# --- reports and detections ---------------------------------------------------------------------------------------


def test_reports_and_detections_are_stored_by_kind_and_handed_on(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_report("report-srv_1", REPORT) == 200
        assert await gate.ingest.take_detection("report-srv_1", b"not even JSON") == 200
        entries = await gate.stored()
        assert [(entry.seq, entry.kind, entry.headers, entry.body) for entry in entries] == [
            (1, "report", b"{}", REPORT),
            (2, "detection", b"{}", b"not even JSON"),
        ]
        assert gate.live.newest_seq == 2
        assert gate.measures.reports.value("report") == 1
        assert gate.measures.reports.value("detection") == 1
        assert gate.measures.log_posts.value() == 0

    run(home, scenario)


@pytest.mark.parametrize("token", [None, "", "nobody", "log-srv_1", "a\x00b"])
def test_a_plugin_that_nobody_knows_is_not_let_in(home: databases.Home, token: str | None) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_report(token, REPORT) == 401
        assert await gate.ingest.take_detection(token, REPORT) == 401
        assert await gate.ingest.match_file(token) is None
        assert await gate.stored() == []

    run(home, scenario)


def test_an_empty_report_is_refused(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_report("report-srv_1", b"") == 400
        assert await gate.stored() == []

    run(home, scenario)


def test_a_plugin_is_told_of_the_end_within_two_seconds(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_report("report-srv_1", REPORT) == 200
        await gate.end()
        gate.clock.at_ms += OPEN_FOR_MS
        assert await gate.ingest.take_report("report-srv_1", REPORT) == 410
        assert await gate.ingest.take_detection("report-srv_1", REPORT) == 410

    run(home, scenario)


# --- the match file -----------------------------------------------------------------------------------------------


def test_the_plugin_gets_its_match_and_where_to_report(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        text = await gate.ingest.match_file("report-srv_1")
        assert text is not None
        file = msgspec.json.decode(text)
        assert (file["matchid"], file["num_maps"], file["maplist"]) == (7, 3, ["de_mirage", "123", "de_nuke"])
        assert file["team1"] == {"name": "Reds", "players": {"76561198000000001": ""}}
        assert file["cvars"]["matchzy_remote_log_url"] == "http://10.0.0.9:8080/ingest/reports"
        assert file["cvars"]["matchzy_remote_log_header_key"] == TOKEN_HEADER
        assert file["cvars"]["matchzy_remote_log_header_value"] == "report-srv_1"

    run(home, scenario, server(phase=ServerPhase.ALLOCATING))


def test_there_is_no_file_for_a_match_without_the_plugin(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.match_file("report-srv_1") is None

    run(home, scenario, server(settings=OPEN_TO_ALL))


def test_an_ended_match_is_not_handed_out(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.match_file("report-srv_1") is not None
        await gate.end()
        assert await gate.ingest.match_file("report-srv_1") is None

    run(home, scenario)


# --- the database is away -----------------------------------------------------------------------------------------


def test_nothing_is_acknowledged_or_handed_on_while_the_database_is_away(home: databases.Home) -> None:
    async def scenario(gate: Gate) -> None:
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        gate.db.is_away = True
        for work in (
            gate.ingest.take_log("log-srv_1", {}, LINE),  # known, but cannot be stored
            gate.ingest.take_report("report-srv_1", REPORT),
            gate.ingest.take_detection("report-srv_1", REPORT),
            gate.ingest.match_file("report-srv_1"),
        ):
            with pytest.raises(UnavailableError):
                await work
        assert gate.live.newest_seq == 1
        assert gate.measures.log_posts.value() == 1
        gate.db.is_away = False
        assert await gate.ingest.take_log("log-srv_1", {}, LINE) == 200
        assert [entry.seq for entry in await gate.stored()] == [1, 2]

    run(home, scenario)
