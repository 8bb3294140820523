"""Demos are expected, uploaded one at a time, waited for, given up and deleted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from matchpod.core.demos import STALE_MS, UPLOAD_LIMIT_MS, DemoState, MissingReason
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database
from matchpod.storage import demos, servers
from matchpod.storage.demos import DemoRow, TooManyFilesError, Upload, UploadEnd, UploaderBusyError
from tests.contract import databases
from tests.server_rows import server_row

harness = databases.harness

ROW = server_row()
ENDED = UploadEnd(received_bytes=9, stored_bytes=9, sha256="ab", storage_key="k/u1")


def of_map(number: int = 1) -> DemoRow:
    """Return what the upload of a map says about it."""
    return DemoRow(
        id="",
        org_id=ROW.org_id,
        server_id=ROW.id,
        map_id=f"map{number}",
        map_number=number,
        attempt=ROW.attempt,
        token_hash=ROW.report_token_hash,
        state=DemoState.UPLOADING,
        created_at_ms=10,
    )


def upload(name: str, owner: str = "me") -> Upload:
    return Upload(upload_id=name, owner=owner, file_name=f"{name}.dem", announced_bytes=9, storage_key=f"k/{name}")


async def expect(db: Database, number: int = 1, now_ms: int = 1) -> None:
    await db.write([demos.expect(ROW, map_id=f"map{number}", map_number=number, now_ms=now_ms)])


async def only(db: Database) -> DemoRow:
    (row,) = await demos.of_server(db, ROW.id)
    return row


async def test_server_whose_match_has_ended_drains_while_it_is_kept_for_demos(db: Database) -> None:
    for name, phase in (("srv_1", ServerPhase.ENDING), ("srv_2", ServerPhase.RUNNING), ("srv_3", ServerPhase.RELEASED)):
        row = server_row(name, phase=phase)
        await servers.create(db, row, idempotency=None)
        await db.write([demos.expect(row, map_id=f"map of {name}", map_number=1, now_ms=1)])
    await servers.create(db, server_row("srv_4", phase=ServerPhase.ENDING), idempotency=None)
    assert await demos.count_draining(db) == {ROW.region: 1}


async def test_recording_of_a_server_that_is_released_is_missing_at_last(db: Database) -> None:
    await servers.create(db, server_row(ROW.id, phase=ServerPhase.RUNNING), idempotency=None)
    await expect(db)
    assert await demos.give_up_overdue(db, 99) == 0
    await db.write([servers.mark_released(ROW.id, ROW.fence)])
    assert await demos.give_up_overdue(db, 99) == 1
    assert (await only(db)).reason is MissingReason.NOT_UPLOADED


async def test_map_whose_upload_has_begun_is_not_expected_again(db: Database) -> None:
    await demos.begin(db, of_map(), upload("u1"), 10)
    await expect(db, now_ms=11)
    assert (await only(db)).state is DemoState.UPLOADING
    await expect(db, number=2, now_ms=12)
    assert [row.map_number for row in await demos.of_server(db, ROW.id)] == [1, 2]


async def test_beginning_that_is_repeated_changes_nothing(db: Database) -> None:
    for was_expected in (False, True):
        if was_expected:
            await expect(db, number=2)
        begun = await demos.begin(db, of_map(1 + was_expected), upload(f"u{was_expected}"), 10)
        assert await demos.begin(db, of_map(1 + was_expected), upload(f"u{was_expected}"), 11) == begun
        await demos.end(db, begun.id, ENDED, upload_id=f"u{was_expected}", now_ms=12)
    assert len(await demos.of_server(db, ROW.id)) == 2


async def test_map_has_so_many_files_at_most(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demos, "MAX_FILES", 1)
    begun = await demos.begin(db, of_map(), upload("u1"), 10)
    await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    with pytest.raises(TooManyFilesError):
        await demos.begin(db, of_map(), upload("u2"), 13)
    await demos.begin(db, of_map(2), upload("u2"), 13)


async def test_progress_of_several_uploads_is_reported_at_once(db: Database) -> None:
    for number, name in enumerate(("srv_a", "srv_b", "srv_c"), 1):
        await demos.begin(db, replace(of_map(), server_id=name), upload(f"u{number}"), 10)
    assert await demos.renew(db, {"u1": 4, "u2": 50, "u3": 6}, 20)
    found = [(await demos.of_server(db, name))[0] for name in ("srv_a", "srv_b", "srv_c")]
    assert [(row.received_bytes, row.stored_bytes, row.renewed_at_ms) for row in found] == [
        (4, 9, 20), (50, 50, 20), (6, 9, 20)
    ]  # fmt: skip


async def test_quota_counts_earlier_uploads_but_not_later_ones(db: Database) -> None:
    begun = [
        await demos.begin(db, replace(of_map(), server_id=name), upload(f"u of {name}"), now_ms)
        for name, now_ms in (("srv_a", 10), ("srv_c", 11), ("srv_b", 11))
    ]
    assert [await demos.stored_bytes(db, demo) for demo in begun] == [9, 27, 18]


async def test_expected_demo_is_uploaded(db: Database) -> None:
    await expect(db)
    await expect(db, now_ms=2)
    assert (await only(db)).state is DemoState.RECORDING
    begun = await demos.begin(db, of_map(), upload("u1"), 10)
    assert await demos.renew(db, {"u1": 4}, 11)
    assert ((await only(db)).state, (await only(db)).received_bytes) == (DemoState.UPLOADING, 4)
    assert await demos.stored_bytes(db, begun) == 9  # what was announced
    assert await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    row = await only(db)
    assert (row.state, row.file_name, row.sha256, row.storage_key) == (DemoState.AVAILABLE, "u1.dem", "ab", "k/u1")
    assert (await demos.of_maps(db, ["map1", "map2"]), await demos.get(db, row.id)) == ([row], row)
    assert not await demos.renew(db, {"u1": 5}, 13)


async def test_server_uploads_one_demo_at_a_time(db: Database) -> None:
    await expect(db, 1)
    await expect(db, 2)
    begun = await demos.begin(db, of_map(1), upload("u1"), 10)
    for number in (1, 2):  # a further one of this map, and an expected one
        with pytest.raises(UploaderBusyError):
            await demos.begin(db, of_map(number), upload("u2"), 11)
    await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    assert (await demos.begin(db, of_map(2), upload("u2"), 13)).map_number == 2


async def test_upload_of_a_dead_process_is_interrupted_and_blocks_no_other(db: Database) -> None:
    await demos.begin(db, of_map(), upload("u1"), 10)
    await demos.renew(db, {"u1": 4}, 20)
    assert await demos.lose_stale(db, 20 + STALE_MS - 1) == 0
    await demos.begin(db, of_map(), upload("u2"), 20 + STALE_MS)
    first, second = await demos.of_server(db, ROW.id)
    assert (first.state, first.reason, first.ended_at_ms) == (
        DemoState.MISSING, MissingReason.INTERRUPTED, 20 + STALE_MS
    )  # fmt: skip
    assert second.state is DemoState.UPLOADING


async def test_process_that_stood_still_may_still_end_its_upload(db: Database) -> None:
    begun = await demos.begin(db, of_map(), upload("u1"), 10)
    assert await demos.lose_all(db, 11) == 1
    assert await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    assert (await only(db)).state is DemoState.AVAILABLE
    assert not await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=13)
    assert not await demos.end(db, begun.id, ENDED, upload_id="u2", now_ms=13)


async def test_uploads_of_one_process_are_lost_alone(db: Database) -> None:
    await demos.begin(db, of_map(), upload("u1", owner="me"), 10)
    assert await demos.lose_of(db, "you", 11) == 0
    assert await demos.lose_of(db, "me", 11) == 1


async def test_upload_past_its_limit_is_stale_however_often_it_is_renewed(db: Database) -> None:
    await demos.begin(db, of_map(), upload("u1"), 10)
    end_ms = 10 + UPLOAD_LIMIT_MS + STALE_MS
    await demos.renew(db, {"u1": 4}, end_ms)
    assert await demos.lose_stale(db, end_ms) == 1


async def test_late_upload_of_a_demo_that_was_given_up_is_accepted(db: Database) -> None:
    await expect(db)
    await db.write([demos.give_up(ROW.id, MissingReason.NOT_UPLOADED, 9)])
    assert ((await only(db)).state, (await only(db)).reason) == (DemoState.MISSING, MissingReason.NOT_UPLOADED)
    begun = await demos.begin(db, of_map(), upload("u1"), 10)
    await db.write([demos.give_up(ROW.id, MissingReason.NOT_UPLOADED, 11)])  # an upload is not given up
    await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    assert ((await only(db)).state, (await only(db)).reason) == (DemoState.AVAILABLE, None)


async def test_recording_is_overdue_only_after_its_match_has_ended(db: Database) -> None:
    await expect(db)
    assert await demos.give_up_overdue(db, 99) == 0
    await db.write([demos.await_upload("map1", 50)])
    await db.write([demos.await_upload("map1", 90)])
    assert (await only(db)).due_ms == 50
    assert [await demos.give_up_overdue(db, now_ms) for now_ms in (49, 50, 51)] == [0, 1, 0]
    assert (await only(db)).reason is MissingReason.NOT_UPLOADED


async def test_retention_deletes_the_file_and_keeps_the_row(db: Database) -> None:
    begun = await demos.begin(db, of_map(), upload("u1"), 10)
    await demos.end(db, begun.id, ENDED, upload_id="u1", now_ms=12)
    assert (await demos.prunable(db, 12, 9), await demos.count_prunable(db, 12)) == ([], 0)
    assert (await demos.prunable(db, 13, 9), await demos.count_prunable(db, 13)) == ([(begun.id, "k/u1")], 1)
    await demos.mark_deleted(db, begun.id, "k/u1")
    row = await only(db)
    assert (row.state, row.reason, row.storage_key) == (DemoState.MISSING, MissingReason.DELETED, None)
    assert (await demos.stored_bytes(db, begun), await demos.prunable(db, 13, 9)) == (0, [])
    assert await demos.count_by_state(db) == {}
