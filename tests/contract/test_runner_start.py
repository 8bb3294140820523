"""Steps of the runner: starting, configuring and restoring servers."""

from __future__ import annotations

import msgspec
import pytest

from cs2_protocol.console_commands import end_match_command
from matchpod.core.effects import CancelReason
from matchpod.core.errors import UnavailableError
from matchpod.core.failures import Failure
from matchpod.core.model import CvarSetting
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.ports import Database, FleetError
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.ingest.posts import RawHeaders, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.runner import start
from matchpod.service.runner.configure import configure, was_played
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.storage import outbox, raw_log
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.simulated_region import OPERATOR_PASSWORD, SimulatedServer
from tests.contract.world import SETTINGS, Between, World
from tests.vaults import tokens_of

harness = databases.sqlite_harness

GRAVITY = CvarSetting("sv_gravity", "200")
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
NO_PATIENCE = Intervals(first_log_s=2.0)
ON_DUST2 = msgspec.structs.replace(SETTINGS, maps=("de_dust2",))
"""A match on the map that a static server has loaded already."""


async def test_match_fails_if_no_server_starts_with_the_last_error_in_printable_characters(world: World) -> None:
    errors = [FleetError(f"last output of server {number}: \x00\ud800") for number in range(start.TRIES)]
    world.region.allocation_errors = [*errors]
    world.start()
    await world.create()
    assert (await world.outcome()).reason == CancelReason.SERVER_FAILED
    row = await world.row()
    assert (row.status, row.tries, row.error) == (ServerStatus.FAILED, 3, "last output of server 2:   ")
    assert (row.reason, row.failure) == (CancelReason.SERVER_FAILED, Failure.START_FAILED)


async def test_server_that_ends_during_configuration_is_replaced_at_once(world: World) -> None:
    world.region.is_paused = True
    world.start()
    await world.create()
    await world.until(
        lambda: any(server.commands for server in world.region.running.values()), "it is being configured"
    )
    ended_ms = world.clock.now_ms()
    world.region.running["srv_1"].exit(is_crash=True)
    world.region.is_paused = False
    errors: set[str | None] = set()

    async def is_replaced() -> bool:
        errors.add((await world.row()).error)  # reset once the next server is running
        return len(world.region.orders) == 2

    await world.until(is_replaced, "there is another server", within_s=12.0)
    # Which of the two is detected first depends on milliseconds.
    assert errors & {"the server process ended during configuration", "no answer"}
    allocated_ms = (await world.until_phase(ServerPhase.RUNNING)).allocated_at_ms
    assert allocated_ms is not None
    assert allocated_ms > ended_ms, "the time to join counts from the second server"


async def test_server_that_does_not_start_is_replaced_and_its_posts_are_rejected(world: World) -> None:
    world.region.allocation_errors = [FleetError("it does not answer"), FleetError("nor does it")]
    await world.create(scenario="no_show")
    before = tokens_of(await world.row())  # those of the first attempt; the next one gets new tokens
    ingest = world.start().ingest
    row = await world.until_phase(ServerPhase.RUNNING)
    assert row.tries == 2
    assert len({order.slot for order in world.region.orders}) == 3, "each attempt uses another slot"
    after = tokens_of(row)
    assert after.log != before.log
    assert after.report != before.report
    assert await ingest.store_log(before.log, (), b"anything\n") is Receipt.UNKNOWN_SENDER
    assert await ingest.store_report(before.report, b"{}") is Receipt.UNKNOWN_SENDER


class RejectedLogs(Between):
    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        raise UnavailableError("The database is unavailable. Retry later.")


@pytest.mark.parametrize("does_load", [True, False])
async def test_workshop_map_is_accepted_only_after_the_map_has_changed(world: World, does_load: bool) -> None:
    game = msgspec.structs.replace(SETTINGS, maps=("workshop/3070244462",), team1=None, team2=None)
    world.region.use_static_server()
    world.region.ignored_commands = set() if does_load else {"host_workshop_map"}
    world.start(intervals=Intervals(min_try_s=6.0, try_s=6.0))
    await world.create(scenario="no_show", game=game, tries=start.TRIES - 1)
    if does_load:
        await world.until_phase(ServerPhase.RUNNING)
    else:
        assert (await world.outcome()).reason == CancelReason.SERVER_FAILED


async def test_settings_are_sent_once_the_same_map_was_loaded_again(world: World) -> None:
    server = world.region.use_static_server()
    server.is_paused = True  # its next frame does not come
    world.start(intervals=Intervals(load_begins_s=600.0))
    await world.create(scenario="no_show", game=ON_DUST2)

    def asked() -> int:
        return server.commands[position(server, "changelevel") :].count("status")

    await world.until(lambda: "changelevel de_dust2" in server.commands and asked() > 3, "the load is awaited")
    assert not any(command.startswith("logaddress_add_http") for command in server.commands)
    server.is_paused = False
    await world.until_phase(ServerPhase.RUNNING)


async def test_load_that_shows_in_no_answer_is_awaited_for_a_fixed_time(world: World) -> None:
    server = world.region.use_static_server()
    world.region.ignored_commands = {"status"}  # the only answer that tells two loads of a map apart
    await world.running_match(scenario="no_show", game=ON_DUST2)
    assert server.commands[position(server, "changelevel") :].count("status") > 1


