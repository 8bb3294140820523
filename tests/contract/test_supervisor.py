"""Matches are driven from their creation to their release by whoever holds them, and end once whatever happens.

Servers are simulated in this process and as fast as it can be; the waits of the service itself are real.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import msgspec
import pytest

from matchpod.core.effects import CancelReason
from matchpod.core.match import ROSTER_INCOMPLETE
from matchpod.core.model import DmSubMode, GameSettings, MatchType, SeriesFormat
from matchpod.core.presence import NOT_LISTED
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.timers import Timers
from matchpod.ports import Database, DatabaseError, FleetError, Row, Statement
from matchpod.service import supervisor
from matchpod.service.folding import HEARING_MS
from matchpod.service.regions import Region, Regions
from matchpod.service.runner.follow import SNAPSHOT_MS
from matchpod.service.runner.watch import LOST_MS
from matchpod.service.supervisor import CRASHES, CRASHES_FORGOTTEN_MS, Supervisor
from matchpod.storage import outbox, servers, slots, snapshots
from matchpod.storage.servers import LEASE_MS, RENEW_MS
from matchpod.storage.snapshots import Snapshot
from tests.contract import databases
from tests.contract.driven_matches import (
    FORGOTTEN,
    PENDING_MS,
    PLAYERS,
    SETTINGS,
    SPEED,
    Process,
    ShiftedClock,
    told,
    undisturbed,
    world,
)
from tests.contract.same_result import assert_same_match
from tests.contract.simulated_region import SimulatedRegion

home = databases.sqlite_home


FAST = 40.0
JOIN_MS = round(Timers().at_speed(FAST).join_s * 1000)
"""Players of a fast region have seven and a half seconds to come."""

# --- from creation to release -----------------------------------------------------------------------------------------


def test_a_match_is_driven_from_its_creation_to_its_release(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.phase(ServerPhase.RUNNING)
            row = await around.row()
            assert (row.status, row.ip, row.port) == (ServerStatus.RUNNING, "203.0.113.7", 27015)
            assert row.allocated_at_ms is not None
            assert row.running_at_ms is not None
            (order,) = around.region.orders
            assert (order.map_name, order.players, order.rcon_password) == ("de_nuke", PLAYERS, "secret of srv_1")
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_over", None)
            assert outcome.result is not None
            assert json.loads(outcome.callback_body)["result"] == json.loads(outcome.result)
            row = await around.row()
            assert (row.status, row.rcon_password, row.lease_owner) == (ServerStatus.STOPPED, None, None)
            assert process.concluded == 1
            assert process.live.get("srv_1") is None
            callbacks = await outbox.claim_callbacks(db, owner="test", now_ms=around.clock.now_ms(), limit=5)
            assert [one.server_id for one in callbacks] == ["srv_1"]

    home.run(scenario)


def test_a_match_that_is_taken_away_twice_at_once_is_let_go_without_a_word(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        said: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(str(context["message"])))
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.live()
            (drive,) = process.supervisor._drives.values()
            await around.cancel()  # so that giving it back is refused
            while not drive.task.done():
                drive.stop()
                await asyncio.sleep(0)
            await around.outcome()
        gc.collect()
        await asyncio.sleep(0)
        assert said == []

    home.run(scenario)


def test_a_match_waits_while_its_region_is_full(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, ("a",)) as around:
            around.start()
            around.region.is_still = True
            await around.create("srv_1")

            async def is_taken() -> bool:
                return bool(await slots.taken(db))

            await around.until(is_taken, "the place is taken")
            await around.create("srv_2")
            await around.phase(ServerPhase.PENDING, "srv_2")
            assert (await around.row("srv_2")).was_pending
            around.region.is_still = False
            assert (await around.outcome("srv_1")).kind == "match_over"
            assert (await around.outcome("srv_2")).kind == "match_over"
            assert [order.slot for order in around.region.orders] == ["a", "a"]

    home.run(scenario)


def test_a_match_that_finds_no_place_in_time_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, ()) as around:
            around.start()
            await around.create()
            await around.phase(ServerPhase.PENDING)
            around.clock.ahead_ms += PENDING_MS
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_canceled", CancelReason.NO_CAPACITY)
            assert (await around.row()).status is ServerStatus.FAILED

    home.run(scenario)


def test_a_server_that_does_not_come_up_is_replaced(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError("no"), FleetError("no")]
            around.start()
            await around.create()
            assert (await around.outcome()).kind == "match_over"
            assert len({order.slot for order in around.region.orders}) == 3, "each try at another place"
            assert (await around.row()).tries == 2

    home.run(scenario)


def test_a_match_whose_servers_never_come_up_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.failing = [FleetError(f"no {number}") for number in range(9)]
            around.start()
            await around.create()
            assert (await around.outcome()).reason == CancelReason.SERVER_FAILED
            row = await around.row()
            assert (row.status, row.tries, row.error) == (ServerStatus.FAILED, 3, "no 2")

    home.run(scenario)


def test_a_match_of_a_region_that_is_gone_has_failed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            await around.create("srv_1", region="away")
            await around.create("srv_2", region="away", phase=ServerPhase.RUNNING, slot="a")
            around.start()
            await around.phase(ServerPhase.RELEASED, "srv_1")  # it has no server
            await around.phase(ServerPhase.ENDING, "srv_2")
            reasons = [await outbox.outcome_of(db, name) for name in ("srv_1", "srv_2")]
            assert [one.reason for one in reasons if one] == [CancelReason.SERVER_FAILED, CancelReason.SERVER_LOST]

    home.run(scenario)


# --- what is done on the way ------------------------------------------------------------------------------------------


def test_a_stranger_is_sent_away(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create(played="stranger")
            await around.phase(ServerPhase.RUNNING)
            server = around.region.running["srv_1"]
            outcome = await around.outcome()
            assert outcome.kind == "match_over"
            assert any(command.startswith("kickid") and NOT_LISTED in command for command in server.said)
            players = json.loads(outcome.callback_body)["result"]["overall"]
            assert {player["steamId"] for player in players} == set(PLAYERS)

    home.run(scenario)


def test_a_series_is_played_map_after_map(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        maps = ("de_nuke", "de_inferno", "de_vertigo")
        game = msgspec.structs.replace(SETTINGS, maps=maps, series_format=SeriesFormat.BO3)
        async with world(db) as around:
            around.start()
            await around.create(game=game)
            await around.phase(ServerPhase.RUNNING)
            server = around.region.running["srv_1"]
            outcome = await around.outcome()
            result = json.loads(outcome.callback_body)["result"]
            assert result["format"] == "bo3"
            assert [one["mapName"] for one in result["maps"]] == list(maps[: len(result["maps"])])
            assert max(result["team1"]["seriesScore"], result["team2"]["seriesScore"]) == 2
            set_again = [command for command in server.said if command.startswith("mp_maxrounds")]
            assert len(set_again) >= len(result["maps"]), "a map load overwrites our settings"

    home.run(scenario)


def test_a_deathmatch_is_played(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        game = GameSettings(
            match_type=MatchType.DEATHMATCH,
            maps=("de_nuke",),
            players=PLAYERS,
            dm_sub_mode=DmSubMode.FFA,
            dm_round_minutes=2,
        )
        async with world(db) as around:
            around.start()
            await around.create(game=game)
            result = json.loads((await around.outcome()).callback_body)["result"]
            assert result["gameMode"] == "deathmatch"
            assert {player["steamId"] for player in result["players"]} == set(PLAYERS)

    home.run(scenario)


@pytest.mark.parametrize("sub_mode", DmSubMode)
def test_a_deathmatch_has_its_length_although_its_server_was_slow_to_be_set_up(
    home: databases.Home, sub_mode: DmSubMode
) -> None:
    """While it is set up, a whole game of the mode's own ten minutes is played on the server."""
    game = GameSettings(
        match_type=MatchType.DEATHMATCH, maps=("de_nuke",), players=PLAYERS, dm_sub_mode=sub_mode, dm_round_minutes=2
    )

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.command_ms, around.region.is_still = 24_000, True
            around.start()
            await around.create(game=game)
            await around.phase(ServerPhase.RUNNING)
            around.region.running["srv_1"].command_ms, around.region.is_still = 0, False
            result = json.loads((await around.outcome()).callback_body)["result"]
            assert abs(result["duration"] - 120) <= 2
            assert {player["steamId"] for player in result["players"]} == set(PLAYERS)

    home.run(scenario)


