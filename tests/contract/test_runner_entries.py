"""Steps of the runner: entries that are late, deadlines, and the release of a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.model import SeriesFormat
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, FleetError, GameServer, ServerOrder, Statement
from matchpod.service.end_match import end_match
from matchpod.service.ingest.posts import RawHeaders, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.live import LocalMatch
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.pulse import Pulse
from matchpod.storage import outbox, raw_log, servers
from matchpod.storage.servers import HANDOVER_MS, LEASE_MS
from tests.clocks import ManualClock
from tests.contract import databases
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_remote_matches import lose_entries
from tests.contract.test_runner_start import RejectedLogs
from tests.contract.world import PLAYERS, SETTINGS, START_MS, Between, Process, World
from tests.vaults import tokens_of

harness = databases.mostly_sqlite_harness

STAMP = "11/15/2026 - 09:00:00.000"
STEAM_ID_BASE = 76561197960265728


async def test_phase_of_the_match_is_stored_for_lists(world: World) -> None:
    stored: list[object] = []

    async def record(statements: Sequence[Statement]) -> None:
        stored.extend(one.params["match_phase"] for one in statements if "match_phase = :" in one.sql)

    world.start().db.before_write = record
    await world.create()
    await world.outcome()
    assert (await world.row()).match_phase is PublicPhase.ENDED
    passed = [phase.value for phase in PublicPhase]
    assert stored == sorted(set(stored), key=lambda phase: passed.index(str(phase))), (
        "each phase is written once, when it changes"
    )
    assert stored[-1] == PublicPhase.LIVE, "a slow process may skip a short one before it"


# --- last entries -----------------------------------------------------------------------------------------------------


LATE_S = 0.3
"""Longer than a server needs for its last log post, shorter than a match waits for reports."""


class _LateShots(Between):
    """Counts of shots are stored shortly after the log; with `is_last_lost`, the last one is not stored at all."""

    is_last_lost = False

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        await asyncio.sleep(LATE_S)
        is_lost = self.is_last_lost and json.loads(body).get("final", False)
        return Receipt.STORED if is_lost else await super().store_shots(token, body)


class _DyingIngest(Between):
    """The server dies before the end of its match is stored, which happens once its loss was noticed.

    The plugin's reports of that end are not stored.
    """

    def __init__(self, process: Process, noticed: asyncio.Event) -> None:
        super().__init__(process)
        self._noticed = noticed
        self.is_stored = asyncio.Event()

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        is_end = b"Game Over" in body
        if is_end:
            self.process.region.running["srv_1"].is_over = True
            await self._noticed.wait()
        receipt = await super().store_log(token, headers, body)
        if is_end:
            self.is_stored.set()
        return receipt

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        is_end = b"series_end" in body or b"map_result" in body
        return Receipt.STORED if is_end else await super().store_report(token, body)


async def test_last_log_post_counts_even_if_the_server_dies_before_it_is_stored(world: World) -> None:
    _DyingIngest(world.start(), world.region.gone_seen)
    await world.create()
    outcome = await world.outcome()
    assert (outcome.kind, outcome.reason) == ("match_over", None)


async def test_last_log_post_counts_even_if_it_is_stored_while_the_loss_is_recorded(world: World) -> None:
    process = world.start()
    is_recorded = asyncio.Event()
    ingest = _DyingIngest(process, is_recorded)

    async def wait_for_post(statements: Sequence[Statement]) -> None:
        if any(one.params.get("error") for one in statements):
            is_recorded.set()
            await ingest.is_stored.wait()

    process.db.before_write = wait_for_post
    await world.create()
    outcome = await world.outcome()
    assert (outcome.kind, outcome.reason) == ("match_over", None)


async def test_nothing_is_awaited_after_the_last_reports(world: World) -> None:
    maps = ("de_nuke", "de_inferno", "de_vertigo")
    _LateShots(world.start(intervals=Intervals(last_report_s=3600.0)))
    await world.create(game=msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=maps))
    result = await world.result()
    assert len(result["maps"]) > 1
    for players in (result["overall"], *(one["players"] for one in result["maps"])):
        assert all(player["extraStats"]["shotsFired"] >= 0 for player in players)


async def test_wait_for_the_last_count_of_shots_is_bounded(world: World) -> None:
    _LateShots(world.start()).is_last_lost = True
    await world.create()
    result = await world.result()
    assert not any("shotsFired" in player["extraStats"] for player in result["overall"])


# --- deadlines --------------------------------------------------------------------------------------------------------


def connected(players: Sequence[str]) -> bytes:
    lines = [
        f'{STAMP} - "p{number}<{number}><[U:1:{int(player) - STEAM_ID_BASE}]><>" connected, address "1.2.3.4:27005"\n'
        for number, player in enumerate(players)
    ]
    return "".join(lines).encode()


async def until_connected(world: World) -> None:
    """Wait until the post of `connected` is applied, and check that no deadline ended the match before."""
    live = await world.until_driven()
    await world.until(lambda: set(live.fold.match.presence.connected) == set(PLAYERS), "the post is applied")
    assert await outbox.outcome_of(world.db, "srv_1") is None


def hold_posts(process: Process, may_write: asyncio.Event) -> asyncio.Event:
    """Store posts only when they may be written; return an event that is set once one waits."""
    is_writing = asyncio.Event()

    async def write_slowly(statements: Sequence[Statement]) -> None:
        if "INSERT INTO raw_log_heads" in statements[0].sql:
            is_writing.set()
            await may_write.wait()

    process.db.before_write = write_slowly
    return is_writing


async def test_post_received_before_a_deadline_counts_even_if_it_is_stored_after_it(world: World) -> None:
    process, gate = world.start(), asyncio.Event()
    process.db.is_shared = False  # so that its lease lasts
    await world.create(scenario="no_show")
    await world.until_driven()
    world.region.is_paused = True
    is_writing = hold_posts(process, gate)
    post = asyncio.ensure_future(world.post(connected(PLAYERS)))
    await is_writing.wait()
    world.clock.at_ms += 160_000
    gate.set()
    await post
    await until_connected(world)


async def test_time_of_a_server_whose_log_does_not_arrive_is_recorded(db: Database, world: World) -> None:
    world.speed = 1.0
    process = world.start(intervals=Intervals(renew_s=0.1))
    await world.create(scenario="no_show")
    live = await world.until_driven()
    RejectedLogs(process)

    async def is_observed() -> bool:
        world.clock.at_ms += 500
        stored = await raw_log.read_after(db, "srv_1", 0, limit=100)
        return [entry.kind for entry in stored[-2:]] == [EntryKind.OBSERVED, EntryKind.OBSERVED]

    await world.until(is_observed, "entries are appended for the clock")
    assert live.fold.reader.skipped_ms == 0


async def begin_waiting(world: World, name: str = "one", **given: Any) -> tuple[Process, LocalMatch, int]:
    """Drive a match that waits for its players, whose server posts nothing more; return also its next deadline."""
    world.speed = 20.0
    process = world.start(name, **given)
    await world.create(scenario="no_show")
    await world.until_driven()
    world.region.is_paused = True
    live = await world.until_applied()
    due_ms = live.fold.due_ms()
    assert due_ms is not None
    return process, live, due_ms


@pytest.mark.parametrize("is_storing", [False, True], ids=["across the deadline", "while it stored earlier posts"])
async def test_deadline_waits_for_posts_after_the_process_stood_still(
    db: Database, world: World, is_storing: bool
) -> None:
    """However little time has passed since the deadline: posts that arrived before it may not have been read."""
    stopwatch, may_write = ManualClock(), asyncio.Event()
    process, live, due_ms = await begin_waiting(world, pulse=Pulse(stopwatch), intervals=Intervals(late_ms=600_000))
    is_writing = hold_posts(process, may_write)
    earlier = [asyncio.ensure_future(world.post(f"{STAMP} - a line\n".encode()))] if is_storing else []
    if is_storing:
        await is_writing.wait()
    else:
        may_write.set()
        stopwatch.at_ms += 5_000
    world.clock.at_ms = due_ms + 1
    live.woken.set()
    if is_storing:
        # Not that `woken` is clear again: with PostgreSQL a late announcement may set it meanwhile.
        await world.until(lambda: live.idle is None, "the deadline was noticed, and waits for the post")
        stopwatch.at_ms += 5_000
        may_write.set()
        await asyncio.gather(*earlier)
    await world.until(lambda: live.fold.deadlines_wait_until_ms > due_ms, "the deadline waits")
    await world.post(connected(PLAYERS))
    await until_connected(world)
    assert not await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)


@databases.on_both
@pytest.mark.parametrize("is_taken_over", [True, False], ids=["another process has the match", "no other has it"])
async def test_deadline_is_not_written_by_a_process_without_its_lease(
    db: Database, world: World, is_taken_over: bool
) -> None:
    """If no other process has the match, the fence is still the same, and the database would accept the entry."""
    lasting = Intervals(late_ms=600_000, renew_s=600, watch_s=600, beat_s=600)
    frozen, live, due_ms = await begin_waiting(world, "frozen", intervals=lasting)
    row = await world.row()
    if is_taken_over:
        taken = Statement("UPDATE servers SET fence = fence + 1 WHERE id = 'srv_1'")
        await db.write([servers.change(row.id, row.fence, lease_owner="another"), taken])
        world.clock.at_ms = due_ms + 1
    else:
        frozen.supervisor._is_draining = True  # so that it does not acquire the match again
        assert due_ms < world.clock.now_ms() + LEASE_MS
        world.clock.at_ms += LEASE_MS + 1
    live.woken.set()
    await world.until(lambda: frozen.live.get("srv_1") is None, "the process has stopped")
    assert (await world.row()).fence == row.fence + is_taken_over
    kinds = {entry.kind for entry in await raw_log.read_after(db, "srv_1", 0, limit=1000)}
    assert not kinds & {EntryKind.DEADLINE, EntryKind.RESUMED, EntryKind.OBSERVED}
    assert await outbox.outcome_of(db, "srv_1") is None


@databases.on_both
async def test_match_is_loaded_again_if_the_database_lost_its_last_entries(db: Database, world: World) -> None:
    """After a failover to a standby that lacked them: what is stored then under their numbers counts."""
    await world.live_match(intervals=Intervals(watch_s=0.1))
    world.region.is_paused = True
    live = await world.until_driven()
    await world.until(lambda: not live.is_behind and live.idle is not None, "all is applied")
    await world.until(lambda: live.idle is not None and not live.fold.has_timeline_items, "all is recorded")
    # A slow machine has stored a snapshot before.
    await lose_entries(db, await raw_log.newest_seq(db, "srv_1") - 3, "snapshots", "map_events")
    world.region.is_paused = False
    outcome = await world.outcome()  # and the stored timeline equals that of a replay of the stored log
    assert outcome.kind == "match_over"


async def test_deadlines_of_a_process_that_is_always_late_fire_eventually(db: Database, world: World) -> None:
    world.speed = 600
    process = await world.running_match(intervals=Intervals(late_ms=200, renew_s=0.1), scenario="no_show")
    world.region.is_paused = True

    async def read_slowly(sql: str) -> None:
        if "FROM raw_log " in sql:
            world.clock.at_ms += 300

    async def is_canceled() -> bool:
        world.clock.at_ms += 1_000
        return await outbox.outcome_of(db, "srv_1") is not None

    process.db.before_read = read_slowly
    await world.until(is_canceled, "the match is canceled", within_s=120)
    assert await raw_log.has_kind(db, "srv_1", EntryKind.RESUMED, after_seq=0), "the deadline was postponed"
    assert (await world.outcome()).reason == CancelReason.NO_PLAYERS_JOINED


async def test_entries_stored_during_configuration_are_applied_at_once(world: World) -> None:
    process = world.start()
    process.db.is_shared = False

    async def pause_game(statements: Sequence[Statement]) -> None:
        if any("running_at_ms = " in one.sql for one in statements):
            world.region.is_paused = True

    process.db.before_write = pause_game
    await world.create(scenario="no_show")
    await world.until_applied()


# --- release ----------------------------------------------------------------------------------------------------------


async def test_server_is_released_even_if_its_password_cannot_be_decrypted(db: Database, world: World) -> None:
    process = world.start()
    await world.create(scenario="no_show")
    row = await world.until_phase(ServerPhase.RUNNING)
    other = KeyFileVault.from_text("B" * 43 + "=")
    outcome = Outcome(at_ms=world.clock.now_ms(), reason=CancelReason.CANCELED_BY_USER)
    change = servers.change(row.id, row.fence, rcon_password=other.seal("x"))
    await db.write([change, *end_match(row, outcome, fence=None, callback_id="cb")])
    process.supervisor.notify("srv_1")
    await world.outcome()


class SlowRegion(SimulatedRegion):
    """The server of the first match starts slowly, and ends meanwhile."""

    def __init__(self, slots: Sequence[str] | None, *, start_ms: int) -> None:
        super().__init__(slots, start_ms=start_ms)
        self.is_starting, self.go_on = asyncio.Event(), asyncio.Event()

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        if order.server_id != "srv_1":
            return await super().allocate(order)
        self.is_starting.set()
        await self.go_on.wait()
        raise FleetError("the server process ended during its start")


async def test_process_does_not_release_a_slot_that_another_process_released(world: World) -> None:
    world.region = region = SlowRegion(("a",), start_ms=START_MS)
    first = world.start("one")
    await world.create()
    await region.is_starting.wait()
    first.supervisor._is_draining = True  # so that the other process gets the match
    world.start("two")
    await world.cancel()
    world.clock.at_ms += HANDOVER_MS
    await world.outcome()
    await world.create("srv_2", scenario="no_show")
    await world.until_phase(ServerPhase.RUNNING, "srv_2")
    before = len(region.releases)
    region.go_on.set()
    await world.until(lambda: len(first.supervisor) == 0, "the first process no longer drives it")
    assert region.releases[before:] == [], "slot a belongs to srv_2 by now"


# --- costly posts -----------------------------------------------------------------------------------------------------


async def test_match_with_overlong_lines_goes_on_at_once_also_after_a_restart(world: World) -> None:
    line = b"01/19/2026 - 19:02:08.000 - Game Over: competitive " + b"a" * 65_000 + b"\n"
    process = await world.live_match("first")
    began_s = time.thread_time()
    assert await process.ingest.store_log(tokens_of(await world.row()).log, (), line * 2) is Receipt.STORED
    await world.replace(process, "second")
    assert (await world.outcome()).result is not None
    assert time.thread_time() - began_s < 30, "reading the lines took minutes once"
