"""Steps of the runner: entries that are late, deadlines, and the release of a server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import cast

import msgspec

from matchpod.adapters.vault import KeyFileVault
from matchpod.core.effects import CancelReason
from matchpod.core.model import SeriesFormat
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database, FleetError, GameServer, ServerOrder, Statement, Value
from matchpod.service.end_match import end_match
from matchpod.service.ingest.posts import Ingest, RawHeaders, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.pulse import Pulse
from matchpod.storage import outbox, raw_log, servers
from matchpod.storage.servers import HANDOVER_MS, LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import PLAYERS, SETTINGS, Process, World, open_world
from tests.contract.simulated_region import SimulatedRegion
from tests.contract.test_runner_start import reject_log_posts
from tests.vaults import tokens_of

harness = databases.mostly_sqlite_harness

STAMP = "11/15/2026 - 09:00:00.000"
STEAM_ID_BASE = 76561197960265728


async def test_phase_of_the_match_is_stored_for_lists(db: Database) -> None:
    async with open_world(db) as world:
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


class _LateIngest:
    """Stores what a server sends, some of it late."""

    late_s = 0.3
    """How much later: longer than a server needs for its last log post, shorter than a match waits for reports."""

    def __init__(self, process: Process) -> None:
        self._ingest = process.ingest
        self.match_file = process.ingest.match_file
        process.region.add_ingest(process.base, cast(Ingest, self))

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        return await self._ingest.store_log(token, headers, body)

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        return await self._ingest.store_report(token, body)

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        return await self._ingest.store_shots(token, body)


class _LateReports(_LateIngest):
    """Plugin reports are stored shortly after the log."""

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        await asyncio.sleep(self.late_s)
        return await super().store_report(token, body)


class _LateShots(_LateIngest):
    """Counts of shots are stored shortly after the log; with `is_last_lost`, the last one is not stored at all."""

    is_last_lost = False

    async def store_shots(self, token: str | None, body: bytes) -> Receipt:
        await asyncio.sleep(self.late_s)
        is_lost = self.is_last_lost and json.loads(body).get("final", False)
        return Receipt.STORED if is_lost else await super().store_shots(token, body)


class _DyingIngest(_LateIngest):
    """The server dies before the end of its match is stored, which happens once its loss was noticed.

    The plugin's reports of that end are not stored.
    """

    def __init__(self, process: Process, noticed: asyncio.Event) -> None:
        super().__init__(process)
        self._region = process.region
        self._noticed = noticed
        self.is_stored = asyncio.Event()

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        is_end = b"Game Over" in body
        if is_end:
            self._region.running["srv_1"].is_over = True
            await self._noticed.wait()
        receipt = await super().store_log(token, headers, body)
        if is_end:
            self.is_stored.set()
        return receipt

    async def store_report(self, token: str | None, body: bytes) -> Receipt:
        is_end = b"series_end" in body or b"map_result" in body
        return Receipt.STORED if is_end else await super().store_report(token, body)


async def test_last_log_post_counts_even_if_the_server_dies_before_it_is_stored(db: Database) -> None:
    async with open_world(db) as world:
        _DyingIngest(world.start(), world.region.gone_seen)
        await world.create()
        outcome = await world.outcome()
        assert (outcome.kind, outcome.reason) == ("match_over", None)


async def test_last_log_post_counts_even_if_it_is_stored_while_the_loss_is_recorded(db: Database) -> None:
    async with open_world(db) as world:
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


async def test_plugin_report_of_the_last_round_counts_even_if_it_arrives_after_the_log(db: Database) -> None:
    async with open_world(db) as world:
        _LateReports(world.start())
        await world.create()
        result = await world.result()
        (played,) = result["maps"]
        rounds = played["team1Score"] + played["team2Score"]
        assert sum(player["mvps"] for player in result["overall"]) == rounds


async def test_nothing_is_awaited_after_the_last_reports(db: Database) -> None:
    maps = ("de_nuke", "de_inferno", "de_vertigo")
    async with open_world(db) as world:
        _LateShots(world.start(intervals=Intervals(last_report_s=3600.0)))
        await world.create(game=msgspec.structs.replace(SETTINGS, series_format=SeriesFormat.BO3, maps=maps))
        result = await world.result()
        assert len(result["maps"]) > 1
        for players in (result["overall"], *(one["players"] for one in result["maps"])):
            assert all(player["extraStats"]["shotsFired"] >= 0 for player in players)


async def test_wait_for_the_last_count_of_shots_is_bounded(db: Database) -> None:
    async with open_world(db) as world:
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


async def until_applied(world: World) -> None:
    """Wait until all entries are applied."""
    live = await world.until_driven()

    async def is_applied() -> bool:
        return live.seq == await raw_log.newest_seq(world.db, "srv_1") > 0

    await world.until(is_applied, "all entries are applied", within_s=60.0)


async def test_post_received_before_a_deadline_counts_even_if_it_is_stored_after_it(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        process.db.is_shared = False  # so that its lease lasts
        await world.create(scenario="no_show")
        token = tokens_of(await world.until_phase(ServerPhase.RUNNING)).log
        world.region.is_paused = True
        await world.until_driven()
        gate, is_writing = asyncio.Event(), asyncio.Event()

        async def write_slowly(statements: Sequence[Statement]) -> None:
            if "INSERT INTO raw_log_heads" in statements[0].sql:
                is_writing.set()
                await gate.wait()

        process.db.before_write = write_slowly
        post = asyncio.ensure_future(process.ingest.store_log(token, (), connected(PLAYERS)))
        await is_writing.wait()
        world.clock.ahead_ms += 160_000
        gate.set()
        assert await post is Receipt.STORED
        await until_connected(world)


async def test_time_of_a_server_whose_log_does_not_arrive_is_recorded(db: Database) -> None:
    async with open_world(db, speed=1.0) as world:
        process = world.start(intervals=Intervals(renew_s=0.1))
        await world.create(scenario="no_show")
        live = await world.until_driven()
        reject_log_posts(world, process)

        async def is_observed() -> bool:
            world.clock.ahead_ms += 500
            stored = await raw_log.read_after(db, "srv_1", 0, limit=100)
            return [entry.kind for entry in stored[-2:]] == [EntryKind.OBSERVED, EntryKind.OBSERVED]

        await world.until(is_observed, "entries are appended for the clock")
        assert live.fold.reader.skipped_ms == 0


async def test_post_right_after_a_stall_does_not_fire_overdue_deadlines(db: Database) -> None:
    async with open_world(db, speed=20) as world:
        process = world.start()
        process.db.is_shared = False  # so that only the log entry wakes the runner
        await world.create(scenario="no_show")
        token = tokens_of(await world.until_phase(ServerPhase.RUNNING)).log
        world.region.is_paused = True
        await until_applied(world)
        world.clock.ahead_ms += 20_000  # the join time is fifteen seconds
        assert await process.ingest.store_log(token, (), connected(PLAYERS)) is Receipt.STORED
        await until_connected(world)


class Stopwatch:
    """A monotonic clock that stands still, unless a test sets it forward."""

    ahead_s = 0.0

    def __call__(self) -> float:
        return self.ahead_s


async def test_deadline_waits_for_posts_after_the_process_stood_still_across_it(db: Database) -> None:
    """However little time has passed since the deadline: posts that arrived before it may not have been read."""
    async with open_world(db, speed=20) as world:
        stopwatch = Stopwatch()
        process = world.start(pulse=Pulse(stopwatch), intervals=Intervals(late_ms=600_000))
        await world.create(scenario="no_show")
        live = await world.until_driven()
        token = tokens_of(await world.row()).log
        world.region.is_paused = True
        await until_applied(world)
        due_ms = live.fold.due_ms()
        assert due_ms is not None
        stopwatch.ahead_s += 5
        world.clock.ahead_ms += due_ms - world.clock.now_ms() + 1
        live.woken.set()
        await world.until(lambda: live.fold.deadlines_wait_until_ms > due_ms, "the deadline waits")
        assert await process.ingest.store_log(token, (), connected(PLAYERS)) is Receipt.STORED
        await until_connected(world)
        assert not await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)


async def test_deadline_waits_for_posts_if_the_process_stood_still_while_it_stored_earlier_ones(db: Database) -> None:
    async with open_world(db, speed=20) as world:
        stopwatch = Stopwatch()
        process = world.start(pulse=Pulse(stopwatch), intervals=Intervals(late_ms=600_000))
        await world.create(scenario="no_show")
        live = await world.until_driven()
        token = tokens_of(await world.row()).log
        world.region.is_paused = True
        await until_applied(world)
        due_ms = live.fold.due_ms()
        assert due_ms is not None
        may_write, is_writing = asyncio.Event(), asyncio.Event()

        async def write_slowly(statements: Sequence[Statement]) -> None:
            if "INSERT INTO raw_log_heads" in statements[0].sql:
                is_writing.set()
                await may_write.wait()

        process.db.before_write = write_slowly
        earlier = asyncio.ensure_future(process.ingest.store_log(token, (), f"{STAMP} - a line\n".encode()))
        await is_writing.wait()
        world.clock.ahead_ms += due_ms - world.clock.now_ms() + 1
        live.woken.set()
        # Not that `woken` is clear again: with PostgreSQL a late announcement may set it meanwhile.
        await world.until(lambda: live.idle is None, "the deadline was noticed, and waits for the post")
        stopwatch.ahead_s += 5
        may_write.set()
        assert await earlier is Receipt.STORED
        await world.until(lambda: live.fold.deadlines_wait_until_ms > due_ms, "the deadline waits")
        assert await process.ingest.store_log(token, (), connected(PLAYERS)) is Receipt.STORED
        await until_connected(world)
        assert not await raw_log.has_kind(db, "srv_1", EntryKind.DEADLINE, after_seq=0)


@databases.on_both
async def test_deadline_is_not_written_by_a_process_that_has_lost_the_match(db: Database) -> None:
    async with open_world(db, speed=20.0) as world:
        frozen = world.start("frozen", intervals=Intervals(late_ms=600_000, renew_s=600, watch_s=600, beat_s=600))
        await world.create(scenario="no_show")
        live = await world.until_driven()
        world.region.is_paused = True
        due_ms = live.fold.due_ms()
        assert due_ms is not None
        row = await world.row()
        await db.write([servers.change(row.id, row.fence, lease_owner="another"), _take_over(row.id)])
        world.clock.ahead_ms += due_ms - world.clock.now_ms() + 1
        live.woken.set()
        await world.until(lambda: frozen.live.get("srv_1") is None, "the process has stopped")
        kinds = {entry.kind for entry in await raw_log.read_after(db, "srv_1", 0, limit=1000)}
        assert not kinds & {EntryKind.DEADLINE, EntryKind.RESUMED, EntryKind.OBSERVED}


@databases.on_both
async def test_deadline_is_not_written_by_a_process_whose_lease_has_ended_although_no_other_has_the_match(
    db: Database,
) -> None:
    """The fence is still the same, so the database would accept the entry."""
    async with open_world(db, speed=20.0) as world:
        frozen = world.start("frozen", intervals=Intervals(late_ms=600_000, renew_s=600, watch_s=600, beat_s=600))
        await world.create(scenario="no_show")
        live = await world.until_driven()
        world.region.is_paused = True
        await until_applied(world)
        frozen.supervisor._is_draining = True  # so that it does not acquire the match again
        due_ms, fence = live.fold.due_ms(), (await world.row()).fence
        assert due_ms is not None
        assert due_ms < world.clock.now_ms() + LEASE_MS
        world.clock.ahead_ms += LEASE_MS + 1
        live.woken.set()
        await world.until(lambda: frozen.live.get("srv_1") is None, "the process has stopped")
        assert (await world.row()).fence == fence
        kinds = {entry.kind for entry in await raw_log.read_after(db, "srv_1", 0, limit=1000)}
        assert not kinds & {EntryKind.DEADLINE, EntryKind.RESUMED, EntryKind.OBSERVED}
        assert await outbox.outcome_of(db, "srv_1") is None


def _take_over(server_id: str) -> Statement:
    """What another process does that acquires the match."""
    return Statement("UPDATE servers SET fence = fence + 1 WHERE id = :id", {"id": server_id})


@databases.on_both
async def test_match_is_loaded_again_if_the_database_lost_its_last_entries(db: Database) -> None:
    """After a failover to a standby that lacked them: what is stored then under their numbers counts."""
    async with open_world(db) as world:
        world.start(intervals=Intervals(watch_s=0.1))
        await world.create()
        await world.until_live()
        world.region.is_paused = True
        live = await world.until_driven()
        await world.until(lambda: not live.is_behind and live.idle is not None, "all is applied")
        await world.until(lambda: live.idle is not None and not live.fold.has_timeline_items, "all is recorded")
        kept = await raw_log.newest_seq(db, "srv_1") - 3
        of_entries: dict[str, Value] = {"kept": kept}
        await db.write(
            [
                Statement("DELETE FROM raw_log WHERE seq > :kept", of_entries),
                Statement("UPDATE raw_log_heads SET seq = :kept", of_entries),
                Statement("DELETE FROM snapshots"),  # a slow machine has stored one before
                Statement("DELETE FROM map_events"),
            ]
        )
        world.region.is_paused = False
        outcome = await world.outcome()  # and the stored timeline equals that of a replay of the stored log
    assert outcome.kind == "match_over"


async def test_deadlines_of_a_process_that_is_always_late_fire_eventually(db: Database) -> None:
    async with open_world(db, speed=600) as world:
        process = world.start(intervals=Intervals(late_ms=200, renew_s=0.1))
        await world.create(scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING)
        world.region.is_paused = True

        async def read_slowly(sql: str) -> None:
            if "FROM raw_log " in sql:
                world.clock.ahead_ms += 300

        async def is_canceled() -> bool:
            world.clock.ahead_ms += 1_000
            return await outbox.outcome_of(db, "srv_1") is not None

        process.db.before_read = read_slowly
        await world.until(is_canceled, "the match is canceled", within_s=120)
        assert await raw_log.has_kind(db, "srv_1", EntryKind.RESUMED, after_seq=0), "the deadline was postponed"
        assert (await world.outcome()).reason == CancelReason.NO_PLAYERS_JOINED


async def test_entries_stored_during_configuration_are_applied_at_once(db: Database) -> None:
    async with open_world(db) as world:
        process = world.start()
        process.db.is_shared = False

        async def pause_game(statements: Sequence[Statement]) -> None:
            if any("running_at_ms = " in one.sql for one in statements):
                world.region.is_paused = True

        process.db.before_write = pause_game
        await world.create(scenario="no_show")
        await until_applied(world)


# --- release ----------------------------------------------------------------------------------------------------------


async def test_server_is_released_even_if_its_password_cannot_be_decrypted(db: Database) -> None:
    async with open_world(db) as world:
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


async def test_process_does_not_release_a_slot_that_another_process_released(db: Database) -> None:
    async with open_world(db, ("a",), kind=SlowRegion) as world:
        region = cast(SlowRegion, world.region)
        first = world.start("one")
        await world.create()
        await region.is_starting.wait()
        first.supervisor._is_draining = True  # so that the other process gets the match
        world.start("two")
        await world.cancel()
        world.clock.ahead_ms += HANDOVER_MS
        await world.outcome()
        await world.create("srv_2", scenario="no_show")
        await world.until_phase(ServerPhase.RUNNING, "srv_2")
        before = len(region.releases)
        region.go_on.set()
        await world.until(lambda: len(first.supervisor) == 0, "the first process no longer drives it")
        assert region.releases[before:] == [], "slot a belongs to srv_2 by now"


# --- costly posts -----------------------------------------------------------------------------------------------------


async def test_match_with_overlong_lines_goes_on_at_once_also_after_a_restart(db: Database) -> None:
    line = b"01/19/2026 - 19:02:08.000 - Game Over: competitive " + b"a" * 65_000 + b"\n"
    async with open_world(db) as world:
        process = world.start("first")
        await world.create()
        await world.until_live()
        began_s = time.thread_time()
        assert await process.ingest.store_log(tokens_of(await world.row()).log, (), line * 2) is Receipt.STORED
        await world.replace(process, "second")
        assert (await world.outcome()).result is not None
        assert time.thread_time() - began_s < 30, "reading the lines took minutes once"
