"""Start the server of a match: reserve a slot, allocate a server, configure it, and verify it (a step of the runner).

A fleet without slots decides itself whether a server is free. There, the slot in the row is set to an empty text before
the allocation, so that the next process knows that a server may have been allocated if this process dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final
from zlib import crc32

from msgspec.structs import replace

from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.outcome import Outcome
from matchpod.core.server_status import ServerPhase, ServerStep
from matchpod.core.servers.server_loss import FleetReport
from matchpod.core.views.marks import Gotv, with_gotv
from matchpod.cs2.match_commands import game_mode_of
from matchpod.ports import (
    ConsoleError,
    ConsoleFaultError,
    FleetError,
    FleetUnavailableError,
    GameServer,
    ServerOrder,
    SlotInUseError,
)
from matchpod.service.ingest.posts import OPEN_FOR_MS
from matchpod.service.ingest.tokens import new_tokens, token_columns
from matchpod.service.match_log.fold import MAX_STEP_MS, settings_of
from matchpod.service.regions.regions import Region, rest_sentence
from matchpod.service.runner.configure import ConfigurationError, configure, tv_port, was_played
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease, readable_error
from matchpod.service.runner.machine_faults import causes_of, is_machine_fault
from matchpod.service.runner.release import end_leased_match, free_slot, leave_server
from matchpod.service.streams import organization_event_lines
from matchpod.storage import organization_events as stored_events
from matchpod.storage import raw_log, resting_slots, servers, slots, waiting_matches
from matchpod.storage.servers import ServerRow

LOOK_AGAIN_MS: Final = 30_000
"""Interval at which a pending match tries to reserve a slot. It is also woken when a slot becomes free."""

TRIES: Final = 3
"""Number of attempts to start a server before the match fails. Each attempt uses a new server, unless the previous
server could not be released."""

TRY_AGAIN_MS: Final = OPEN_FOR_MS + 500
"""Delay between two attempts. After this time, all processes reject the tokens of the previous server, so the number of
bytes that are stored for it is final (`log_from_bytes`)."""

LOOK_S: Final = 2.0
"""Interval in seconds at which the process of a server is checked while the server is configured."""

DETECTIONS_VARIABLE: Final = "MATCHPOD_ANTICHEAT_URL"
"""Environment variable of a server process. Its value is the URL to which an anti-cheat plugin reports, for this match
only."""

_log = logging.getLogger(__name__)


async def start(lease: Lease, deps: Deps) -> bool:
    """Start the server of a match. Return False if the match waits for a server, will be retried, or has failed."""
    try:
        return await _start(lease, deps)
    finally:
        deps.used_slots.end(lease.row.region, lease.row.id)


async def _start(lease: Lease, deps: Deps) -> bool:
    region = deps.regions.get(lease.row.region)
    if region is None:
        await _fail(lease, deps, "its region is no longer configured", failure=Failure.REGION_REMOVED)
        return False
    begun_ms = deps.clock.now_ms()
    while True:
        is_repeated = lease.row.slot is not None
        if not await _acquire_slot(lease, deps, region, begun_ms):
            return False
        is_over = is_repeated and await was_played(lease, deps)  # may take minutes, so not within the timeout
        try:
            async with asyncio.timeout(max(deps.intervals.min_try_s, deps.intervals.try_s / region.speed)):
                server = await _start_server(lease, deps, region, is_repeated=is_repeated, is_over=is_over)
            break
        except SlotInUseError as exc:
            await _leave_slot(lease, deps, region, str(exc))
        except (FleetError, ConsoleError, ConfigurationError, TimeoutError) as exc:
            deps.used_slots.end(region.code, lease.row.id)
            if is_machine_fault(exc) or isinstance(exc, FleetUnavailableError):
                await _wait_for_machine(lease, deps, region, str(exc))
            else:
                await _retry(lease, deps, region, exc)
            return False
    if server is None:
        if is_repeated:
            await _abandon_server(lease, deps, region, error="the server of an earlier attempt is gone")
            await lease.release(deps.clock.now_ms())
        else:
            await lease.change(slot=None)
            await _wait_for_slot(lease, deps, region)
        return False
    # Not within the timeout, because a write that times out may still be committed.
    await _set_running(lease, deps, server)
    row = lease.row
    deps.spans.running(row)
    deps.metrics.bring_up_s.observe(((row.running_at_ms or 0) - row.created_at_ms) / 1000, region.code)
    _log.info("server running", extra={"server_id": row.id, "region": row.region, "port": row.port})
    return True


async def _set_running(lease: Lease, deps: Deps, server: GameServer) -> None:
    now_ms = deps.clock.now_ms()
    event = organization_event_lines.server_running(lease.row, ip=server.ip, port=server.port, at_ms=now_ms)
    events = stored_events.append(lease.row.org_id, [event], at_ms=now_ms)
    await lease.step(ServerStep.PROVEN, *events, ip=server.ip, port=server.port, running_at_ms=now_ms, error=None)
    deps.streams.organizations.wake()


async def _acquire_slot(lease: Lease, deps: Deps, region: Region, begun_ms: int) -> bool:
    """Reserve a slot, but none that `UsedSlots` skips at the time `begun_ms`. False if the match has to wait."""
    row = lease.row
    slot = await _reserve(lease, deps, region, begun_ms)
    if slot is not None:
        if row.phase is ServerPhase.PENDING:
            await lease.step(ServerStep.PLACE_FOUND, slot=slot)
            _log.info("free slot reserved", extra={"server_id": row.id, "slot": slot})
        elif lease.row.slot != slot:
            await lease.change(slot=slot)
        return True
    await _wait_for_slot(lease, deps, region)
    return False


async def _wait_for_slot(lease: Lease, deps: Deps, region: Region) -> None:
    """Let the match wait for a slot, or end the match if it has waited too long."""
    row, now_ms, fault = lease.row, deps.clock.now_ms(), region.fleet.fault
    until_ms = _pending_until_ms(row, now_ms, _pending_ms(deps, region))
    why = fault or await _why_not_free(deps, region, now_ms)
    error = row.error if why is None else readable_error(why)
    if now_ms >= until_ms:
        last = f"; last error: {error}" if error else ""
        await _fail(lease, deps, f"no server became free in time{last}")
        return
    next_at_ms = min(now_ms + LOOK_AGAIN_MS, until_ms)
    if row.phase is ServerPhase.ALLOCATING:
        step = ServerStep.REGION_FULL
        await lease.release(next_at_ms, step=step, was_pending=True, pending_until_ms=until_ms, error=error)
        what = "region full, match waits" if fault is None else "region unavailable, match waits"
        _log.info(what, extra={"server_id": row.id, "region": row.region, "error": error})
    else:
        await lease.release(next_at_ms, pending_until_ms=until_ms, error=error)


async def _why_not_free(deps: Deps, region: Region, now_ms: int) -> str | None:
    """Return why slots are not free although no match here uses them.

    The text has the reason for the first of these slots, and the number of further slots. Servers may be in use by
    other installations, or get no match after a console fault.
    """
    skipped, known = deps.used_slots.skipped(region.code, now_ms), region.fleet.slots or ()
    errors = [skipped[slot] for slot in known if slot in skipped]
    found = (await resting_slots.resting(deps.db)).get(region.code, ()) if known else ()
    errors += [rest_sentence(rest) for rest in found if rest.slot in known]
    others = f" (the same applies to {len(errors) - 1} more)" if len(errors) > 1 else ""
    return errors[0] + others if errors else None


def _pending_ms(deps: Deps, region: Region) -> int:
    return deps.pending_ms if region.pending_ms is None else region.pending_ms


def _pending_until_ms(row: ServerRow, now_ms: int, pending_ms: int) -> int:
    """Return until when the match may wait for a slot. An outage of the service counts as at most MAX_STEP_MS."""
    until_ms = row.created_at_ms + pending_ms if row.pending_until_ms is None else row.pending_until_ms
    unobserved_ms = max(0, now_ms - row.next_at_ms - MAX_STEP_MS)
    return min(until_ms + unobserved_ms, now_ms + pending_ms)  # limited, because the clock may have been set back


async def _reserve(lease: Lease, deps: Deps, region: Region, begun_ms: int) -> str | None:
    row, all_slots = lease.row, region.fleet.slots
    if region.fleet.fault is not None:
        return None  # the match keeps its server, if any, and is woken when the fleet is available again
    if not await _may_start(lease, deps, region):
        return None
    if row.slot is not None:
        return row.slot
    if all_slots is None:
        return "" if await _is_turn_to_ask(lease, deps, region) else None
    # Different matches begin with different slots. After a failed attempt, a match begins with the next slot.
    first = (crc32(row.id.encode()) + row.tries) % len(all_slots) if all_slots else 0
    wanted, in_use = [*all_slots[first:], *all_slots[:first]], deps.used_slots.known(region.code)
    slot = await _reserve_slot(lease, deps, [slot for slot in wanted if slot not in in_use])
    if slot is None and in_use:
        slot = await _reserve_in_use(lease, deps, [slot for slot in wanted if slot in in_use], begun_ms)
    return slot


async def _reserve_slot(lease: Lease, deps: Deps, wanted: Sequence[str]) -> str | None:
    slot = await slots.reserve(deps.db, lease.row, wanted)
    if slot is not None:
        lease.row = replace(lease.row, slot=slot)
    return slot


async def _may_start(lease: Lease, deps: Deps, region: Region) -> bool:
    """True unless the machine is at fault. After each pause, one match that has a slot or is next in line retries."""
    if not deps.machine_faults.is_known(region.code):
        return True
    if lease.row.slot is None and not await _is_next(lease, deps, 1):
        return False
    return deps.machine_faults.may_start(region.code, deps.clock.now_ms())


async def _is_next(lease: Lease, deps: Deps, limit: int) -> bool:
    """True if the match is among the first `limit` matches in its region's queue for servers."""
    return lease.row.id in await waiting_matches.next_matches(deps.db, lease.row.region, limit)


