"""A process that resumes a match repeats a lost request to start, and never restarts a game that is live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from time import monotonic

import msgspec
import pytest

from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster
from matchpod.cs2.match_commands import start_commands
from matchpod.ports import Database, Statement
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import CATCH_UP_MS, Fold
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.replay import replay
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.run import SNAPSHOT_MS
from matchpod.storage import raw_log, snapshots, unfinished
from matchpod.storage.servers import LEASE_MS
from matchpod.storage.unfinished import RESUMING
from tests.contract import databases
from tests.contract.same_result import assert_same_match
from tests.contract.simulated_region import SimulatedServer
from tests.contract.test_remote_matches import lose_entries
from tests.contract.world import PLAYERS, SETTINGS, World, callback_fields, play_undisturbed

harness = databases.sqlite_harness

SLOW = 0.1
"""Speed of the region: without a resume, a start is requested again after ten minutes."""
DEATHMATCH = GameSettings(match_type=MatchType.DEATHMATCH, maps=("de_nuke",), players=PLAYERS, dm_round_minutes=30)


DUEL = msgspec.structs.replace(SETTINGS, team1=TeamRoster("Reds", PLAYERS[:1]), team2=TeamRoster("Blues", PLAYERS[2:3]))
"""Too few players for the plugin to start by itself."""
SERIES = msgspec.structs.replace(SETTINGS, maps=("de_nuke", "de_vertigo", "de_inferno"), series_format=SeriesFormat.BO3)
LOAD_MATCH = "matchzy_loadmatch_url"
STARTS = pytest.mark.parametrize(("game", "start"), [(DUEL, "css_start"), (DEATHMATCH, "mp_restartgame")])
"""The last command of a start, with and without the match plugin."""


class Handover:
    """A process that dies after it sent the start, while the game stands still, and its successor."""

    def __init__(self, world: World, start: str) -> None:
        self.world = world
        self._start = start

    async def kill_after_start(self, game: GameSettings, *, is_executed: bool) -> SimulatedServer:
        """Kill the first process; `is_executed` if the server executes the start, but its log arrives nowhere."""
        world = self.world
        world.region.ignored_commands |= {"css_start", "mp_restartgame", "mp_warmup_end"}
        dead = world.start("dead")
        await world.create(game=game)
        await world.until(self.is_requested, "the start is requested")
        world.region.is_paused = True
        await dead.kill()
        world.region.ignored_commands.clear()
        server = world.region.running["srv_1"]
        if is_executed:
            for command in start_commands(game):
                server.machine.execute(command, "")
            server.machine.agenda.run_until(server.machine.agenda.now_ms + 60_000)
        server.commands.clear()
        return server

    async def resume(self) -> Match:
        """Start the successor; return its match once the log is sent there."""
        self.world.clock.at_ms += LEASE_MS
        self.world.start("successor")
        live = await self.world.until_driven()
        server = self.world.region.running["srv_1"]
        await self.world.until(
            lambda: any(command.startswith("mp_logdetail") for command in server.commands), "settings are applied again"
        )
        return live.fold.match

    def is_requested(self) -> bool:
        server = self.world.region.running.get("srv_1")
        return server is not None and any(command.startswith(self._start) for command in server.commands)

    async def until_live(self, match: Match) -> None:
        self.world.region.is_paused = False
        await self.world.until(lambda: match.phase is MatchPhase.LIVE, "the match is live")

    async def pass_catch_up(self) -> None:
        """Let the time pass after which deadlines fire again."""
        over_ms = self.world.clock.now_ms() + CATCH_UP_MS
        await self.world.until(lambda: self.world.clock.now_ms() > over_ms, "the log has caught up", step_ms=500)


@STARTS
async def test_start_that_the_server_did_not_execute_is_requested_again(
    world: World, game: GameSettings, start: str
) -> None:
    world.speed = SLOW
    handover = Handover(world, start)
    await handover.kill_after_start(game, is_executed=False)
    match = await handover.resume()
    if game is DEATHMATCH:
        assert not handover.is_requested(), "the log may not have caught up"
        await handover.pass_catch_up()
    await world.until(handover.is_requested, "the start is requested again", within_s=60.0)
    await handover.until_live(match)


@STARTS
async def test_game_that_went_live_unnoticed_is_not_restarted(world: World, game: GameSettings, start: str) -> None:
    world.speed = SLOW
    handover = Handover(world, start)
    server = await handover.kill_after_start(game, is_executed=True)
    status = server.machine.execute("get5_status", "")
    match = await handover.resume()
    assert match.phase is MatchPhase.STARTING
    if game is DUEL:
        await world.until(handover.is_requested, "the start is requested again")
        assert server.machine.execute("get5_status", "") == status, "the plugin ignores it"
    await handover.until_live(match)
    await handover.pass_catch_up()
    assert game is DUEL or not handover.is_requested()


async def test_process_that_stops_saves_what_it_has_applied(db: Database, world: World) -> None:
    process = world.start()
    await world.create(scenario="no_show")
    live = await world.until_driven()
    await world.until(lambda: live.idle is not None, "all is applied")
    assert await snapshots.load(db, "srv_1") is None, "no round was played"
    world.region.is_paused = True
    await process.end()
    saved = await snapshots.load(db, "srv_1")
    assert saved is not None
    assert saved.seq == live.seq
    world.region.is_paused = False
    world.start("successor")
    resumed = await world.until_driven()
    assert resumed is not live
    await world.until(lambda: resumed.seq > saved.seq, "it goes on from there")


async def test_snapshot_is_saved_from_time_to_time(db: Database, world: World) -> None:
    await world.live_match()
    world.clock.at_ms += SNAPSHOT_MS

    async def is_saved() -> bool:
        return await snapshots.load(db, "srv_1") is not None

    await world.until(is_saved, "a snapshot is saved")


@pytest.mark.parametrize("stored", [0, 5], ids=["fewer", "more"])
async def test_process_that_stops_saves_nothing_that_the_database_has_lost(
    db: Database, world: World, stored: int
) -> None:
    """It stops right after a failover to a standby without the last entries, whose numbers may be used again."""
    process = await world.live_match(intervals=Intervals(watch_s=600.0))
    world.region.is_paused = True
    live = await world.until_driven()
    await world.until(lambda: not live.is_behind and live.idle is not None, "all is applied")
    await lose_entries(db, live.seq - 3, "snapshots")
    for _ in range(stored):
        observed = raw_log.append("srv_1", EntryKind.OBSERVED, received_ms=1, headers=b"{}", body=b"")
        await db.write(observed)
    await process.end()
    saved = await snapshots.load(db, "srv_1")
    if saved is not None:  # one of the match loaded again
        found = Fold.load(saved.state)
        expected = await replay(db, await world.row(), world.speed, turns=FoldTurns(), last_seq=saved.seq)
        assert (found.match, found.last_ms, found.heard_ms) == (expected.match, expected.last_ms, expected.heard_ms)
        assert saved.seq <= await raw_log.newest_seq(db, "srv_1")


async def test_servers_of_many_resumed_matches_are_not_asked_at_once(world: World) -> None:
    names = ("srv_1", "srv_2", "srv_3")
    dead = world.start("dead")
    for name in names:
        await world.create(name, scenario="no_show")
        await world.until_driven(name)
    world.region.is_paused = True
    await dead.kill()
    for server in world.region.running.values():
        server.commands.clear()
    world.clock.at_ms += LEASE_MS
    successor = world.start("successor", intervals=Intervals(put_off_s=600.0, max_put_off_s=600.0))
    successor.db.is_shared = False  # otherwise the log may have been sent to another process
    for name in names:
        await world.until_driven(name)
    asked = [server.commands for server in world.region.running.values()]
    await world.until(lambda: any(map(len, asked)), "one is asked")
    assert sum(map(bool, asked)) == 1, "the match that was resumed last"


async def test_match_that_was_played_before_its_server_was_ready_starts_anew(world: World) -> None:
    """Nobody stored its log, because its first process died; simulated players do not wait for `running`."""
    dead = world.start("dead")
    dead.db.crashes_before = "running_at_ms = "
    await world.create(game=SERIES)
    await world.until(dead.has_died, "the process died")
    world.region.is_paused = True
    await dead.kill()
    machine = world.region.running["srv_1"].machine
    while '"gamestate":"live","paused":false' not in (status := machine.execute("get5_status", "")) or (
        '"map_number":1,' not in status
    ):
        machine.agenda.run_until(machine.agenda.now_ms + 10_000)
    world.region.is_paused = False
    world.clock.at_ms += LEASE_MS
    world.start("successor", intervals=Intervals(first_log_s=2.0))
    outcome = await world.outcome()
    assert outcome.kind == "match_over"
    assert outcome.result is not None
    result = json.loads(outcome.result)
    assert [one["mapName"] for one in result["maps"]][:2] == ["de_nuke", "de_vertigo"]


async def test_start_that_waits_while_entries_of_another_match_are_tried_costs_no_attempt(
    db: Database, world: World
) -> None:
    try_s = 2.0
    dead = world.start("dead")
    await world.create("srv_2", scenario="no_show")
    await world.until_driven("srv_2")
    dead.db.crashes_before = "running_at_ms = "
    await world.create()
    await world.until(dead.has_died, "the process died")
    await dead.kill()
    await unfinished.begin(db, "srv_2", RESUMING, "dead")
    await db.write([Statement("UPDATE servers SET lease_until_ms = lease_until_ms * 2 WHERE id = 'srv_1'")])
    world.clock.at_ms += LEASE_MS
    is_trying = asyncio.Event()

    async def hold_trial(statements: Sequence[Statement]) -> None:
        if any("INSERT INTO unfinished_entries" in one.sql for one in statements):
            is_trying.set()
            await asyncio.Event().wait()

    successor = world.start("successor", intervals=Intervals(try_s=try_s, min_try_s=try_s))
    successor.db.before_write = hold_trial
    await is_trying.wait()
    await db.write([Statement("UPDATE servers SET lease_until_ms = NULL WHERE id = 'srv_1'")])
    await world.until(lambda: successor.deps.suspects.resuming_count == 2, "the other match waits")
    waiting_s = monotonic()
    await world.until(lambda: monotonic() > waiting_s + 1.5 * try_s, "it has waited for longer than an attempt")
    assert (await world.row()).tries == 0


@pytest.mark.parametrize(
    ("dies_before", "until", "successor"),
    [("running_at_ms = ", "second map", "one"), ("prepared", "second map", "two"), ("prepared", "end", "one")],
)
async def test_match_that_was_played_before_its_server_was_ready_counts_if_its_settings_were_set(
    db: Database, world: World, dies_before: str, until: str, successor: str
) -> None:
    """Its first process died during configuration; another one stored its log until the match was taken over."""
    expected = await play_undisturbed(db, 9, SERIES)
    dead = world.start("one")
    dead.db.crashes_before = dies_before
    await world.create(seed=9, game=SERIES)
    await world.until(dead.has_died, "the process died")
    await dead.kill()
    await world.start("one").end()  # at the same address: from now on, it only stores posts
    machine = world.region.running["srv_1"].machine

    def is_played() -> bool:
        status = machine.execute("get5_status", "")
        if until == "end":
            return '"gamestate":"none"' in status
        return '"gamestate":"live","paused":false' in status and '"map_number":1,' in status

    await world.until(is_played, f"the match is played until the {until}")
    log_from_seq = (await world.row()).log_from_seq
    world.clock.at_ms += LEASE_MS
    world.start(successor)
    assert_same_match(callback_fields(await world.outcome()), expected)
    assert (await world.row()).log_from_seq == log_from_seq, "no entry was ignored"


async def test_game_on_a_server_whose_plugin_never_got_the_match_does_not_count(world: World) -> None:
    """Its first process died before that; until the match was taken over, players came and played without the plugin."""
    world.region.ignored_commands = {LOAD_MATCH}
    dead = world.start("one")
    await world.create()

    def has_server() -> bool:
        server = world.region.running.get("srv_1")
        return server is not None and any(command.startswith(LOAD_MATCH) for command in server.commands)

    await world.until(has_server, "the match is passed to the plugin")
    world.region.running["srv_1"].machine.visitors.crowd.stays_after_map = True
    await dead.kill()
    world.start("one")  # at the same address

    async def find_game_over() -> list[int]:
        entries = await raw_log.read_after(world.db, "srv_1", 0, limit=100_000)
        return [entry.seq for entry in entries if b"Game Over" in entry.body]

    async def is_played() -> bool:
        return bool(await find_game_over())

    await world.until(is_played, "a game is played")
    world.region.ignored_commands = set()
    world.clock.at_ms += LEASE_MS
    outcome = await world.outcome()
    assert (outcome.kind, outcome.reason) == ("match_over", None)
    first, *others = await find_game_over()
    assert others, "the match was played after the game"
    assert (await world.row()).log_from_seq >= first, "nothing of the game counts"


async def test_post_that_was_stored_but_not_answered_before_a_kill_counts_once(db: Database, world: World) -> None:
    expected = await play_undisturbed(db, 5)
    world.distance_of = lambda _: 3_600.0
    dead = world.start("dead")
    await world.create()

    def is_held() -> bool:
        live = dead.live.get("srv_1")
        return live is not None and live.held_until is not None

    await world.until(is_held, "a post is stored, applied and not answered")
    await dead.kill()
    world.distance_of = lambda _: 0.0
    world.start("successor")
    world.clock.at_ms += LEASE_MS
    assert_same_match(callback_fields(await world.outcome()), expected)