async def test_process_that_lost_its_lease_does_not_mark_the_match_as_configured(db: Database, world: World) -> None:
    process = world.start()
    await world.create(scenario="no_show")
    row = await world.until_phase(ServerPhase.RUNNING)
    stale = Lease(msgspec.structs.replace(row, fence=row.fence - 1), db, world.clock)
    entries = await raw_log.newest_seq(db, row.id)
    world.region.is_paused = True
    world.region.running["srv_1"].machine.execute(end_match_command(), "")  # there is something to configure
    with pytest.raises(LeaseLostError):
        await configure(stale, process.deps, ConsoleLine(stale, process.deps), is_fresh=True)
    assert not await raw_log.has_kind(db, row.id, EntryKind.CONFIGURED, after_seq=entries)


async def test_match_that_is_over_is_not_configured_again(db: Database, world: World) -> None:
    """It was played while no process drove it; its plugin may still have it, with the settings of the next map."""
    process = world.start()
    await world.create()
    await world.outcome()
    held = msgspec.structs.replace(await world.row(), lease_until_ms=world.clock.now_ms() + LEASE_MS)
    assert await was_played(Lease(held, db, world.clock), process.deps)


# --- static servers ---------------------------------------------------------------------------------------------------


def position(server: SimulatedServer, command: str) -> int:
    return next(number for number, sent in enumerate(server.commands) if sent.startswith(command))


async def test_static_server_is_reset_before_a_match_and_restored_after_it(world: World) -> None:
    server = world.region.use_static_server()
    before = server.machine.execute("sv_gravity", "")
    process = await world.running_match(scenario="no_show", cvars=[GRAVITY])
    assert "200" in server.machine.execute("sv_gravity", "")
    for command in ("css_endmatch", "logaddress_delall_http"):
        assert position(server, command) < position(server, "logaddress_add_http")
    await world.cancel(notified=process)
    await world.outcome()
    assert server.machine.execute("sv_gravity", "") == before


async def test_attempt_without_log_posts_fails_although_reports_arrive_and_restores_its_static_server(
    world: World,
) -> None:
    server = world.region.use_static_server()
    before = server.machine.execute("sv_gravity", "")
    RejectedLogs(world.start(intervals=NO_PATIENCE))
    await world.create(scenario="no_show", cvars=[GRAVITY])
    row = await world.until_row(lambda row: row.slot is None and bool(world.region.releases), "the attempt has failed")
    assert (row.phase, "no log post arrived" in (row.error or "")) == (ServerPhase.ALLOCATING, True)
    assert "sv_gravity 200" in server.commands
    assert server.machine.execute("sv_gravity", "") == before
    assert row.changed_cvars is None


async def test_rcon_password_of_a_static_server_is_not_shown(world: World) -> None:
    world.region.use_static_server()
    process = world.start()
    name = "srv_" + "0" * 26
    await world.create(name, scenario="no_show")
    row = await world.until_phase(ServerPhase.RUNNING, name)
    assert row.rcon_password is not None
    assert process.deps.vault.open(row.rcon_password) == OPERATOR_PASSWORD
    view = await process.matches.get(OWNER, name)
    assert (view.status, view.ip, view.rcon_password) == ("running", "203.0.113.7", None)


# --- a server process that is not the one that we configured ---------------------------------------------------------


NOTICED_S = 120.0
"""Time limit to notice a loss: a few seconds, on a busy machine."""
QUICK = Intervals(probe_s=0.1, quiet_ms=1_000, log_gap_ms=0)


@pytest.mark.parametrize("is_down", [False, True], ids=["during a match", "while the service is down"])
async def test_server_that_is_restarted_is_lost(world: World, is_down: bool) -> None:
    world.region.use_static_server()
    process = await world.live_match("dead", intervals=QUICK, game=SETTINGS)
    if is_down:
        await process.kill()
    await world.region.restart_static_server()
    if is_down:
        world.clock.at_ms += LEASE_MS
        world.start("successor", intervals=QUICK)
    await world.until_row(lambda row: row.phase is ServerPhase.RELEASED, "the match has ended", within_s=NOTICED_S)
    outcome = await outbox.outcome_of(world.db, "srv_1")
    assert outcome is not None
    assert outcome.reason == CancelReason.SERVER_LOST
    assert world.region.releases == ["srv_1"]


async def test_match_goes_on_if_an_operator_ends_its_log(db: Database, world: World) -> None:
    server = world.region.use_static_server()
    await world.live_match(intervals=QUICK, game=SETTINGS)
    server.is_paused = True
    for command in ("logaddress_delall_http", "log off"):
        server.machine.execute(command, "")
    await world.until(
        lambda: "http" in server.machine.execute("logaddress_list_http", ""), "the log address is registered again"
    )
    server.is_paused = False
    before = await raw_log.newest_seq(db, "srv_1")
    assert (await world.outcome()).reason is None
    later = await raw_log.read_after(db, "srv_1", before, limit=1_000)
    assert any(entry.kind == EntryKind.LOG for entry in later), "its log is on again"