async def _reserve_in_use(lease: Lease, deps: Deps, wanted: Sequence[str], begun_ms: int) -> str | None:
    """Reserve a slot whose server was in use elsewhere, to check it again. Only the first waiting match does this."""
    row, used = lease.row, deps.used_slots
    if not set(wanted) - used.skipped(row.region, begun_ms).keys():
        return None
    await used.begin(row.region, row.id)
    if not await _is_next(lease, deps, 1):
        return None
    skipped = used.skipped(row.region, begun_ms)  # again, because other matches may just have checked servers
    return await _reserve_slot(lease, deps, [slot for slot in wanted if slot not in skipped])


async def _is_turn_to_ask(lease: Lease, deps: Deps, region: Region) -> bool:
    """True if this match may request a server from a fleet without slots. Matches do this in the order of the queue.

    False if the fleet reports that no server is free: a request would fail, after two changes of the row.
    """
    if region.fleet.holds(lease.row.id):
        return True
    try:
        capacity = await region.fleet.capacity()
    except FleetError:
        capacity = None
    ready = 1 if capacity is None else capacity.ready
    return ready > 0 and await _is_next(lease, deps, ready)


async def _start_server(
    lease: Lease, deps: Deps, region: Region, *, is_repeated: bool, is_over: bool
) -> GameServer | None:
    """Allocate a server, and configure it unless the match `is_over`. None if no server is free."""
    server = await _allocate(lease, deps, region, is_repeated=is_repeated)
    if server is None or is_over:
        return server
    line = ConsoleLine(lease, deps)
    configuring = asyncio.create_task(configure(lease, deps, line, is_fresh=server.is_fresh))
    try:
        await _wait_while_alive(configuring, lease.row, region)
        await configuring
        await _note_gotv(lease, deps, line, server)
    finally:
        configuring.cancel()
        await asyncio.gather(configuring, return_exceptions=True)
        await line.close()
    return server


