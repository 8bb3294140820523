"""Steps of the runner: when the server of a running match is asked, silent or lost, and when people are warned."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate, cycle, islice

import msgspec
import pytest
from msgspec.structs import replace

from cs2_protocol.console_commands import LOG_LISTENERS, STATUS_JSON
from matchpod.core.failures import Failure
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.core.servers.server_loss import NO_POSTS_MS, QUIET_MS, SILENCE_MS, FleetReport, LossLimits, Silence
from matchpod.core.views.attention import attention_of
from matchpod.core.views.progress import PublicPhase
from matchpod.ports import Database
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.reading.match_details import situation_of
from matchpod.service.regions.silence import SilentServers
from matchpod.service.runner import liveness
from matchpod.service.runner.effects import map_load_s
from matchpod.service.runner.intervals import Intervals
from matchpod.storage import raw_log
from tests.contract import databases
from tests.contract.single_steps import NO_PAUSES, FakeLine, SingleStep, open_step
from tests.contract.test_remote_matches import expected_fold
from tests.contract.world import PLAYERS, World
from tests.unit.service.match_log.test_fold import recorded

harness = databases.sqlite_harness

REAL_TIME = msgspec.structs.replace(NO_PAUSES, log_gap_ms=Intervals().log_gap_ms)

LOST_MS = QUIET_MS + SILENCE_MS
"""A server is asked after the first time, and lost when it has not answered for the second one."""
SILENT = f"no sign of life for {LOST_MS // 1_000} s"
GONE = "its fleet reports that it is gone"
NO_POSTS = "its log posts do not arrive"


def dead_line() -> FakeLine:
    return FakeLine(failures=1000)


def delay(step: SingleStep, ms: int) -> None:
    """Set the clock while the probe sleeps or asks."""
    asyncio.get_running_loop().call_later(0, step.pass_time, ms)


async def test_server_without_log_posts_gets_the_log_address_again_and_is_then_lost(db: Database) -> None:
    """Its players are not recorded: it may be a new process at the same address, without our players."""
    step = await open_step(db)
    began_ms = step.clock.at_ms
    step.each_probe(5_000)
    step.match.presence.mark_doubtful(began_ms)
    await step.probe_to_end()
    assert step.lost == [NO_POSTS]
    assert step.line.count("logaddress_del_http") == 1
    assert step.line.count("logaddress_add_http") > 1
    assert 0 <= step.clock.at_ms - began_ms - liveness.NO_LOG_MS - NO_POSTS_MS <= 10_000
    assert not await raw_log.has_kind(db, "srv_1", EntryKind.PRESENCE, after_seq=0)


async def test_quiet_server_is_asked_one_question_at_a_time(db: Database) -> None:
    """A real server logs each of them."""
    step = await open_step(db, answers=[FleetReport.ALIVE] * 5 + [FleetReport.GONE])
    url = step.deps.urls_of(step.lease.row).logs(step.deps.tokens_of(step.lease.row).log)
    step.line.listeners = f"{url}\n\thas pending request\n"
    step.each_probe(5_000)
    await step.probe_to_end()
    assert step.line.commands == [LOG_LISTENERS] * 5


async def test_server_is_lost_at_once_if_its_fleet_reports_that_it_is_gone(db: Database) -> None:
    answers = [FleetReport.ALIVE, FleetReport.UNKNOWN, FleetReport.GONE, FleetReport.ALIVE]
    step = await open_step(db, answers=answers)
    await step.probe_to_end()
    assert (step.lost, len(step.fleet.answers)) == ([GONE], 1)


@pytest.mark.parametrize("is_doubtful", [True, False], ids=["to list players", "as a sign of life"])
async def test_server_whose_console_lies_when_it_is_asked_fails(db: Database, is_doubtful: bool) -> None:
    step = await open_step(db, FakeLine(faulty="status_json" if is_doubtful else LOG_LISTENERS))
    probe = step.probe()
    if is_doubtful:
        step.match.presence.mark_doubtful(step.clock.at_ms)
        probe.log_received(step.clock.at_ms)
    else:
        step.each_probe(5_000)
    await step.probe_to_end(probe)
    assert (step.lost, step.failed) == ([], [Failure.CONSOLE_FAULT])


async def test_time_in_which_the_service_did_not_run_is_not_silence_of_the_server(db: Database) -> None:
    step = await open_step(db, dead_line())
    probes = 0

    def stall_or_pass_time() -> None:
        nonlocal probes
        probes += 1
        if probes <= 5:
            delay(step, 60_000)
        else:
            step.pass_time(1_000)

    step.fleet.on_probe = stall_or_pass_time
    await step.probe_to_end()
    assert (step.lost, probes) == ([SILENT], 5 + LOST_MS // 1_000)


@pytest.mark.parametrize("delay_ms", [60_000, -3_600_000])
async def test_a_delay_or_a_set_clock_is_not_taken_for_a_log_that_does_not_arrive(db: Database, delay_ms: int) -> None:
    step = await open_step(db, answers=[FleetReport.ALIVE] * 8 + [FleetReport.GONE])

    def stall() -> None:
        step.pass_time(1_000)
        if len(step.fleet.answers) > 1:
            delay(step, delay_ms)

    step.fleet.on_probe = stall
    await step.probe_to_end()
    assert step.lost == [GONE]
    assert LOG_LISTENERS in step.line.commands
    assert step.line.count("logaddress_del_http") == 0


async def test_server_that_hangs_after_the_clock_was_set_back_is_lost(db: Database) -> None:
    step = await open_step(db, dead_line())
    probes = 0

    def set_back_or_pass_time() -> None:
        nonlocal probes
        probes += 1
        step.pass_time(-3_600_000 if probes == 3 else 1_000)

    step.fleet.on_probe = set_back_or_pass_time
    await step.probe_to_end()
    assert (step.lost, probes) == ([SILENT], 1 + LOST_MS // 1_000)


async def test_server_that_posts_its_log_is_neither_asked_nor_looked_for(db: Database) -> None:
    step = await open_step(db, dead_line(), answers=[FleetReport.GONE])
    probe = step.probe()
    probe.log_received(step.clock.at_ms)
    probing = asyncio.create_task(step.probe_to_end(probe))
    for second in range(200):
        await asyncio.sleep(0)
        step.pass_time(1_000)
        if second % 3 == 0:
            probe.log_received(step.clock.at_ms)
    assert (step.lost, step.line.commands, len(step.fleet.answers)) == ([], [], 1)
    for _ in range(4):
        await asyncio.sleep(0)
        step.pass_time(1_000)
    await probing
    assert step.lost == [GONE]


@pytest.mark.parametrize(
    ("speed", "silence_ms", "asked_after_s"),
    [
        pytest.param(1.0, SILENCE_MS, 10, id="a real server"),
        pytest.param(1.0, 18_000, 6, id="a short time until a server is lost"),
        pytest.param(30.0, SILENCE_MS, 4, id="a fast game"),
    ],
)
async def test_quiet_server_is_asked_after_a_gap_of_its_log(
    db: Database, speed: float, silence_ms: int, asked_after_s: int
) -> None:
    step = await open_step(db)
    step.region = msgspec.structs.replace(step.region, speed=speed)
    step.deps = msgspec.structs.replace(step.deps, intervals=REAL_TIME)
    step.deps.regions.silent.limits = LossLimits(silence_ms)
    seconds = 0

    def pass_time() -> None:
        nonlocal seconds
        seconds += 1
        step.pass_time(1_000)
        if step.line.commands:
            step.fleet.answers.append(FleetReport.GONE)

    step.fleet.on_probe = pass_time
    await step.probe_to_end()
    assert seconds - 1 == asked_after_s, "one more probe to end"


@pytest.mark.parametrize("began_s", [20, 25, 29])
async def test_waiting_server_that_is_refused_for_less_than_its_time_is_not_lost(db: Database, began_s: int) -> None:
    """Whenever that begins: a server that waits for its players gives no sign of life between two questions."""
    step = await open_step(db, answers=[FleetReport.UNKNOWN] * 90 + [FleetReport.GONE])
    step.deps = msgspec.structs.replace(step.deps, intervals=REAL_TIME)
    seconds = 0

    def pass_time() -> None:
        nonlocal seconds
        seconds += 1
        step.pass_time(1_000)
        step.line.failures = 1 if began_s < seconds < began_s + SILENCE_MS // 1_000 else 0  # one question per probe

    step.fleet.on_probe = pass_time
    await step.probe_to_end()
    assert step.lost == [GONE]
    assert step.deps.regions.silent.count("eu") == 0


async def test_servers_that_fall_silent_together_are_given_more_time(db: Database) -> None:
    step = await open_step(db, dead_line())
    silent, began_ms = step.deps.regions.silent, step.clock.at_ms
    silent.report("another", Silence(region="eu", host="", since_ms=began_ms))
    notices = set[str | None]()

    def pass_time() -> None:
        step.pass_time(1_000)
        notices.add(silent.notice("eu"))
        if step.clock.at_ms - began_ms == 40_000:
            silent.forget("another")  # it is back; so may be ours in a moment

    step.fleet.on_probe = pass_time
    await step.probe_to_end()
    assert step.lost == ["no sign of life for 94 s, together with 1 other"]
    assert any("several fell silent together" in (notice or "") for notice in notices)
    assert silent.notice("eu") is None, "it is no longer probed"


async def test_server_that_died_is_lost_although_its_log_is_from_the_future(db: Database) -> None:
    """The clock was set back before the service was restarted; the stored log is applied again."""
    step = await open_step(db, dead_line())
    probe = step.probe()
    probe.log_received(step.clock.at_ms + 3_600_000)
    step.pass_time(QUIET_MS)
    step.each_probe(1_000)
    await step.probe_to_end(probe)
    assert step.lost == ["no sign of life for 35 s"], "asked after 5 s"


async def test_presence_is_recorded_after_a_resume(db: Database, world: World) -> None:
    dead = await world.live_match("dead")
    world.region.is_paused = True
    server = world.region.running["srv_1"]
    server.command_ms = 20  # it logs and posts the commands
    await world.replace(dead)

    def reports() -> list[str]:
        return [sent for sent in server.commands if sent.startswith("matchzy_remote_log_url")]

    async def is_recorded() -> bool:
        return bool(reports()) and await raw_log.has_kind(db, "srv_1", EntryKind.PRESENCE, after_seq=0)

    await world.until(is_recorded, "the presence is recorded, and its plugin has a new report URL")
    entries = await raw_log.read_after(db, "srv_1", 0, limit=10_000)
    (first, *_) = [entry for entry in entries if entry.kind == EntryKind.PRESENCE]
    assert all(player.encode() in first.body for player in PLAYERS)
    assert "http://successor.example/" in reports()[-1]


async def test_players_in_doubt_are_listed_once_and_again_after_a_map_could_load(db: Database) -> None:
    step = await open_step(db)
    load_s = round(map_load_s(step.region.speed))
    step.match.presence.mark_doubtful(step.clock.at_ms)
    probe = step.probe()
    probe.log_received(step.clock.at_ms)
    probing = asyncio.create_task(probe.run())
    await step.line_is_asked(STATUS_JSON, 1)
    for _ in range(load_s - 1):
        step.pass_time(1_000)
        probe.log_received(step.clock.at_ms)
        await asyncio.sleep(0.01)  # many probes
    assert step.line.count(STATUS_JSON) == 1
    step.pass_time(2_000)
    probe.log_received(step.clock.at_ms)
    await step.line_is_asked(STATUS_JSON, 2)
    probing.cancel()


# --- alarms ----------------------------------------------------------------------------------------------------------


MINUTES = 10
ALARM_S = range(10, 15)
"""After how many seconds without a sign of life people are warned (docs/server-states.md)."""
SHARED_S = 2
"""How much later other replicas know it."""
GAPS_S = (10, 1, 14, 2, 30, 1, 1, 19, 25)
"""Seconds between posts of a server in play, as in real logs."""


def nothing(_: int) -> bool:
    return False


class Walls:
    """What people see of a match on the replica that drives it, and on another one."""

    def __init__(self, step: SingleStep, *, is_live: bool) -> None:
        step.region = replace(step.region, speed=1.0)
        step.deps = replace(step.deps, intervals=REAL_TIME)
        if is_live:
            entries = recorded().entries
            step.fold = expected_fold(entries[: len(entries) // 2])
        self._step = step
        self._row = replace(step.lease.row, phase=ServerPhase.RUNNING, status=ServerStatus.RUNNING)
        self._silent = (step.deps.regions.silent, SilentServers())
        self._probe = step.probe()

    @property
    def phase(self) -> PublicPhase:
        return self._step.fold.progress().phase

    async def follow(self, seconds: int, posts: Callable[[int], bool]) -> tuple[list[int], list[int]]:
        """Let time pass; return at which seconds each wall showed the alarm. A server also logs what it is asked."""
        probing = asyncio.create_task(self._probe.run())
        shown: tuple[list[int], list[int]] = ([], [])
        asked = 0
        for second in range(1, seconds + 1):
            self._step.pass_time(1_000)
            if posts(second) or len(self._step.line.commands) > asked:
                self._post()
            asked = len(self._step.line.commands)
            for _ in range(20):  # more than a probe needs
                await asyncio.sleep(0)
            now_ms = self._step.clock.at_ms
            self._silent[1].set_remote(self._silent[0].shared(now_ms), now_ms)
            for seconds_shown, silent in zip(shown, self._silent, strict=True):
                if self._has_alarm(silent):
                    seconds_shown.append(second)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
        return shown

    def _post(self) -> None:
        self._step.fold.heard_ms = self._step.clock.at_ms
        self._probe.log_received(self._step.clock.at_ms)

    def _has_alarm(self, silent: SilentServers) -> bool:
        progress, now_ms = self._step.fold.progress(), self._step.clock.at_ms
        situation = situation_of(self._row, progress, now_ms, silent_ms=silent.since_ms("srv_1"))
        return any(reason.kind == "silence" for reason in attention_of(situation))


async def test_server_that_waits_for_players_raises_no_alarm(db: Database) -> None:
    step = await open_step(db)
    walls = Walls(step, is_live=False)
    assert walls.phase is PublicPhase.WAITING_FOR_PLAYERS
    assert await walls.follow(MINUTES * 60, nothing) == ([], [])
    assert LOG_LISTENERS in step.line.commands, "its log alone says nothing"
    assert step.lost == []


async def test_server_in_play_with_gaps_in_its_log_raises_no_alarm(db: Database) -> None:
    step = await open_step(db)
    walls = Walls(step, is_live=True)
    assert walls.phase is PublicPhase.LIVE
    times = set(islice(accumulate(cycle(GAPS_S)), MINUTES * 60))
    assert await walls.follow(MINUTES * 60, times.__contains__) == ([], [])


@pytest.mark.parametrize("is_live", [False, True])
async def test_silent_server_raises_the_alarm_on_all_replicas_in_time(db: Database, is_live: bool) -> None:
    step = await open_step(db, FakeLine(failures=1_000))
    own, other = await Walls(step, is_live=is_live).follow(29, nothing)
    assert own[0] in ALARM_S
    assert own[0] <= other[0] <= own[0] + SHARED_S
    assert own == list(range(own[0], 30)), "until it is heard again or lost"


async def test_server_that_loads_a_map_raises_the_alarm_only_if_that_takes_long(db: Database) -> None:
    step = await open_step(db, FakeLine(failures=1_000))
    walls = Walls(step, is_live=True)
    step.fold.match.presence.map_change_at_ms = step.fold.reader.match_ms(step.clock.at_ms)
    own, other = await walls.follow(60, nothing)
    assert own[0] in range(30, 34)
    assert own[0] <= other[0] <= own[0] + SHARED_S
    assert step.lost == []


async def test_alarm_ends_with_the_next_sign_of_life(db: Database) -> None:
    step = await open_step(db, FakeLine(failures=1_000))
    own, other = await Walls(step, is_live=True).follow(36, lambda second: second == 27)
    assert own == list(range(own[0], 27))
    assert other[-1] <= own[-1] + SHARED_S
    assert step.lost == []
