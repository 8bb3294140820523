"""Uploads of demos are stored while they arrive; what becomes of each is recorded, also if it is cut or refused."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from matchpod.adapters.clock import SystemClock
from matchpod.adapters.demo_storage.folder import FolderStorage
from matchpod.core.demos import DemoState, MissingReason
from matchpod.core.errors import UnavailableError
from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database, DatabaseUnavailableError, DemoWriter, Statement, StorageError, StorageFullError
from matchpod.service.demos.uploads import Ended, Sender, UploadHead, UploadLimits, Uploads, file_name_of, map_of
from matchpod.storage import demos, history, organization_events
from matchpod.storage.demos import DemoRow
from tests.contract import databases
from tests.contract.databases import HookedDatabase
from tests.contract.match_histories import MapState, create_server, map_id, match_history

harness = databases.sqlite_harness

SERVER = "srv_1"
HEAD = UploadHead(token=f"report-{SERVER}", file_name="MatchZy/a.dem", map_number=0, announced_bytes=10)
QUICK = UploadLimits(retry_s=0.01)
RECORDED = Statement("UPDATE servers SET settings = :settings", {"settings": b'{"record_demo":true}'})


class Folder(FolderStorage):
    """A folder that fails, or has so much free space, if a test says so."""

    failure: StorageError | None = None
    free: int | None = None

    async def create(self, key: str) -> DemoWriter:
        if self.failure is not None:
            raise self.failure
        return await super().create(key)

    async def free_bytes(self) -> int | None:
        return self.free


class World:
    """One upload process, its folder and a match of two maps, the first of which is over."""

    def __init__(self, db: Database, folder: Path, limits: UploadLimits = QUICK) -> None:
        self.failing: Counter[str] = Counter()
        """How many of the next reads and writes find the database unavailable."""
        fail_read, fail_write = (partial(self._fail, kind) for kind in ("read", "write"))
        self.db = HookedDatabase(db, before_read=fail_read, before_write=fail_write)
        self.folder = folder
        self.storage = Folder(folder)
        self.ended: list[Ended] = []
        self.limits = limits
        self.open()

    async def _fail(self, kind: str, _: object) -> None:
        if self.failing[kind]:
            self.failing[kind] -= 1
            raise DatabaseUnavailableError("gone")

    def open(self) -> None:
        self.uploads = Uploads(
            db=self.db,
            clock=SystemClock(),
            storage=self.storage,
            owner="me",
            limits=self.limits,
            on_ended=self.ended.append,
        )

    async def sender(self, head: UploadHead = HEAD) -> Sender:
        found = await self.uploads.sender(head)
        assert found is not None
        return found

    async def upload(self, parts: AsyncIterator[bytes], head: UploadHead = HEAD) -> Ended:
        return await self.uploads.receive(await self.sender(head), head, parts)

    async def rows(self) -> list[DemoRow]:
        return await demos.of_server(self.db, SERVER)

    def files(self) -> dict[str, bytes]:
        """Return the files by their names without the folder and the random part."""
        return {
            path.name.partition("-")[2]: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()
        }


@pytest.fixture
async def world(db: Database, tmp_path: Path) -> World:
    await create_server(db, SERVER)
    await db.write([RECORDED])
    played = match_history(SERVER, [MapState(MapStatus.FINISHED, 1), MapState()])
    await db.write(history.insert(played))
    return World(db, tmp_path / "demos")


async def body(*parts: bytes, then: Callable[[], Awaitable[object]] | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if then is not None:
        await then()


async def lose() -> None:
    raise EOFError


async def hang() -> None:
    await asyncio.Event().wait()


async def test_upload_is_stored_with_its_checksum(world: World) -> None:
    ended = await world.upload(body(b"01234", b"56789"))
    (row,) = await world.rows()
    assert (ended.reason, ended.received_bytes, world.ended) == (None, 10, [ended])
    assert (row.state, row.map_id, row.map_number) == (DemoState.AVAILABLE, map_id(SERVER, 1), 1)
    assert (row.file_name, row.sha256) == ("a.dem", hashlib.sha256(b"0123456789").hexdigest())
    assert (row.received_bytes, row.stored_bytes, row.owner) == (10, 10, "me")
    assert world.files() == {"a.dem": b"0123456789"}
    assert (world.folder / (row.storage_key or "")).is_file()


async def test_available_demo_is_an_event_of_the_organization(world: World, db: Database) -> None:
    await world.upload(body(b"0123", then=lose))
    assert await organization_events.newest(db, "org_1") == 0
    await world.upload(body(b"0123456789"))
    ((_, line),) = await organization_events.read_after(db, "org_1", 0, limit=9)
    event = msgspec.json.decode(line)
    assert (event["type"], event["serverId"], event["mapNumber"]) == ("demo_available", SERVER, 1)
    assert (event["demo"]["mapId"], event["demo"]["state"], event["demo"]["size"]) == (map_id(SERVER), "available", 10)
    assert [one["state"] for one in event["demo"]["files"]] == ["missing", "available"]


async def test_cut_upload_is_kept_apart_and_missing(world: World) -> None:
    ended = await world.upload(body(b"0123", then=lose))
    (row,) = await world.rows()
    assert ended.reason is row.reason is MissingReason.CUT
    assert (row.state, row.received_bytes, row.stored_bytes, row.sha256) == (DemoState.MISSING, 4, 4, None)
    assert world.files() == {"a.dem.part": b"0123"}


async def test_upload_without_a_byte_is_cut_and_leaves_nothing(world: World) -> None:
    assert (await world.upload(body())).reason is MissingReason.CUT
    assert ((await world.rows())[0].storage_key, world.files()) == (None, {})


class SlowCommit(Folder):
    """A folder that takes a moment to make a file available."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_committing = asyncio.Event()

    async def create(self, key: str) -> DemoWriter:
        writer = await super().create(key)
        commit = writer.commit

        async def slow() -> None:
            self.is_committing.set()
            await asyncio.sleep(0.1)
            await commit()

        writer.commit = slow  # type: ignore[method-assign]
        return writer