async def _note_gotv(lease: Lease, deps: Deps, line: ConsoleLine, server: GameServer) -> None:
    """Store the port and the delay with which a recorded match can be watched on GOTV."""
    settings = deps.settings_of(lease.row)
    if settings.record_demo:
        # In a cluster, people connect to a host port, which differs from the port in the server's process.
        port = await tv_port(line) if server.slot is None else server.tv_port
        gotv = Gotv(port=port, delay_seconds=settings.tv_delay_s)
        await lease.change(marks=with_gotv(lease.row.marks, gotv))


async def _wait_while_alive(configuring: asyncio.Task[None], row: ServerRow, region: Region) -> None:
    """Wait until the server is configured. Raise FleetError if its process ends, which the console does not show."""
    while not (await asyncio.wait({configuring}, timeout=LOOK_S))[0]:
        if await region.fleet.observe(row.id, row.slot or "") is FleetReport.GONE:
            raise FleetError("the server process ended during configuration")


async def _allocate(lease: Lease, deps: Deps, region: Region, *, is_repeated: bool) -> GameServer | None:
    row, order = lease.row, _order(lease, deps, is_repeated=is_repeated)
    lease.check()
    server = await region.fleet.allocate(order)
    deps.machine_faults.clear(region.code)
    deps.used_slots.clear(region.code, order.slot)
    deps.used_slots.end(region.code, row.id)
    if server is None:
        return None
    columns: dict[str, str | int | bytes | None] = {"rcon_host": server.rcon_host, "rcon_port": server.rcon_port}
    if server.slot is not None:
        columns["slot"] = server.slot
    if region.fleet.keeps_servers:
        if not await slots.claim_address(deps.db, row, server.ip, server.port):
            raise SlotInUseError.by_other_match(order.slot)
        columns |= {"ip": server.ip, "port": server.port}
    if server.rcon_password != order.rcon_password:
        columns |= {"rcon_password": deps.vault.seal(server.rcon_password), "is_password_ours": False}
    if row.allocated_at_ms is None:
        columns["allocated_at_ms"] = deps.clock.now_ms()
        _log.info(
            "server allocated", extra={"server_id": row.id, "region": row.region, "slot": server.slot or row.slot}
        )
    await lease.change(**columns)
    return server


