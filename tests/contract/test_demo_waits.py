"""The server of a recorded match is kept until its demos are uploaded, or given up; nothing else waits for them."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from cs2_protocol.console_commands import STATUS, set_command
from cs2_protocol.game import Side
from matchpod.core.demos import DemoState, MissingReason
from matchpod.core.events import MapEnded, MapLive
from matchpod.core.match.match import Match
from matchpod.core.model import CvarSetting, SeriesFormat
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.marks import Gotv, read_marks
from matchpod.service.ingest.posts import TOKEN_HEADER
from matchpod.service.reading.match_head import is_draining
from matchpod.service.runner.demo_records import LINGER_MS, DemoRecords
from matchpod.storage import demos, outbox
from matchpod.storage.demos import DemoRow, Upload, UploadEnd
from matchpod.storage.servers import HANDOVER_MS, LEASE_MS, token_hash
from tests.contract import databases
from tests.contract.world import SETTINGS, SPEED, World
from tests.server_rows import server_row

harness = databases.sqlite_harness

TV_DELAY_S = 20
RECORDED = msgspec.structs.replace(SETTINGS, record_demo=True, tv_delay_s=TV_DELAY_S)
BO3 = msgspec.structs.replace(
    RECORDED, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_train", "de_mirage"), max_rounds=2
)


async def begin_upload(world: World, number: int) -> DemoRow:
    """Begin to receive an upload of the region, as the process that takes uploads does."""
    url, headers, content = world.region.uploads[number]
    assert url == "http://uploads.example/ingest/demos"
    found = await demos.owner_of_token(world.db, token_hash(headers[TOKEN_HEADER]))
    assert found is not None
    map_number = int(headers["MatchZy-MapNumber"]) + 1
    (expected,) = [row for row in await demos.of_server(world.db, found[0]) if row.map_number == map_number]
    upload = Upload(
        upload_id=f"u{number}",
        owner="uploads",
        file_name=headers["MatchZy-FileName"],
        announced_bytes=len(content),
        storage_key=f"k{number}",
    )
    return await demos.begin(world.db, expected, upload, world.clock.now_ms())


async def end_upload(world: World, begun: DemoRow) -> None:
    ended = UploadEnd(received_bytes=9, stored_bytes=9, sha256="ab", storage_key=begun.storage_key)
    assert begun.upload_id is not None
    assert await demos.end(world.db, begun.id, ended, upload_id=begun.upload_id, now_ms=world.clock.now_ms())


async def until_uploads(world: World, count: int = 1) -> None:
    await world.until(lambda: len(world.region.uploads) >= count, "an upload")


async def states(world: World) -> list[tuple[int, DemoState, MissingReason | None]]:
    return [(row.map_number, row.state, row.reason) for row in await demos.of_server(world.db, "srv_1")]


async def until_kept(world: World) -> None:
    """Wait until a process has seen that the server is kept."""
    await world.until_row(lambda row: row.phase is ServerPhase.ENDING and row.lease_owner is None, "ended")
    await world.until(lambda: any("srv_1" in process.deps.kept for process in world.processes), "kept")


async def until_released(world: World) -> None:
    await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "released")
    assert world.region.running == {}


async def test_server_is_kept_until_its_demo_is_uploaded_but_its_result_is_there_at_once(world: World) -> None:
    world.start()
    await world.create(game=RECORDED)
    await world.until_row(lambda row: row.phase is ServerPhase.ENDING, "ended")
    outcome = await outbox.outcome_of(world.db, "srv_1")
    assert outcome is not None
    assert outcome.result is not None
    assert await outbox.callback_of(world.db, "srv_1") is not None
    await until_uploads(world)
    await until_kept(world)
    row = await world.row()
    assert is_draining(row)
    assert read_marks(row.marks).gotv == Gotv(port=27020, delay_seconds=TV_DELAY_S)
    assert await demos.count_draining(world.db) == {"eu": 1}
    assert world.region.releases == []
    begun = await begin_upload(world, 0)
    world.clock.at_ms += 25_000  # past the time to begin
    await demos.renew(world.db, {"u0": 1}, world.clock.now_ms())
    await asyncio.sleep(0.5)
    assert world.region.releases == []
    await end_upload(world, begun)
    world.clock.at_ms += LINGER_MS
    await until_released(world)
    assert await states(world) == [(1, DemoState.AVAILABLE, None)]
    assert not is_draining(await world.row())
    assert await demos.count_draining(world.db) == {}


async def test_players_are_kicked_at_the_end_of_a_match_whose_server_is_kept(world: World) -> None:
    world.start()
    await world.create(game=RECORDED)
    await until_kept(world)
    commands = world.region.running["srv_1"].commands
    # Those who are still there are kicked: the players of a simulated server leave soon after the end.
    await world.until(lambda: [one for one in commands if not one.startswith("kickid")][-1] == STATUS, "the kicks")
    assert world.region.releases == []


async def test_server_is_released_if_no_upload_begins_in_time(world: World) -> None:
    world.start()
    await world.create(game=RECORDED)
    await until_kept(world)
    (demo,) = await demos.of_server(world.db, "srv_1")
    row = await world.row()
    assert row.ended_at_ms is not None
    assert demo.due_ms is not None
    assert abs(demo.due_ms - row.ended_at_ms - (TV_DELAY_S + 60) / SPEED * 1000) < 2_000
    world.clock.at_ms += 30_000
    assert world.region.releases == []
    world.clock.at_ms += 15_000
    await until_released(world)
    assert await states(world) == [(1, DemoState.MISSING, MissingReason.NOT_UPLOADED)]


async def test_wait_goes_on_in_another_process_after_a_kill(world: World) -> None:
    first = world.start()
    await world.create(game=RECORDED)
    await until_kept(world)
    await until_uploads(world)
    begun = await begin_upload(world, 0)
    await first.kill()
    world.start("two")
    await asyncio.sleep(0.5)
    assert world.region.releases == []
    await end_upload(world, begun)
    world.clock.at_ms += LEASE_MS
    await until_released(world)
    assert world.region.releases == ["srv_1"]
    assert await states(world) == [(1, DemoState.AVAILABLE, None)]


async def test_process_that_takes_over_a_match_expects_its_demos(world: World) -> None:
    first = world.start()
    await world.create(game=RECORDED)
    await world.until_row(lambda row: row.phase is ServerPhase.RUNNING, "running")
    world.region.running["srv_1"].is_paused = True
    first.db.crashes_before = "INSERT INTO demos"
    world.region.running["srv_1"].is_paused = False
    await world.until(first.has_died, "killed")
    await first.kill()
    world.start("two")
    world.clock.at_ms += LEASE_MS
    await until_kept(world)
    assert await states(world) == [(1, DemoState.RECORDING, None)]


async def test_canceling_does_not_wait_for_the_demo_of_an_earlier_map(world: World) -> None:
    world.start()
    await world.create(game=BO3, scenario="one_sided")

    async def has_ended() -> bool:
        return any(demo.due_ms is not None for demo in await demos.of_server(world.db, "srv_1"))

    await world.until(has_ended, "the end of a map")
    await world.cancel()
    world.processes[0].supervisor.notify("srv_1")
    world.clock.at_ms += HANDOVER_MS
    await until_released(world)
    first = (await demos.of_server(world.db, "srv_1"))[0]
    assert first.due_ms is not None
    assert world.clock.now_ms() < first.due_ms
    assert {reason for _, _, reason in await states(world)} == {MissingReason.CANCELED}
    assert not is_draining(await world.row())


async def test_server_that_dies_while_it_is_kept_is_released(world: World) -> None:
    world.start()
    await world.create(game=RECORDED)
    await until_kept(world)
    world.region.running["srv_1"].is_over = True
    await until_released(world)
    (demo,) = await demos.of_server(world.db, "srv_1")
    assert demo.due_ms is not None
    assert world.clock.now_ms() < demo.due_ms
    assert await states(world) == [(1, DemoState.MISSING, MissingReason.NOT_UPLOADED)]


async def test_server_that_others_use_later_gets_back_its_gotv_and_uploads_nothing_of_theirs(world: World) -> None:
    server = world.region.use_static_server()
    server.execute("tv_delay 7")
    world.start()
    await world.create(game=RECORDED)
    await until_kept(world)
    assert server.machine.execute("tv_delay", "") == f"tv_delay = {TV_DELAY_S}\n"
    world.clock.at_ms += 45_000
    await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "released")
    assert server.machine.execute("tv_enable", "") == "tv_enable = false\n"
    assert server.machine.execute("tv_delay", "") == "tv_delay = 7\n"
    assert server.machine.execute("matchzy_demo_upload_header_value", "") == "matchzy_demo_upload_header_value = none\n"


async def test_maps_of_a_series_are_expected_one_by_one_and_none_is_cut(world: World) -> None:
    world.start()
    await world.create(game=BO3, scenario="one_sided")
    await until_uploads(world)
    first = (await demos.of_server(world.db, "srv_1"))[0]
    assert first.map_number == 1
    assert first.due_ms is not None
    await until_kept(world)
    await until_uploads(world, len(await demos.of_server(world.db, "srv_1")))
    assert all(content.endswith(b"DEM_Stop") for _, _, content in world.region.uploads)


@pytest.mark.parametrize(
    ("given", "seconds"), [("fast", 40), ("0", 40), ("nan", 40), ("100", 40), ("1", 80), ("0.5", 160)]
)
def test_upload_of_a_slower_game_is_awaited_for_longer(given: str, seconds: float) -> None:
    settings = msgspec.structs.replace(RECORDED, custom_cvars=(CvarSetting("sim_speed", given),))
    match = Match.create(settings, 0)
    match.apply(MapLive(0, "de_nuke", 0, Side.CT), 0)
    match.apply(MapEnded(0, "de_nuke", 13, 5), 0)
    row = server_row(game_id="00000000-0000-4000-8000-000000000000")
    *_, awaited = DemoRecords(row, match, speed=SPEED).statements(0)
    assert awaited.params["until_ms"] == seconds * 1000


async def test_match_that_is_not_recorded_is_released_at_once(world: World) -> None:
    world.start()
    await world.create()
    await until_released(world)
    assert await demos.of_server(world.db, "srv_1") == []
    assert read_marks((await world.row()).marks).gotv is msgspec.UNSET


async def test_gotv_is_on_and_uploads_are_set_before_the_map_is_loaded(world: World) -> None:
    world.start()
    await world.create(game=RECORDED)
    await world.until_row(lambda row: row.phase is ServerPhase.RUNNING, "running")
    commands = world.region.running["srv_1"].commands
    load = next(number for number, command in enumerate(commands) if command.startswith("changelevel"))
    before = commands[:load]
    assert 'matchzy_demo_upload_url "http://uploads.example/ingest/demos"' in before
    assert f'matchzy_demo_upload_header_key "{TOKEN_HEADER}"' in before
    assert set_command("tv_delay", str(TV_DELAY_S)) in before
    assert set_command("tv_enable", "1") in before