@pytest.mark.parametrize("end", ["by the time limit", "by a stop"])
async def test_commit_is_not_cut(world: World, db: Database, end: str) -> None:
    slow = World(db, world.folder, UploadLimits(total_s=0.05 if end == "by the time limit" else 60))
    storage = slow.storage = SlowCommit(world.folder)
    slow.open()
    task = asyncio.create_task(slow.upload(body(b"0123456789")))
    await storage.is_committing.wait()
    if end == "by a stop":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [(row.state, row.reason) for row in await slow.rows()] == [(DemoState.AVAILABLE, None)]
    assert world.files() == {"a.dem": b"0123456789"}


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(UploadLimits(silent_s=0.01), MissingReason.CUT), (UploadLimits(total_s=0.05), MissingReason.TOO_SLOW)],
    ids=["silent", "slow"],
)
async def test_sender_that_takes_too_long_is_cut_off(
    world: World, db: Database, limits: UploadLimits, reason: MissingReason
) -> None:
    impatient = World(db, world.folder, limits)
    assert (await impatient.upload(body(b"0123", then=hang))).reason is reason


async def test_stopped_service_leaves_an_interrupted_upload(world: World) -> None:
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await hang()

    task = asyncio.create_task(world.upload(body(b"0123", then=wait)))
    await reached.wait()
    assert world.uploads.active == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (row,) = await world.rows()
    assert (row.state, row.reason, world.uploads.active) == (DemoState.MISSING, MissingReason.INTERRUPTED, 0)


@pytest.mark.parametrize("announced", [10, None])
async def test_demo_that_is_too_large_is_not_kept(world: World, db: Database, announced: int | None) -> None:
    strict = World(db, world.folder, UploadLimits(demo_bytes=9))
    head = msgspec.structs.replace(HEAD, announced_bytes=announced)
    assert (await strict.upload(body(b"01234", b"56789"), head)).reason is MissingReason.TOO_LARGE
    assert (world.files(), (await world.rows())[0].stored_bytes) == ({}, 0)


async def test_quota_counts_all_demos_of_the_organization(world: World, db: Database) -> None:
    strict = World(db, world.folder, UploadLimits(org_bytes=19))
    assert (await strict.upload(body(b"0123456789"))).reason is None
    refused = await strict.upload(body(b"0123456789"))
    assert (refused.reason, refused.received_bytes) == (MissingReason.OVER_QUOTA, 0)
    assert [row.state for row in await world.rows()] == [DemoState.AVAILABLE, DemoState.MISSING]
    small = msgspec.structs.replace(HEAD, announced_bytes=9)
    assert (await strict.upload(body(b"012345678"), small)).reason is None


async def test_full_disk_refuses(world: World, db: Database) -> None:
    reserving = World(db, world.folder, UploadLimits(min_free_bytes=90))
    reserving.storage.free = 99
    assert (await reserving.upload(body(b"0123456789"))).reason is MissingReason.DISK_FULL
    reserving.storage.free = 100
    assert (await reserving.upload(body(b"0123456789"))).reason is None