def _order(lease: Lease, deps: Deps, *, is_repeated: bool) -> ServerOrder:
    row = lease.row
    settings = settings_of(row)
    game_type, game_mode = game_mode_of(settings.match_type)

    async def is_of_other_match(token: str) -> bool:
        found = await servers.by_log_token(deps.db, token)
        return found is not None and found.id != row.id and not found.has_ended

    return ServerOrder(
        server_id=row.id,
        slot=row.slot or "",
        is_repeated=is_repeated,
        map_name=settings.maps[0],
        game_type=game_type,
        game_mode=game_mode,
        rcon_password=deps.vault.open(row.rcon_password) if row.rcon_password else "",
        players=settings.roster,
        environment={DETECTIONS_VARIABLE: deps.urls_of(row).anticheat(deps.tokens_of(row).report)},
        is_of_other_match=is_of_other_match,
    )


async def _retry(lease: Lease, deps: Deps, region: Region, exc: Exception) -> None:
    row, error = lease.row, str(exc) or "timed out"
    tries = row.tries + 1
    deps.metrics.bring_up_failures.inc(region.code)
    _log.warning("server start failed", extra={"server_id": row.id, "slot": row.slot, "tries": tries, "error": error})
    if tries >= TRIES:
        await lease.change(tries=tries)
        await _fail(lease, deps, error, failure=_failure_of(exc))
        return
    await _abandon_server(
        lease, deps, region, is_faulty=_is_console_fault(exc), tries=tries, error=readable_error(error)
    )
    await lease.release(deps.clock.now_ms() + TRY_AGAIN_MS)


