"""What a server sends after it was replaced never counts, whichever process receives it, and however early."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from matchpod.ports import Database, FleetError, GameServer, ServerOrder
from matchpod.service.ingest.posts import OPEN_FOR_MS, Receipt
from matchpod.service.ingest.tokens import IngestTokens
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import LocalMatch
from matchpod.storage import raw_log, servers
from matchpod.storage.raw_log import RawEntry
from tests.contract import databases
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_ingest import LINE, POSTED, REPORT, Posted, server
from tests.contract.world import START_MS, Process, World, callback_fields, play_undisturbed
from tests.unit.service.match_log.test_fold import recorded
from tests.vaults import stored_tokens, tokens_of

harness = databases.mostly_sqlite_harness

FOREIGN = tuple(entry for entry in recorded().entries if entry.kind == EntryKind.LOG)
"""Posts of another match: with its kills, rounds and end."""
SEED = 7


class HeldRegion(SimulatedRegion):
    """The first server fails to start when a test wants it to."""

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        if not self.orders:
            self.orders.append(order)
            self.may_fail = asyncio.Event()
            await self.may_fail.wait()
            raise FleetError("it broke a limit of the console")
        return await super().allocate(order)


async def send(process: Process, tokens: IngestTokens, entry: RawEntry, *, in_one_segment: bool) -> None:
    """Send a post and a report with these tokens; a post in one segment is taken without a task."""
    headers = msgspec.json.decode(entry.headers, type=dict[str, str])
    stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    if in_one_segment and process.ingest.take_log(tokens.log, raw, entry.body, stored.set_result):
        await stored
    else:
        await process.ingest.store_log(tokens.log, raw, entry.body)
    await process.ingest.store_report(tokens.report, b'{"event":"series_end","matchid":27,"team1_series_score":0}')
    await process.ingest.store_detection(tokens.report, b"[]")
    await process.deps.log_writer.flush("srv_1")  # also the end of a match over its quota, for which nothing waits


@pytest.mark.parametrize("in_one_segment", [True, False])
async def test_result_has_nothing_of_a_server_that_was_replaced(
    db: Database, world: World, in_one_segment: bool
) -> None:
    expected = await play_undisturbed(db, SEED)
    world.region = region = HeldRegion(start_ms=START_MS)
    await world.create(seed=SEED)
    old = tokens_of(await world.row())
    processes = [world.start("one"), world.start("two")]
    await world.until(lambda: bool(world.region.orders), "the first server is ordered")
    for process in processes:  # both know the tokens from now on
        await send(process, old, FOREIGN[0], in_one_segment=in_one_segment)
    before = await raw_log.newest_seq(db, "srv_1")
    region.may_fail.set()
    await world.until(lambda: any(process.live.get("srv_1") for process in processes), "the match is driven")
    for number, entry in enumerate(FOREIGN):
        for process in processes:
            await send(process, old, entry, in_one_segment=in_one_segment)
        assert await processes[0].ingest.match_file(old.report) is None
        if number % 20 == 0:
            await asyncio.sleep(0)
    outcome = await world.outcome()
    found = callback_fields(outcome)
    assert found == expected
    assert before > 0


async def test_bytes_of_a_server_that_was_replaced_do_not_count_for_the_quota(db: Database, world: World) -> None:
    """It posts more than a match may store, and is replaced before its match is read."""
    quota_bytes = 2_000_000
    expected = await play_undisturbed(db, SEED)
    world.region = region = HeldRegion(start_ms=START_MS)
    await world.create(seed=SEED)
    old = tokens_of(await world.row())
    world.quota_bytes = quota_bytes
    processes = [world.start(name) for name in ("one", "two")]
    await world.until(lambda: bool(world.region.orders), "the first server is ordered")
    flood = msgspec.structs.replace(FOREIGN[0], headers=b"{}", body=LINE * (quota_bytes // len(LINE) // 4))
    for process in processes * 3:
        await send(process, old, flood, in_one_segment=False)
    assert await raw_log.has_kind(db, "srv_1", EntryKind.OVER_QUOTA, after_seq=0, attempt=(await world.row()).attempt)
    region.may_fail.set()
    row = await world.until_row(lambda row: row.log_token_hash != servers.token_hash(old.log), "it is replaced")
    assert row.log_from_bytes > quota_bytes, "also before the next server is configured: it may report already"
    outcome = await world.outcome()
    assert callback_fields(outcome) == expected
    _, stored_bytes = await raw_log.head(db, "srv_1")
    assert stored_bytes - (await world.row()).log_from_bytes < quota_bytes / 2


@databases.on_both
async def test_server_that_replaces_another_has_the_same_quota(db: Database) -> None:
    await servers.create(db, server(log_from_bytes=10 * len(LINE)), idempotency=None)
    await db.write(
        raw_log.append("srv_1", EntryKind.LOG, received_ms=1, headers=b"{}", body=LINE * 10, attempt="the first")
    )
    world = Posted(db, quota_bytes=2 * len(LINE))
    for _ in range(2):
        assert await world.ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    assert [entry.kind for entry in await world.stored()] == [EntryKind.LOG] * 3
    assert await world.ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    await world.deps.log_writer.flush("srv_1")
    assert (await world.stored())[-1].kind == EntryKind.OVER_QUOTA


SENT = (
    (EntryKind.REPORT, b'{"event":"series_end","matchid":7,"winner":{"side":"2","team":"team1"}}'),
    (EntryKind.SHOTS, b'{"mapNumber":1,"rounds":[{"roundNumber":1,"players":[]}]}'),
    (EntryKind.DETECTION, b'[{"steamid":"76561198000000001","type":"aimbot"}]'),
)


@databases.on_both
@pytest.mark.parametrize("is_driving", [True, False])
async def test_all_that_is_sent_with_the_tokens_of_a_replaced_server_is_stored_as_its_own(
    db: Database, is_driving: bool
) -> None:
    """A process that has just read the tokens believes them for a moment, also the one that drives the match."""
    await servers.create(db, server(), idempotency=None)
    world = Posted(db)
    world.live.remove(world.match)
    ingest = world.ingest
    store = {
        EntryKind.REPORT: ingest.store_report,
        EntryKind.SHOTS: ingest.store_shots,
        EntryKind.DETECTION: ingest.store_detection,
    }
    assert await ingest.store_log("log-srv_1", POSTED, LINE) is Receipt.STORED
    assert await ingest.store_report("report-srv_1", REPORT) is Receipt.STORED
    own = server(**stored_tokens("log-new", "report-new"))
    await db.write([servers.change("srv_1", 0, **stored_tokens("log-new", "report-new"))])
    if is_driving:
        world.live.add(LocalMatch("srv_1", Fold.begin(own, 1.0), 0))
    assert not ingest.take_log("log-srv_1", (), LINE, lambda _: None)
    assert await ingest.store_log("log-srv_1", POSTED, FOREIGN[0].body) is Receipt.STORED
    for kind, body in SENT:
        assert await store[kind]("report-srv_1", body) is Receipt.STORED
    stored = await world.stored()
    assert [entry.kind for entry in stored] == ["log", "report", "log", "report", "shots", "detection"]
    assert {entry.attempt for entry in stored} == {server().attempt} != {own.attempt}


@pytest.mark.parametrize("is_log", [True, False])
async def test_body_that_arrives_after_its_server_was_replaced_is_not_stored(db: Database, is_log: bool) -> None:
    await servers.create(db, server(), idempotency=None)
    world = Posted(db)
    world.live.remove(world.match)

    async def arrive_late() -> bytes:
        await db.write([servers.change("srv_1", 0, **stored_tokens("log-new", "report-new"))])
        world.clock.at_ms += OPEN_FOR_MS
        return LINE if is_log else REPORT

    if is_log:
        assert await world.ingest.store_log("log-srv_1", POSTED, arrive_late) is Receipt.UNKNOWN_SENDER
        assert world.metrics.log_refused.value("unknown") == 1
    else:
        assert await world.ingest.store_report("report-srv_1", arrive_late) is Receipt.UNKNOWN_SENDER
    assert await world.stored() == []


def test_entry_of_another_attempt_changes_nothing() -> None:
    row = server()
    before = Fold.begin(row, 1.0).dump()
    sent = [msgspec.structs.replace(FOREIGN[0], kind=kind, headers=b"{}", body=body) for kind, body in SENT]
    over_quota = msgspec.structs.replace(FOREIGN[0], kind=EntryKind.OVER_QUOTA)
    others = Fold.begin(row, 1.0)
    for entry in (*FOREIGN, *sent, over_quota):
        others.apply(msgspec.structs.replace(entry, attempt="another"))
    assert others.dump() == before
    for entry in (FOREIGN[0], *sent, over_quota):
        own = Fold.begin(row, 1.0)
        own.apply(msgspec.structs.replace(entry, attempt=row.attempt))
        assert own.dump() != before, f"it counts as {entry.kind}"


@databases.on_both
async def test_post_of_another_attempt_does_not_prove_that_the_log_arrives(db: Database) -> None:
    await servers.create(db, server(), idempotency=None)
    await db.write(
        raw_log.append("srv_1", EntryKind.LOG, received_ms=1, headers=b"{}", body=b"line\n", attempt="the first")
    )
    assert not await raw_log.has_kind(db, "srv_1", EntryKind.LOG, after_seq=0, attempt="the second")
    assert await raw_log.has_kind(db, "srv_1", EntryKind.LOG, after_seq=0, attempt="the first")
    await raw_log.compress(db, "srv_1")
    (entry,) = await raw_log.read_after(db, "srv_1", 0, limit=1)
    assert entry.attempt == "the first"
