"""Posts of game servers are stored before they are answered, without secrets, while their match is open."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
import pytest

from cs2_protocol.log_batches import read_post
from cs2_protocol.log_pieces import MAX_PIECE_BYTES
from matchpod.adapters.vault import KEY_BYTES, KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.errors import PayloadTooLargeError, RateLimitError, UnavailableError
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, DatabaseUnavailableError
from matchpod.service.end_match import end_match
from matchpod.service.ingest.budget import MAX_AT_ONCE, IngestBudgets, IngestLimits
from matchpod.service.ingest.posts import (
    MAX_BODY_BYTES,
    MAX_REPORT_BYTES,
    OPEN_FOR_MS,
    TOKEN_HEADER,
    RawHeaders,
    Receipt,
)
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.storage import servers
from matchpod.storage.servers import ServerRow
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.parts import Parts
from tests.server_rows import server_row
from tests.vaults import VAULT, stored_tokens

harness = databases.mostly_sqlite_harness

NOW_MS = 1_790_000_000_000
LINE = b'09/21/2026 - 14:13:20.000 - World triggered "Round_Start"\n'
REPORT = b'{"event":"going_live","matchid":7,"map_number":0}'
POSTED = (
    (b"x-logbytes-beginoffset", b"118"),
    (b"x-logbytes-endoffset", b"177"),
    (b"x-server-instance-token", b"7be6ded70c65df71"),
    (b"x-game-map", b"de_mirage"),
    (b"x-timestamp", b"09/21/2026 - 14:13:20.392"),
)
TEAMS = GameSettings(
    match_type=MatchType.COMPETITIVE,
    maps=("de_mirage", "workshop/123", "de_nuke"),
    series_format=SeriesFormat.BO3,
    team1=TeamRoster("Reds", ("76561198000000001",)),
    team2=TeamRoster("Blues", ("76561198000000002",)),
)
OPEN_TO_ALL = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_mirage",))


OUTAGE = DatabaseUnavailableError("unavailable")


class Posted(Parts):
    """A process that drives the match `srv_1`."""

    db: databases.HookedDatabase

    def __init__(
        self, db: Database, *, quota_bytes: int | None = None, limits: IngestLimits | None = None, hold_s: float = 0.0
    ) -> None:
        clock = ManualClock(NOW_MS)
        super().__init__(
            databases.HookedDatabase(db), clock=clock, quota_bytes=quota_bytes, distance_of=lambda _: hold_s
        )
        self.match = LocalMatch("srv_1", Fold.begin(server(), 1.0), 0)
        self.live.add(self.match)
        if limits is not None:
            self.ingest._budgets = IngestBudgets(limits=limits)
            self.ingest._log_tokens._limit = limits.max_tokens

    async def end(self, server_id: str = "srv_1") -> None:
        row = await self.row(server_id)
        outcome = Outcome(at_ms=self.clock.now_ms(), reason=CancelReason.CANCELED_BY_USER)
        await self.db.write(end_match(row, outcome, fence=None, callback_id="msg_1"))
        self.live.remove(self.match)


def server(name: str = "srv_1", settings: GameSettings = TEAMS, **fields: object) -> ServerRow:
    times = {"created_at_ms": NOW_MS, "next_at_ms": NOW_MS}
    return server_row(name, **({"settings": msgspec.json.encode(settings), "plugin_match_id": 7} | times | fields))


def offsets(begin: int, end: int) -> RawHeaders:
    return ((b"x-logbytes-beginoffset", b"%d" % begin), (b"x-logbytes-endoffset", b"%d" % end))


def as_texts(headers: RawHeaders) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}


async def world_of(
    db: Database, *rows: ServerRow, quota_bytes: int | None = None, limits: IngestLimits | None = None
) -> Posted:
    for row in rows:
        await servers.create(db, row, idempotency=None)
    return Posted(db, quota_bytes=quota_bytes, limits=limits)


@pytest.fixture
async def world(db: Database) -> Posted:
    return await world_of(db, server())


# --- usual posts --------------------------------------------------------------------------------------------------


async def take(world: Posted, body: bytes = LINE, token: str = "log-srv_1") -> bool | None:
    """Store a post without waiting; None if it was not taken, False if it could not be stored."""
    stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    return await stored if world.ingest.take_log(token, POSTED, body, stored.set_result) else None


async def test_usual_post_is_stored_like_any_other_without_a_look_at_the_database(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    reads = world.db.reads
    world.clock.at_ms += 3_600_000
    assert await take(world) is True
    assert world.db.reads == reads
    first, second = await world.stored()
    assert (second.kind, second.headers, second.body) == (first.kind, first.headers, first.body)
    assert second.received_ms == NOW_MS + 3_600_000
    assert world.metrics.log_posts.value() == 2
    assert world.metrics.log_bytes.value() == 2 * len(LINE)


@pytest.mark.parametrize(
    ("body", "token"),
    [
        pytest.param(b"", "log-srv_1", id="nothing"),
        pytest.param(b"the rest of a line\n", "log-srv_1", id="the rest of a line"),
        pytest.param(LINE * 5_000, "log-srv_1", id="a large post"),
        pytest.param(LINE, "unknown", id="an unknown token"),
        pytest.param(LINE, "log-srv_2", id="a match that this process does not drive"),
    ],
)
async def test_unusual_post_is_not_taken(db: Database, body: bytes, token: str) -> None:
    world = await world_of(db, server(), server("srv_2"))
    for name in ("srv_1", "srv_2"):
        assert await world.ingest.store_log(f"log-{name}", POSTED, LINE) is Receipt.STORED
    assert await take(world, body, token) is None


async def test_first_post_of_a_match_and_one_after_its_end_are_not_taken(world: Posted) -> None:
    assert await take(world) is None
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    world.live.remove(world.match)
    assert await take(world) is None


async def test_post_of_a_sender_that_must_wait_is_not_taken(db: Database) -> None:
    world = await world_of(db, server(), limits=IngestLimits(bytes_per_s=1, burst_bytes=1))
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    assert await take(world) is None


async def test_post_that_cannot_be_stored_is_passed_on_and_the_next_is_taken(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    for _ in range(2 * MAX_AT_ONCE):
        world.db.error = OUTAGE
        assert await take(world) is False
    world.db.error = None
    assert await take(world) is True


async def test_few_posts_of_a_sender_are_taken_at_the_same_time(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    taken = await asyncio.gather(*(take(world) for _ in range(2 * MAX_AT_ONCE)))
    assert taken == [True] * MAX_AT_ONCE + [None] * MAX_AT_ONCE


async def take_of(world: Posted, kind: EntryKind, body: bytes, token: str = "report-srv_1") -> bool | None:
    """Store a report without waiting; None if it was not taken, False if it could not be stored."""
    stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    store = world.ingest.take_shots if kind is EntryKind.SHOTS else world.ingest.take_report
    return await stored if store(token, body, stored.set_result) else None


SHOTS = b'{"mapNumber": 1, "rounds": []}'


@pytest.mark.parametrize(("kind", "body"), [(EntryKind.REPORT, REPORT), (EntryKind.SHOTS, SHOTS)])
async def test_usual_report_is_stored_like_any_other_and_answered_at_once(
    db: Database, kind: EntryKind, body: bytes
) -> None:
    await servers.create(db, server(), idempotency=None)
    world = Posted(db, hold_s=3_600.0)
    store = world.ingest.store_shots if kind is EntryKind.SHOTS else world.ingest.store_report
    assert await take_of(world, kind, body) is None, "its sender is not known yet"
    assert await store("report-srv_1", body) is Receipt.STORED
    reads = world.db.reads
    assert await take_of(world, kind, body) is True
    assert world.db.reads == reads
    first, second = await world.stored()
    assert (second.kind, second.headers, second.body) == (first.kind, first.headers, first.body)
    assert world.metrics.reports.value(kind) == 2
    world.db.error = OUTAGE
    assert await take_of(world, kind, body) is False


async def test_unusual_report_is_not_taken(world: Posted) -> None:
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    assert await take_of(world, EntryKind.REPORT, b"") is None
    assert await take_of(world, EntryKind.REPORT, b" " * (MAX_REPORT_BYTES + 1)) is None
    assert await take_of(world, EntryKind.REPORT, REPORT, "unknown") is None
    assert await take_of(world, EntryKind.SHOTS, b"no shots") is None
    world.live.remove(world.match)
    assert await take_of(world, EntryKind.REPORT, REPORT) is None


async def test_match_over_its_quota_is_ended_by_a_later_post_if_that_failed(db: Database) -> None:
    world = await world_of(db, server(), quota_bytes=len(LINE))
    assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED

    def fail_after(is_stored: bool) -> None:
        world.db.error = OUTAGE if is_stored else None

    assert world.ingest.take_log("log-srv_1", (), LINE, fail_after)
    await world.deps.log_writer.flush("srv_1")
    assert world.db.error
    with suppress(DatabaseUnavailableError):
        await world.deps.log_writer.flush("srv_1")
    world.db.error = None
    assert [entry.kind for entry in await world.stored()] == ["log", "log"]
    assert await take(world) is True
    await world.deps.log_writer.flush("srv_1")
    assert [entry.kind for entry in await world.stored()] == ["log", "log", "log", "over_quota"]


# --- limits -------------------------------------------------------------------------------------------------------


async def test_match_over_its_quota_gets_an_entry_that_ends_it(db: Database) -> None:
    world = await world_of(db, server(), quota_bytes=3 * len(LINE))
    for _ in range(3):
        assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    assert [entry.kind for entry in await world.stored()] == ["log"] * 3
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    await world.deps.log_writer.flush("srv_1")
    assert [entry.kind for entry in await world.stored()] == ["log"] * 3 + ["report", "over_quota"]
    for entry in await world.stored():
        world.match.fold.apply(entry)
    outcome = world.match.fold.match.outcome
    assert outcome is not None
    assert outcome.reason is CancelReason.LOG_QUOTA_EXCEEDED


async def test_sender_over_its_rate_is_told_to_send_again(db: Database) -> None:
    limits = IngestLimits(burst_bytes=len(LINE), bytes_per_s=1, max_wait_s=0.05)
    world = await world_of(db, server(), limits=limits)
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    with pytest.raises(RateLimitError, match="Send the post again"):
        await world.ingest.store_log("log-srv_1", (), LINE)
    assert len(await world.stored()) == 1
    assert world.metrics.log_refused.value("too_fast") == 1
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED, "another token has its own budget"


async def test_many_reports_at_once_are_all_stored(db: Database) -> None:
    """A plugin sends a report once: none may be told to come again later."""
    await servers.create(db, server(), idempotency=None)
    world = Posted(db, hold_s=3_600.0)
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    async with asyncio.timeout(10):
        receipts = await asyncio.gather(
            *(world.ingest.store_report("report-srv_1", REPORT) for _ in range(MAX_AT_ONCE * 5))
        )
    assert set(receipts) == {Receipt.STORED}


# --- logs ---------------------------------------------------------------------------------------------------------


async def test_log_post_is_published_and_stored_with_only_the_headers_that_are_used(world: Posted) -> None:
    sent = (*POSTED, (b"user-agent", b"Valve/Steam"), (b"authorization", b"s3cret"))
    assert await world.ingest.store_log("log-srv_1", sent, LINE) is Receipt.STORED
    (entry,) = await world.stored()
    assert (entry.server_id, entry.seq, entry.kind, entry.received_ms) == ("srv_1", 1, "log", NOW_MS)
    assert entry.body == LINE
    assert b"s3cret" not in entry.headers
    headers = msgspec.json.decode(entry.headers, type=dict[str, str])
    assert len(headers) == 5
    read_back = read_post(headers, entry.body, received_ms=entry.received_ms)
    assert read_back == read_post(as_texts(POSTED), LINE, received_ms=NOW_MS)
    assert world.match.dequeue() == entry
    assert world.match.dequeue() is None
    assert world.metrics.log_posts.value() == 1
    assert world.metrics.log_bytes.value() == len(LINE)


async def test_overlong_header_is_truncated(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", [(b"x-game-map", b"m" * 50_000)], LINE) is Receipt.STORED
    (entry,) = await world.stored()
    assert len(entry.headers) < 200


async def test_large_post_is_stored_in_pieces(world: Posted) -> None:
    line = b'09/21/2026 - 14:13:20.000 - "Ann<1><[U:1:101]><CT>" say "%d"\n'
    body = b"".join(line % number for number in range(1_000))
    sent = (*offsets(118, 118 + len(body)), (b"x-game-map", b"de_mirage"))
    assert await world.ingest.store_log("log-srv_1", sent, body) is Receipt.STORED
    stored = await world.stored()
    assert len(stored) > 1
    assert max(len(entry.body) for entry in stored) <= MAX_PIECE_BYTES
    assert b"".join(entry.body for entry in stored) == body
    assert [world.match.dequeue() for _ in stored] == [stored[0], *[None] * (len(stored) - 1)], "in order, one by one"


async def test_post_that_does_not_continue_the_last_one_is_unchanged(world: Posted) -> None:
    command = b'09/21/2026 - 14:13:20.000 - rcon from "10.0.0.9:1": command "a\n'
    assert await world.ingest.store_log("log-srv_1", offsets(0, len(command)), command) is Receipt.STORED
    for begin in (0, len(command) + 1):
        assert await world.ingest.store_log("log-srv_1", offsets(begin, begin + 2), b"b\n") is Receipt.STORED
    assert await world.ingest.store_log("log-srv_1", offsets(len(command), len(command) + 2), b"b\n") is Receipt.STORED
    assert await world.ingest.store_log("log-srv_1", (), b"b\n") is Receipt.STORED
    assert [entry.body for entry in await world.stored()][1:] == [b"b\n", b"b\n", b"*\n", b"*\n"]


async def test_post_that_begins_with_a_timestamp_costs_no_read(world: Posted) -> None:
    for begin in (0, len(LINE), 5_000):
        assert await world.ingest.store_log("log-srv_1", offsets(begin, begin + len(LINE)), LINE) is Receipt.STORED
    assert world.db.reads == 1, "of the token"


async def test_secrets_made_for_the_match_are_stored_nowhere(db: Database) -> None:
    password = VAULT.seal("0123456789abcdef" * 2)
    row = server(rcon_password=password, **stored_tokens("l0g" * 12, "r3port" * 6))
    world = await world_of(db, row)
    chat = b'09/21/2026 - 14:13:20.000 - "x<2><[U:1:5]><CT>" say "%s %s %s"\n'
    said = chat % (b"0123456789abcdef" * 2, b"l0g" * 12, b"r3port" * 6)
    assert await world.ingest.store_log("l0g" * 12, (), said) is Receipt.STORED
    assert await world.ingest.store_report("r3port" * 6, b'{"event":"x","note":"%s"}' % (b"l0g" * 12)) is Receipt.STORED
    assert await world.ingest.store_detection("r3port" * 6, b'{"Api_Key":"sesame","steamid":"1"}') is Receipt.STORED
    bodies = [entry.body for entry in await world.stored()]
    assert bodies == [
        chat % (b"*" * 32, b"*" * 36, b"*" * 36),
        b'{"event":"x","note":"%s"}' % (b"*" * 36),
        b'{"Api_Key":"******","steamid":"1"}',
    ]


async def test_password_that_an_operator_chose_is_not_searched_for(db: Database) -> None:
    chosen = server(rcon_password=VAULT.seal("triggered"), is_password_ours=False)
    world = await world_of(db, chosen)
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    assert [entry.body for entry in await world.stored()] == [LINE], "it may be a word of the log"


async def test_post_is_stored_although_the_key_of_the_vault_is_another(db: Database) -> None:
    world = await world_of(db, server(rcon_password=KeyFileVault(b"x" * KEY_BYTES).seal("secret")))
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED


async def test_empty_post_is_acknowledged_and_not_stored(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", POSTED, b"") is Receipt.STORED
    assert await world.ingest.store_log("unknown", POSTED, b"") is Receipt.UNKNOWN_SENDER
    assert await world.stored() == []


@pytest.mark.parametrize("token", ["unknown", "report-srv_1", "", "a\x00b", "\ud800", "ü", "x" * 100_000])
async def test_unknown_log_token_is_rejected(world: Posted, token: str) -> None:
    assert await world.ingest.store_log(token, POSTED, LINE) is Receipt.UNKNOWN_SENDER
    assert await world.stored() == []
    assert world.metrics.log_refused.value("unknown") == 1


async def test_token_is_read_from_the_database_once_per_two_seconds(world: Posted) -> None:
    for _ in range(10):
        assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
        world.clock.at_ms += OPEN_FOR_MS // 10
    assert world.db.reads == 1
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    assert world.db.reads == 2


async def test_log_is_rejected_two_seconds_after_the_end_of_its_match(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    await world.end()
    world.clock.at_ms += OPEN_FOR_MS
    for _ in range(3):
        assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.MATCH_ENDED
    assert [entry.kind for entry in await world.stored()] == [EntryKind.LOG, EntryKind.ENDED]
    assert world.metrics.log_refused.value("ended") == 3


@databases.on_both
async def test_replaced_token_is_rejected_within_two_seconds(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    await world.db.write([servers.change("srv_1", 0, log_token_hash=servers.token_hash("another"))])
    world.clock.at_ms += OPEN_FOR_MS
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.store_log("another", (), LINE) is Receipt.STORED


@pytest.mark.parametrize("phase", [ServerPhase.ENDING, ServerPhase.RELEASED])
async def test_nothing_is_stored_for_a_match_that_has_ended(db: Database, phase: ServerPhase) -> None:
    world = await world_of(db, server(phase=phase))
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.MATCH_ENDED
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.MATCH_ENDED
    assert await world.ingest.store_detection("report-srv_1", REPORT) is Receipt.MATCH_ENDED
    assert await world.ingest.match_file("report-srv_1") is None
    assert await world.stored() == []


async def test_body_over_the_limit_is_rejected_and_one_at_the_limit_is_stored(world: Posted) -> None:
    body = b"x" * MAX_BODY_BYTES
    assert await world.ingest.store_log("log-srv_1", (), body) is Receipt.STORED
    with pytest.raises(PayloadTooLargeError):
        await world.ingest.store_log("log-srv_1", (), body + b"x")
    for store in (world.ingest.store_report, world.ingest.store_detection):
        with pytest.raises(PayloadTooLargeError, match=str(MAX_REPORT_BYTES)):
            await store("report-srv_1", b" " * (MAX_REPORT_BYTES + 1))
    assert b"".join(entry.body for entry in await world.stored()) == body
    assert world.metrics.log_refused.value("too_large") == 1


class LazyBody:
    def __init__(self, body: bytes) -> None:
        self.body = body
        self.times_read = 0

    async def __call__(self) -> bytes:
        self.times_read += 1
        return self.body


async def test_body_of_an_unknown_sender_is_not_read(world: Posted) -> None:
    body = LazyBody(LINE)
    assert await world.ingest.store_log("unknown", (), body) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.store_report("unknown", body) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.store_report(None, body) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.store_detection("unknown", body) is Receipt.UNKNOWN_SENDER
    assert body.times_read == 0
    world.db.reads = 0
    assert await world.ingest.store_log("log-srv_1", (), body) is Receipt.STORED
    assert await world.ingest.store_report("report-srv_1", body) is Receipt.STORED
    assert (body.times_read, world.db.reads) == (2, 2), "one database read per token"
    await world.end()
    world.clock.at_ms += OPEN_FOR_MS
    assert await world.ingest.store_log("log-srv_1", (), body) is Receipt.MATCH_ENDED
    assert await world.ingest.store_detection("report-srv_1", body) is Receipt.MATCH_ENDED
    assert body.times_read == 2


async def test_receive_time_of_a_slow_body_is_when_it_is_complete(world: Posted) -> None:
    async def slow_body() -> bytes:
        world.clock.at_ms += 3_000
        return LINE

    assert await world.ingest.store_log("log-srv_1", (), slow_body) is Receipt.STORED
    assert [entry.received_ms for entry in await world.stored()] == [NOW_MS + 3_000]


async def test_more_tokens_than_the_cache_holds_are_accepted(db: Database) -> None:
    rows = (server(f"srv_{number}") for number in range(4))
    world = await world_of(db, *rows, limits=IngestLimits(max_tokens=2))
    for _ in range(2):
        for number in range(4):
            assert await world.ingest.store_log(f"log-srv_{number}", (), LINE) is Receipt.STORED
    assert world.db.reads == 8
    assert await world.ingest.store_log("log-srv_3", (), LINE) is Receipt.STORED
    assert world.db.reads == 8


# --- reports and detections ---------------------------------------------------------------------------------------


async def test_reports_and_detections_are_stored_with_their_kind_and_published(world: Posted) -> None:
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    assert await world.ingest.store_detection("report-srv_1", b"not even JSON") is Receipt.STORED
    entries = await world.stored()
    assert [(entry.seq, entry.kind, entry.headers, entry.body) for entry in entries] == [
        (1, "report", b"{}", REPORT),
        (2, "detection", b"{}", b"not even JSON"),
    ]
    assert world.match.newest_seq == 2
    assert world.metrics.reports.value("report") == 1
    assert world.metrics.reports.value("detection") == 1
    assert world.metrics.log_posts.value() == 0


@pytest.mark.parametrize("token", [None, "", "unknown", "log-srv_1", "a\x00b"])
async def test_unknown_report_token_is_rejected(world: Posted, token: str | None) -> None:
    assert await world.ingest.store_report(token, REPORT) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.store_detection(token, REPORT) is Receipt.UNKNOWN_SENDER
    assert await world.ingest.match_file(token) is None
    assert await world.stored() == []


# --- the match file -----------------------------------------------------------------------------------------------


async def test_match_file_contains_the_match_and_the_report_url(db: Database) -> None:
    world = await world_of(db, server(phase=ServerPhase.ALLOCATING))
    text = await world.ingest.match_file("report-srv_1")
    assert text is not None
    file = msgspec.json.decode(text)
    assert (file["matchid"], file["num_maps"], file["maplist"]) == (7, 3, ["de_mirage", "123", "de_nuke"])
    assert file["team1"] == {"name": "Reds", "players": {"76561198000000001": ""}}
    assert file["cvars"]["matchzy_remote_log_url"] == "http://10.0.0.9:8080/ingest/reports"
    assert file["cvars"]["matchzy_remote_log_header_key"] == TOKEN_HEADER
    assert file["cvars"]["matchzy_remote_log_header_value"] == "report-srv_1"


async def test_match_without_the_plugin_has_no_match_file(db: Database) -> None:
    world = await world_of(db, server(settings=OPEN_TO_ALL))
    assert await world.ingest.match_file("report-srv_1") is None


# --- database outage ----------------------------------------------------------------------------------------------


async def test_nothing_is_acknowledged_or_published_during_a_database_outage(world: Posted) -> None:
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    world.db.error = OUTAGE
    for work in (
        world.ingest.store_log("log-srv_1", (), LINE),  # a cached token, but the post cannot be stored
        world.ingest.store_report("report-srv_1", REPORT),
        world.ingest.store_detection("report-srv_1", REPORT),
        world.ingest.match_file("report-srv_1"),
    ):
        with pytest.raises(UnavailableError):
            await work
    assert world.match.newest_seq == 1
    assert world.metrics.log_posts.value() == 1
    world.db.error = None
    assert await world.ingest.store_log("log-srv_1", (), LINE) is Receipt.STORED
    assert [entry.seq for entry in await world.stored()] == [1, 2]