async def _wait_for_machine(lease: Lease, deps: Deps, region: Region, error: str) -> None:
    """Let the match wait as for a free slot. This does not count as an attempt: any server would have failed."""
    row, now_ms = lease.row, deps.clock.now_ms()
    deps.metrics.bring_up_failures.inc(region.code)
    until_ms = deps.machine_faults.record(region.code, now_ms)
    deadline_ms = _pending_until_ms(row, now_ms, _pending_ms(deps, region))
    about = {"server_id": row.id, "region": row.region, "pause_s": (until_ms - now_ms) / 1000, "error": error}
    _log.warning("servers cannot be started, match waits", extra=about)
    if now_ms >= deadline_ms:
        await _fail(lease, deps, error)
        return
    await _abandon_server(lease, deps, region, error=readable_error(error))
    next_at_ms = min(until_ms, deadline_ms)
    await lease.release(next_at_ms, step=ServerStep.REGION_FULL, was_pending=True, pending_until_ms=deadline_ms)


async def _abandon_server(
    lease: Lease, deps: Deps, region: Region, *, is_faulty: bool = False, **columns: str | int
) -> None:
    """Set columns, and release the server and its slot before the next attempt.

    If the release fails, the match keeps both.
    """
    row = lease.row
    await leave_server(lease, deps, None)
    # This fenced write must be right before the release: if the match was canceled, another match may have the slot.
    await lease.change(**columns)
    lease.check()
    try:
        await region.fleet.release(row.id, row.slot or "", lease)
    except FleetError as exc:
        # The match keeps the slot, so the next attempt gets the same server.
        _log.warning("server release failed", extra={"server_id": row.id, "slot": row.slot, "error": str(exc)})
        return
    await _free_slot(lease, deps, region, is_faulty=is_faulty)


async def _leave_slot(lease: Lease, deps: Deps, region: Region, error: str) -> None:
    """Free a slot whose server is used by another installation or match.

    The server is not changed, and this does not count as an attempt.
    """
    row = lease.row
    deps.machine_faults.clear(region.code)
    if deps.used_slots.record(region.code, row.slot or "", deps.clock.now_ms(), error):
        about = {"server_id": row.id, "region": row.region, "slot": row.slot, "error": error}
        _log.warning("server used by another installation or match", extra=about)
    await _free_slot(lease, deps, region)


async def _free_slot(lease: Lease, deps: Deps, region: Region, *, is_faulty: bool = False) -> None:
    """Free the slot of the match, and prepare the row for the next attempt."""
    # The new tokens identify a new attempt, so entries of the old server do not count, even if they arrive later. Data
    # about the old server is cleared, and the time for players to join begins with the next server.
    tokens = token_columns(new_tokens(deps.random_bytes, deps.installation), deps.vault)
    log_from_seq, log_from_bytes = await raw_log.head(deps.db, lease.row.id)
    log_from = {"log_from_seq": log_from_seq, "log_from_bytes": log_from_bytes}
    cleared = dict.fromkeys(("allocated_at_ms", "ip", "port", "rcon_host", "rcon_port", "changed_cvars"))
    await free_slot(lease, deps, region, is_faulty=is_faulty, **log_from, **tokens, **cleared)


async def _fail(lease: Lease, deps: Deps, error: str, *, failure: Failure | None = None) -> None:
    """Cancel the match, and store an error for operators. Without `failure`, the reason is that no server was free."""
    await lease.change(error=readable_error(error))
    reason = CancelReason.NO_CAPACITY if failure is None else CancelReason.SERVER_FAILED
    await end_leased_match(lease, deps, Outcome(at_ms=deps.clock.now_ms(), reason=reason, failure=failure))


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, ConfigurationError):
        return error.failure
    if _is_console_fault(error):
        return Failure.CONSOLE_FAULT
    return Failure.NOT_READY_IN_TIME if isinstance(error, TimeoutError) else Failure.START_FAILED


def _is_console_fault(error: Exception) -> bool:
    return any(isinstance(cause, ConsoleFaultError) for cause in causes_of(error))
