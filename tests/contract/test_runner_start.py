"""Steps of the runner: starting, configuring and restoring servers."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from cs2_protocol.console_commands import end_match_command
from matchpod.core.effects import CancelReason
from matchpod.core.errors import UnavailableError
from matchpod.core.failures import Failure
from matchpod.core.model import CvarSetting
from matchpod.core.server_status import ServerPhase, ServerStatus
from matchpod.cs2.cvars import read_custom_cvars
from matchpod.ports import Database, FleetError
from matchpod.service.access.audit import Audit
from matchpod.service.access.quotas import UNLIMITED
from matchpod.service.callbacks.private_callbacks import PrivateCallbacks
from matchpod.service.identity.principals import Principal, Role, Scope
from matchpod.service.ingest.posts import Ingest, RawHeaders, Receipt
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold_turns import FoldTurns
from matchpod.service.match_log.remote import RemoteMatches
from matchpod.service.matches import Matches
from matchpod.service.runner import start
from matchpod.service.runner.configure import configure, was_played
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.storage import raw_log
from matchpod.storage.servers import LEASE_MS
from tests.contract import databases
from tests.contract.driven_matches import SETTINGS, Process, World, open_world
from tests.contract.simulated_region import OPERATOR_PASSWORD, SimulatedServer
from tests.operations import free_disk
from tests.vaults import tokens_of

harness = databases.sqlite_harness

GRAVITY = CvarSetting("sv_gravity", "200")
OWNER = Principal(org_id="org_1", key_id="key_1", role=Role.OWNER, scopes=frozenset(Scope))
NO_PATIENCE = Intervals(first_log_s=2.0)
ON_DUST2 = msgspec.structs.replace(SETTINGS, maps=("de_dust2",))
"""A match on the map that a static server has loaded already."""


async def test_match_fails_if_no_server_starts_with_the_last_error_in_printable_characters(db: Database) -> None:
    async with open_world(db) as world:
        errors = [FleetError(f"last output of server {number}: \x00\ud800") for number in range(start.TRIES)]
        world.region.allocation_errors = [*errors]
        world.start()
        await world.create()
        assert (await world.outcome()).reason == CancelReason.SERVER_FAILED
        row = await world.row()
        assert (row.status, row.tries, row.error) == (ServerStatus.FAILED, 3, "last output of server 2:   ")
        assert (row.reason, row.failure) == (CancelReason.SERVER_FAILED, Failure.START_FAILED)


async def test_server_that_ends_during_configuration_is_replaced_at_once(db: Database) -> None:
    async with open_world(db) as world:
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


async def test_server_that_does_not_start_is_replaced_and_its_posts_are_rejected(db: Database) -> None:
    async with open_world(db) as world:
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


class _LogLosingIngest:
    """Rejects the log of a server and stores everything else."""

    def __init__(self, ingest: Ingest) -> None:
        self.store_report = ingest.store_report
        self.match_file = ingest.match_file

    async def store_log(self, token: str, headers: RawHeaders, body: bytes) -> Receipt:
        raise UnavailableError("The database is unavailable. Retry later.")


def reject_log_posts(world: World, process: Process) -> None:
    world.region.add_ingest(process.base, cast(Ingest, _LogLosingIngest(process.ingest)))


async def test_plugin_report_does_not_prove_that_log_posts_arrive(db: Database) -> None:
    async with open_world(db) as world:
        reject_log_posts(world, world.start(intervals=NO_PATIENCE))
        await world.create(scenario="no_show")
        row = await world.until_row(lambda row: row.tries > 0, "the attempt has failed")
        assert row.phase is ServerPhase.ALLOCATING
        assert "no log post arrived" in (row.error or "")


@pytest.mark.parametrize("does_load", [True, False])
async def test_workshop_map_is_accepted_only_after_the_map_has_changed(db: Database, does_load: bool) -> None:
    game = msgspec.structs.replace(SETTINGS, maps=("workshop/3070244462",), team1=None, team2=None)
    async with open_world(db) as world:
        world.region.use_static_server()
        world.region.ignored_commands = set() if does_load else {"host_workshop_map"}
        world.start(intervals=Intervals(min_try_s=6.0, try_s=6.0))
        await world.create(scenario="no_show", game=game, tries=start.TRIES - 1)
        if does_load:
            await world.until_phase(ServerPhase.RUNNING)
        else:
            assert (await world.outcome()).reason == CancelReason.SERVER_FAILED


async def test_settings_are_sent_once_the_same_map_was_loaded_again(db: Database) -> None:
    async with open_world(db) as world:
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


async def test_load_that_shows_in_no_answer_is_awaited_for_a_fixed_time(db: Database) -> None:
    async with open_world(db) as world:
        server = world.region.use_static_server()
        world.region.ignored_commands = {"status"}  # the only answer that tells two loads of a map apart
        world.start()
        await world.create(scenario="no_show", game=ON_DUST2)
        await world.until_phase(ServerPhase.RUNNING)
        assert server.commands[position(server, "changelevel") :].count("status") > 1


async def test_process_that_lost_its_lease_does_not_mark_the_match_as_configured(db: Database) -> None:
    async with open_world(db) as world:
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


async def test_match_that_is_over_is_not_configured_again(db: Database) -> None:
    """It was played while no process drove it; its plugin may still have it, with the settings of the next map."""
    async with open_world(db) as world:
        process = world.start()
        await world.create()
        await world.outcome()
        held = msgspec.structs.replace(await world.row(), lease_until_ms=world.clock.now_ms() + LEASE_MS)
        assert await was_played(Lease(held, db, world.clock), process.deps)


# --- static servers ---------------------------------------------------------------------------------------------------


def position(server: SimulatedServer, command: str) -> int:
    return next(number for number, sent in enumerate(server.commands) if sent.startswith(command))


async def test_static_server_is_reset_before_a_match_and_restored_after_it(db: Database) -> None:
    async with open_world(db) as world:
        server = world.region.use_static_server()
        before = server.machine.execute("sv_gravity", "")
        process = world.start()
        await world.create(scenario="no_show", cvars=[GRAVITY])
        await world.until_phase(ServerPhase.RUNNING)
        assert "200" in server.machine.execute("sv_gravity", "")
        for command in ("css_endmatch", "logaddress_delall_http"):
            assert position(server, command) < position(server, "logaddress_add_http")
        await world.cancel(notified=process)
        await world.outcome()
        assert server.machine.execute("sv_gravity", "") == before


async def test_static_server_is_restored_after_a_failed_attempt(db: Database) -> None:
    async with open_world(db) as world:
        server = world.region.use_static_server()
        before = server.machine.execute("sv_gravity", "")
        reject_log_posts(world, world.start(intervals=NO_PATIENCE))
        await world.create(scenario="no_show", cvars=[GRAVITY])
        row = await world.until_row(
            lambda row: row.slot is None and bool(world.region.releases), "the attempt has failed"
        )
        assert "sv_gravity 200" in server.commands
        assert server.machine.execute("sv_gravity", "") == before
        assert row.changed_cvars is None


def matches_of(process: Process) -> Matches:
    deps = process.deps
    return Matches(
        db=deps.db,
        clock=deps.clock,
        vault=deps.vault,
        regions=deps.regions,
        live=deps.live,
        remote=RemoteMatches(db=deps.db, regions=deps.regions, turns=FoldTurns()),
        read_cvars=read_custom_cvars,
        notify=process.supervisor.notify,
        audit=Audit(db=deps.db, clock=deps.clock),
        metrics=deps.metrics,
        quotas=UNLIMITED,
        private_callbacks=PrivateCallbacks(db=deps.db, by_settings=True, is_explicit=True),
        disk=free_disk(deps.clock),
        installation=deps.installation,
    )


async def test_rcon_password_of_a_static_server_is_not_shown(db: Database) -> None:
    async with open_world(db) as world:
        world.region.use_static_server()
        process = world.start()
        name = "srv_" + "0" * 26
        await world.create(name, scenario="no_show")
        row = await world.until_phase(ServerPhase.RUNNING, name)
        assert row.rcon_password is not None
        assert process.deps.vault.open(row.rcon_password) == OPERATOR_PASSWORD
        view = await matches_of(process).get(OWNER, name)
        assert (view.status, view.ip, view.rcon_password) == ("running", "203.0.113.7", None)