async def test_space_that_others_have_announced_is_not_free(world: World, db: Database) -> None:
    await create_server(db, "srv_2")
    await db.write([RECORDED])
    world.storage.free = 19
    reached, go = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await go.wait()

    first = asyncio.create_task(world.upload(body(b"", b"0123456789", then=wait)))
    await reached.wait()
    other = msgspec.structs.replace(HEAD, token="report-srv_2")
    assert (await world.upload(body(b"0123456789"), other)).reason is MissingReason.DISK_FULL
    go.set()
    assert (await first).reason is None
    assert (await world.upload(body(b"0123456789"), other)).reason is None


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(StorageFullError("full"), MissingReason.DISK_FULL), (StorageError("gone"), MissingReason.STORAGE_FAILED)],
)
async def test_failing_storage_is_the_reason(world: World, failure: StorageError, reason: MissingReason) -> None:
    world.storage.failure = failure
    assert (await world.upload(body(b"0123456789"))).reason is reason


async def test_second_upload_of_a_server_waits_for_the_first(world: World) -> None:
    go, reached = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await go.wait()

    async with asyncio.TaskGroup() as group:
        first = group.create_task(world.upload(body(b"0123456789", then=wait)))
        await reached.wait()
        second = group.create_task(world.upload(body(b"9876543210")))
        await asyncio.sleep(0.05)
        assert (second.done(), world.uploads.active) == (False, 1)
        go.set()
    assert (first.result().reason, second.result().reason) == (None, None)
    assert [row.map_number for row in await world.rows()] == [1, 1]


async def test_upload_waits_for_the_database(world: World) -> None:
    async def fail() -> None:
        world.failing["write"] = 2

    world.failing.update(read=2, write=2)
    assert (await world.upload(body(b"0123456789", then=fail))).reason is None
    assert (await world.rows())[0].state is DemoState.AVAILABLE


async def test_upload_that_cannot_begin_is_refused(world: World, db: Database) -> None:
    impatient = World(db, world.folder, UploadLimits(patience_s=0.0))
    impatient.failing["write"] = 9
    with pytest.raises(UnavailableError):
        await impatient.upload(body(b"0123456789"))


async def test_unknown_token_has_no_sender(world: World) -> None:
    for token in ("other", "", "a b", "x" * 200, "log-srv_1"):
        assert await world.uploads.sender(UploadHead(token=token)) is None


@pytest.mark.parametrize(
    "change",
    ["settings = CAST('{}' AS BLOB)", "ended_at_ms = 1", "plugin_match_id = 28"],
    ids=["not recorded", "ended long ago", "another match"],
)
async def test_match_that_takes_no_demo_has_no_sender(world: World, db: Database, change: str) -> None:
    head = msgspec.structs.replace(HEAD, match_id=27)
    assert await world.uploads.sender(head) is not None
    await db.write([Statement(f"UPDATE servers SET {change}")])
    assert await world.uploads.sender(head) is None


async def test_plugin_that_has_forgotten_its_match_still_uploads(world: World) -> None:
    assert await world.uploads.sender(msgspec.structs.replace(HEAD, match_id=0)) is not None


async def test_server_that_was_replaced_still_uploads(world: World, db: Database) -> None:
    row = (await world.sender()).row
    await db.write([demos.expect(row, map_id=map_id(SERVER, 1), map_number=1, now_ms=1)])
    await db.write([Statement("UPDATE servers SET report_token_hash = 'new', log_token_hash = 'new'")])
    assert (await world.upload(body(b"0123456789"))).reason is None
    (demo,) = await world.rows()
    assert (demo.state, demo.attempt) == (DemoState.AVAILABLE, row.attempt)


async def test_progress_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchpod.service.demos.uploads.RENEW_MS", 1)
    go = asyncio.Event()
    task = asyncio.create_task(world.upload(body(b"0123", b"4", then=go.wait)))
    reporting = asyncio.create_task(world.uploads.run())
    async with asyncio.timeout(60):
        while not (found := await world.rows()) or found[0].received_bytes != 5:
            await asyncio.sleep(0.01)
    reporting.cancel()
    go.set()
    await task
    with contextlib.suppress(asyncio.CancelledError):
        await reporting


async def test_map_is_that_of_the_number_or_else_the_last_one_played(world: World) -> None:
    maps = (await world.sender()).maps
    found = [map_of(maps, number) for number in (0, 1, None, 7)]
    assert [one.map_number if one else None for one in found] == [1, 2, 1, 1]
    assert map_of((), 0) is None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("MatchZy/2026_de_mirage_A vs B.dem", "2026_de_mirage_A vs B.dem"),
        ("..\\..\\a.dem", "a.dem"),
        ("../..", ""),
        ('a"b\n;c.dem', "a_b__c.dem"),
        ("x" * 200 + ".dem", "x" * 116 + ".dem"),
    ],
)
def test_file_name_is_safe_to_show_and_to_store(given: str, name: str) -> None:
    assert file_name_of(given) == name