def test_a_match_counts_from_its_first_round_although_its_plugin_starts_it_before_the_set_up_is_answered(
    home: databases.Home,
) -> None:
    """All players are there when the plugin gets the match, and it starts while our last commands are under way."""

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.command_ms, around.region.is_still = 150_000, True
            around.start()
            await around.create()
            await around.phase(ServerPhase.RUNNING)
            around.region.running["srv_1"].command_ms, around.region.is_still = 0, False
            result = json.loads((await around.outcome()).callback_body)["result"]
            assert {player["steamId"] for player in result["overall"]} == set(PLAYERS)
            (played,) = result["maps"]
            rounds = played["team1Score"] + played["team2Score"]
            assert {player["roundsPlayed"] for player in result["overall"]} == {rounds}

    home.run(scenario)


# --- ends that nobody wanted ------------------------------------------------------------------------------------------


def test_a_server_that_dies_is_noticed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create()
            await around.live()
            around.region.running["srv_1"].exit(is_crash=True)
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_canceled", CancelReason.SERVER_LOST)
            assert (await around.row()).status is ServerStatus.FAILED

    home.run(scenario)


def test_a_server_that_hangs_is_noticed(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create()
            await around.live()
            around.region.running["srv_1"].hang()
            await asyncio.sleep(1)
            assert (await around.row()).phase is ServerPhase.RUNNING
            around.clock.ahead_ms += LOST_MS
            assert (await around.outcome()).reason == CancelReason.SERVER_LOST

    home.run(scenario)


def test_a_match_whose_players_do_not_come_is_canceled(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, speed=FAST) as around:
            around.start()
            await around.create(played="no_show")
            outcome = await around.outcome()
            assert (outcome.kind, outcome.reason) == ("match_canceled", CancelReason.NO_PLAYERS_JOINED)
            row = await around.row()
            assert row.status is ServerStatus.STOPPED
            assert JOIN_MS <= outcome.at_ms - row.created_at_ms < JOIN_MS + HEARING_MS

    home.run(scenario)


def test_players_have_all_of_their_time_when_their_server_came_late(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db, speed=FAST) as around:
            around.start()
            await around.create(played="no_show", created_at_ms=around.clock.now_ms() - JOIN_MS + 1_000)
            outcome = await around.outcome()
            assert outcome.reason == CancelReason.NO_PLAYERS_JOINED
            allocated_ms = (await around.row()).allocated_at_ms
            assert allocated_ms is not None
            assert outcome.at_ms - allocated_ms >= JOIN_MS

    home.run(scenario)


def test_a_match_without_all_of_its_players_is_canceled_and_they_are_named(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.start()
            await around.create(played="incomplete_roster")
            await around.phase(ServerPhase.RUNNING)
            server = around.region.running["srv_1"]

            async def is_somebody_there() -> bool:
                match = around.processes[0].live.get("srv_1")
                return match is not None and bool(match.fold.reader.match.presence.connected)

            await around.until(is_somebody_there, "somebody has come")
            await asyncio.sleep(1)
            # So late that the claim has run out, too: it is taken again, and the server is listened to first.
            around.clock.ahead_ms += round(Timers().at_speed(SPEED).join_s * 1000)
            await asyncio.sleep(1)
            around.clock.ahead_ms += HEARING_MS
            body = json.loads((await around.outcome()).callback_body)
            assert body["reason"] == CancelReason.INCOMPLETE_ROSTER
            assert body["missingPlayers"]
            assert {*body["missingPlayers"], *body["connectedPlayers"]} == set(PLAYERS)
            assert any(command.startswith("kickid") and ROSTER_INCOMPLETE in command for command in server.said)

    home.run(scenario)


def test_a_match_that_its_caller_cancels_ends_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create()
            await around.live()
            await around.cancel()
            process.supervisor.notify("srv_1")
            server = around.region.running["srv_1"]

            async def is_gone() -> bool:
                return (await around.row()).phase is ServerPhase.RELEASED

            await around.until(is_gone, "its server is gone", within_s=4.0)
            assert (await around.outcome()).reason == CancelReason.CANCELED_BY_USER
            assert process.concluded == 0, "nobody ends it a second time"
            assert sum(command.startswith("kickid") for command in server.said) >= len(PLAYERS)

    home.run(scenario)


def test_a_match_that_is_canceled_through_another_process_is_left_by_its_holder_first(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RENEW_S", 2.0)

    async def scenario(db: Database) -> None:
        async with world(db) as around:
            holder = around.start("holder")
            await around.create()
            await around.live()
            other = around.start("other")
            await around.cancel()
            other.supervisor.notify("srv_1")
            row = await around.row()
            assert row.next_at_ms > around.clock.now_ms() + RENEW_MS
            assert holder.live.get("srv_1") is not None, "it has not noticed yet"

            async def is_left() -> bool:
                return holder.live.get("srv_1") is None

            await around.until(is_left, "the holder has left", within_s=6.0)
            assert (await around.outcome()).reason == CancelReason.CANCELED_BY_USER
            assert around.clock.now_ms() < row.next_at_ms, "nobody waits longer than the holder needs"
            assert (holder.concluded, other.concluded) == (0, 0)

    home.run(scenario)


def test_a_server_that_cannot_be_released_is_released_later(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.stuck = [FleetError("not now")]
            around.start()
            await around.create()
            await around.phase(ServerPhase.ENDING)
            assert (await around.outcome()).kind == "match_over"
            assert around.region.releases == ["srv_1"]

    home.run(scenario)


def test_an_unexpected_error_does_not_end_a_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            around.region.deaf = [RuntimeError("a mistake of ours")]
            process = around.start()
            await around.create()
            assert (await around.outcome()).kind == "match_over"
            assert len(around.region.orders) == 2, "the same server was found again"
            assert process.concluded == 1

    home.run(scenario)


def test_failures_that_are_far_apart_do_not_end_a_match(tmp_path: Path) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            counted = [process.supervisor._count_crash("srv_1") for _ in range(CRASHES - 1)]
            around.clock.ahead_ms += CRASHES_FORGOTTEN_MS + 1
            counted.append(process.supervisor._count_crash("srv_1"))
            assert counted == [*range(1, CRASHES), 1]

    databases.Home(tmp_path / "matchpod.sqlite").run(scenario)


def test_a_claim_that_cannot_be_given_back_does_not_stop_the_others(
    home: databases.Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await around.create(played="no_show")
            await around.phase(ServerPhase.RUNNING)
            write = process.db.write

            async def refuse(statements: Sequence[Statement]) -> list[list[Row]]:
                if "lease_owner = :lease_owner" in statements[0].sql:
                    raise DatabaseError("a limit of the database")
                return await write(statements)

            monkeypatch.setattr(process.db, "write", refuse)
            await process.supervisor.drain()
            assert len(process.supervisor) == 0
            assert (await around.row()).lease_owner == "one", "it runs out"

    home.run(scenario)


def test_servers_and_places_without_a_match_are_swept(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            await around.create("srv_old", phase=ServerPhase.RELEASED)
            await slots.reserve(db, "eu", "srv_old", ["a"])
            await slots.reserve(db, "eu", "srv_unknown", ["b"])
            await around.region.allocate(FORGOTTEN)
            around.start()

            async def is_swept() -> bool:
                return not around.region.running and not await slots.taken(db)

            await around.until(is_swept, "all is swept")
            assert around.region.releases == ["srv_unknown"]

    home.run(scenario)


class _Silent(SimulatedRegion):
    """A fleet that does not say which servers it runs."""

    async def servers(self) -> Sequence[str]:
        raise FleetError("not now")


def test_a_region_that_cannot_be_swept_does_not_keep_the_others_from_it(
    home: databases.Home, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            process = around.start()
            await process.end()
            silent = Region(code="away", name="Away", location="there", fleet=_Silent(start_ms=0))
            regions = Regions([silent, *process.around.regions.all()], db)
            await slots.reserve(db, "eu", "srv_unknown", ["b"])
            await around.region.allocate(FORGOTTEN)
            sweeping = Supervisor(msgspec.structs.replace(process.around, regions=regions), owner="sweeping")
            task = asyncio.create_task(sweeping.run())

            async def is_swept() -> bool:
                return not around.region.running and not await slots.taken(db)

            await around.until(is_swept, "all is swept")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert around.region.releases == ["srv_unknown"]
            assert process.around.measures.crashes.value("sweep") == 0
            assert [vars(one)["region"] for one in caplog.records if one.message == "a region was not swept"] == [
                "away"
            ]

    home.run(scenario)


# --- other processes --------------------------------------------------------------------------------------------------


def test_a_match_of_a_process_that_died_goes_on_in_another(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            dead = around.start("dead")
            await around.create(seed=5)
            await around.live()
            await dead.die()
            holder = await around.row()
            assert (holder.phase, holder.lease_owner) == (ServerPhase.RUNNING, "dead")
            heir = around.start("heir")
            await asyncio.sleep(1)
            assert (await around.row()).lease_owner == "dead", "its claim has not run out"
            around.clock.ahead_ms += LEASE_MS
            assert_same_match(told(await around.outcome()), expected)
            assert (dead.concluded, heir.concluded) == (0, 1)
            assert (await around.row()).fence > holder.fence

    home.run(scenario)


def test_a_match_goes_on_from_its_snapshot(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            dead = around.start("dead")
            await around.create(seed=5)
            await around.live()
            around.clock.ahead_ms += SNAPSHOT_MS

            async def is_kept() -> bool:
                return await snapshots.load(db, "srv_1") is not None

            await around.until(is_kept, "a snapshot is kept")
            await dead.die()
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")
            assert_same_match(told(await around.outcome()), expected)

    home.run(scenario)


def test_a_snapshot_that_another_version_wrote_is_passed_over(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            dead = around.start("dead")
            await around.create(seed=5)
            await around.live()
            await dead.die()
            row = await around.row()
            await db.write(snapshots.save(row.id, row.fence, Snapshot(row.log_from_seq + 5, b"\x80")))
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")
            assert_same_match(told(await around.outcome()), expected)

    home.run(scenario)


def test_a_log_is_moved_to_the_process_that_drives_the_match(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        async with world(db) as around:
            dead = around.start("dead")
            await around.create()
            await around.live()
            await dead.die()
            around.region.is_still = True
            server = around.region.running["srv_1"]
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")

            async def is_moved() -> bool:
                listed = server.machine.execute("logaddress_list_http", "")
                return "http://heir.example/" in listed and "http://dead.example/" not in listed

            await around.until(is_moved, "the log is sent to the heir alone")
            around.region.is_still = False
            assert (await around.outcome()).kind == "match_over"

    home.run(scenario)


def test_a_match_that_was_starting_is_started_by_another_process(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 6)
        async with world(db) as around:
            around.region.is_still = True  # nothing is logged, so nothing is proven
            dead = around.start("dead")
            await around.create(seed=6)

            async def is_allocated() -> bool:
                return (await around.row()).allocated_at_ms is not None

            await around.until(is_allocated, "the server is allocated")
            await dead.die()
            around.region.is_still = False
            around.clock.ahead_ms += LEASE_MS
            around.start("heir")
            assert_same_match(told(await around.outcome()), expected)
            assert {order.server_id for order in around.region.orders} == {"srv_1"}

    home.run(scenario)


def test_a_process_that_stops_gives_its_matches_back_at_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            first = around.start("first")
            await around.create(seed=5)
            await around.live()
            await first.supervisor.drain()
            assert (await around.row()).lease_owner is None
            assert len(first.supervisor) == 0
            await first.die()
            second = around.start("second")
            assert_same_match(told(await around.outcome()), expected)
            assert second.concluded == 1

    home.run(scenario)


def test_a_process_whose_claim_ran_out_touches_nothing(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 5)
        async with world(db) as around:
            slow = around.start("slow")
            await around.create(seed=5)
            await around.live()
            # The other one believes that the claim is over; this one does not know yet.
            heir = Process(db, around.region, name="heir", clock=_ahead(LEASE_MS))
            around.processes.append(heir)
            assert_same_match(told(await around.outcome()), expected)
            assert slow.concluded + heir.concluded == 1

    home.run(scenario)


def _ahead(ms: int) -> ShiftedClock:
    clock = ShiftedClock()
    clock.ahead_ms = ms
    return clock


def test_processes_share_matches_and_each_ends_once(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        names = [f"srv_{number}" for number in range(6)]
        async with world(db, [f"slot {number}" for number in range(6)]) as around:
            processes = [around.start(name) for name in ("one", "two", "three")]
            for number, name in enumerate(names):
                await around.create(name, seed=number)
            outcomes = [await around.outcome(name) for name in names]
            assert [one.kind for one in outcomes] == ["match_over"] * 6
            assert sum(process.concluded for process in processes) == 6
            assert sorted(around.region.releases) == names

    home.run(scenario)


def test_a_match_survives_many_deaths(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 8)
        async with world(db) as around:
            process = around.start("process-0")
            await around.create(seed=8)
            await around.live()
            for number in range(1, 5):
                await process.die()
                around.clock.ahead_ms += LEASE_MS
                process = around.start(f"process-{number}")
                await asyncio.sleep(0.3)
            assert_same_match(told(await around.outcome()), expected)
            assert sum(one.concluded for one in around.processes) == 1

    home.run(scenario)


WRITES = (
    "INSERT INTO slots",
    "rcon_host = ",
    "log_from_seq = ",
    "running_at_ms = ",
    "INSERT INTO outcomes",
    "DELETE FROM slots",
    "rcon_password = ",
)
"""What is written on the way of a match, from its place to its release."""


def test_a_match_survives_a_death_before_and_after_everything_that_is_written(home: databases.Home) -> None:
    async def scenario(db: Database) -> None:
        expected = await undisturbed(db, 9)
        async with world(db) as around:
            await around.create(seed=9)
            for number, (words, is_written) in enumerate(product(WRITES, (False, True))):
                process = around.start(f"process-{number}")
                process.db.dies_before, process.db.dies_after = ("", words) if is_written else (words, "")

                async def is_dead(process: Process = process) -> bool:
                    return process.db.is_dead

                await around.until(is_dead, f"the process of {words!r} is dead")
                await process.die()
                await servers.drop_leases(db)
            around.start("survivor")
            outcome = await around.outcome()
            assert_same_match(told(outcome), expected)
            callbacks = await outbox.claim_callbacks(db, owner="test", now_ms=around.clock.now_ms(), limit=99)
            assert [one.server_id for one in callbacks].count("srv_1") == 1

    home.run(scenario)
