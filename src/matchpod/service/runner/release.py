"""End a match, and release its server, with retries until the fleet confirms the release (a step of the runner)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from cs2_protocol.console_answers import parse_log_listeners, parse_status
from cs2_protocol.console_commands import LOG_LISTENERS, STATUS, kick_command
from matchpod.core.effects import CancelReason
from matchpod.core.failures import Failure
from matchpod.core.match.match import ROSTER_INCOMPLETE
from matchpod.core.outcome import Outcome
from matchpod.core.servers.log_addresses import log_tokens_in
from matchpod.ports import (
    ConsoleError,
    ConsoleFaultError,
    DatabaseUnavailableError,
    FleetError,
    NothingChangedError,
    Statement,
)
from matchpod.service.end_match import MATCH_OVER, end_match, final_status
from matchpod.service.history.finalize import finalize, is_final
from matchpod.service.history.recorder import Recorder
from matchpod.service.identity.identifiers import server_name
from matchpod.service.match_log.fold_turns import EntryFailedError
from matchpod.service.regions.regions import Region
from matchpod.service.runner.configure import restore_cvars
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.demo_records import give_up, kept_until_ms, poll_ms
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.lease import Lease, LeaseLostError
from matchpod.storage import (
    compaction,
    history,
    map_events,
    outbox,
    raw_log,
    resting_slots,
    servers,
    slots,
    unfinished,
    waiting_matches,
)

FAREWELL_S: Final = 3.0
"""Timeout in seconds for kicking all players and restoring console variables. A server that does not answer is released
nevertheless."""

RELEASE_AGAIN_MS: Final = 2_000
MAX_RELEASE_AGAIN_MS: Final = 60_000
"""Maximum delay between two attempts to release a server. The delay begins with RELEASE_AGAIN_MS and doubles with each
failure. The number of attempts is not limited."""

MATCH_OVER_TEXT: Final = "The match is over"
MATCH_CANCELED_TEXT: Final = "The match was canceled"

_log = logging.getLogger(__name__)


async def end_leased_match(
    lease: Lease,
    deps: Deps,
    outcome: Outcome,
    *,
    result: bytes | None = None,
    recorder: Recorder | None = None,
    earlier: Sequence[Statement] = (),
    earlier_events: Sequence[bytes] = (),
) -> None:
    """End the match. Raise LeaseLostError if it has already ended, or if another process holds the lease.

    In the same transaction, but before the end, the statements in `earlier` are executed, and `earlier_events` are
    appended to the organization's events.
    """
    row, callback_id = lease.row, deps.new_callback_id()
    final = None if recorder is None else recorder.final()

    def build(events: Sequence[bytes]) -> list[Statement]:
        end = partial(end_match, row, outcome, result=result, fence=row.fence, callback_id=callback_id)
        return [*earlier, *end(final=final, earlier_events=[*events, *earlier_events])]

    await lease.finish(_end(lease, deps, outcome, build=build, recorder=recorder))


async def _end(
    lease: Lease,
    deps: Deps,
    outcome: Outcome,
    *,
    build: Callable[[Sequence[bytes]], list[Statement]],
    recorder: Recorder | None,
) -> None:
    row = lease.row
    if recorder is None:
        await lease.write(build(()))
    else:
        await recorder.end(build, outcome.at_ms)
    lease.lose()  # the end of the match has ended the lease
    label = outcome.reason or MATCH_OVER
    deps.metrics.matches_ended.inc(row.region, label)
    deps.on_match_ended()
    deps.streams.organizations.wake()
    _log.info("match ended", extra={"server_id": row.id, "outcome": label, "status": final_status(outcome).value})


async def release(lease: Lease, deps: Deps) -> None:
    """Release the server of an ended match. If the fleet does not confirm this, the match is due again later."""
    row = lease.row
    if row.slot is not None:
        region = deps.regions.get(row.region)
        if region is None:
            _log.error("server not released: its region is not configured", extra={"server_id": row.id})
            await _finalize_history(lease, deps)
            await lease.release(deps.clock.now_ms() + MAX_RELEASE_AGAIN_MS)
            return
        until_ms = await kept_until_ms(row, deps, region)
        if until_ms is not None:
            await _keep(lease, deps, region, until_ms)
            return
        deps.kept.discard(row.id)
        is_faulty = not await _send_farewell(lease, deps) or row.failure is Failure.CONSOLE_FAULT
        lease.check()
        try:
            await region.fleet.release(row.id, row.slot, lease)
        except FleetError as exc:
            await _finalize_history(lease, deps)
            await _release_later(lease, deps, str(exc))
            return
        await free_slot(lease, deps, region, is_faulty=is_faulty)
    else:
        await lease.write([servers.change(row.id, row.fence, slot=None), slots.free(row.id)])
    await _finalize_history(lease, deps)
    async with deps.packing:
        if await compaction.may_begin(deps.db, deps.clock.now_ms()):
            await raw_log.compress(deps.db, row.id)
        await map_events.compact(deps.db, row.id)
    await lease.finish(_mark_released(lease, deps))


async def _keep(lease: Lease, deps: Deps, region: Region, until_ms: int) -> None:
    """Keep a server for the upload of its demos. Kick its players and finalize the history now."""
    row, now_ms = lease.row, deps.clock.now_ms()
    if row.id not in deps.kept:
        deps.kept.add(row.id)
        _log.info("server kept for its demos", extra={"server_id": row.id, "region": row.region})
        await _send_farewell(lease, deps, is_kept=True)
    await _finalize_history(lease, deps)
    await lease.release(min(until_ms, now_ms + poll_ms(region)))


async def free_slot(
    lease: Lease, deps: Deps, region: Region, *, is_faulty: bool, **columns: str | int | bytes | None
) -> None:
    """Free the slot of a match, set columns of the match's row, and wake the next waiting match.

    A server that `is_faulty` (it had a console fault) and could be reused gets no matches for a while.
    """
    row, now_ms = lease.row, deps.clock.now_ms()
    rest = []
    if is_faulty and region.fleet.keeps_servers and row.slot is not None:
        rest.append(resting_slots.rest(row.region, row.slot, row.id, now_ms))
    wake = waiting_matches.wake(row.region, now_ms, limit=1)
    await lease.change(slots.free(row.id), *rest, wake, slot=None, **columns)
    if rest:
        about = {"server_id": row.id, "region": row.region, "slot": row.slot, "rest_s": resting_slots.REST_MS // 1000}
        _log.warning("server gets no matches after a console fault", extra=about)


async def _mark_released(lease: Lease, deps: Deps) -> None:
    row = lease.row
    demos = give_up(row, deps.clock.now_ms())
    await lease.write([servers.mark_released(row.id, row.fence), unfinished.forget(row.id), *demos])
    lease.lose()
    deps.spans.ended(row)
    _log.info("server released", extra={"server_id": row.id, "region": row.region})


async def _finalize_history(lease: Lease, deps: Deps) -> None:
    """Finalize the history of the match. Called after the release was attempted or postponed, to avoid delaying it."""
    row, region = lease.row, deps.regions.get(lease.row.region)
    speed = region.speed if region else 1.0
    try:
        if not await is_final(deps.db, row):
            async with deps.suspects.resuming(row, speed, from_start=True):
                await finalize(
                    deps.db,
                    row,
                    speed=speed,
                    server_name=server_name(region.name if region else row.region, row.id),
                    streams=deps.streams,
                    turns=deps.turns,
                    now_ms=deps.clock.now_ms(),
                )
    except NothingChangedError as exc:
        raise LeaseLostError(row.id) from exc
    except DatabaseUnavailableError:
        raise
    except Exception as exc:  # a log that cannot be read must not keep the row open; `recompute` can repair the history
        if isinstance(exc, EntryFailedError) and exc.costs_entry:
            raise  # the caller sets the entry aside
        deps.metrics.crashes.inc("history")
        _log.exception("history was not finalized", extra={"server_id": row.id})
        # Mark the stored history as final, without statistics, so that readers do not wait and this step is not
        # repeated.
        await lease.write([servers.check_fence(row.id, row.fence), history.mark_final(row.id)])
        for played in await history.maps_of(deps.db, row.id):
            deps.streams.finish(played.id)


async def _release_later(lease: Lease, deps: Deps, error: str) -> None:
    row = lease.row
    wait_ms = min(RELEASE_AGAIN_MS * 2 ** min(row.tries, 10), MAX_RELEASE_AGAIN_MS)
    _log.warning("server release failed", extra={"server_id": row.id, "slot": row.slot, "error": error})
    await lease.release(deps.clock.now_ms() + wait_ms, tries=row.tries + 1)


async def _send_farewell(lease: Lease, deps: Deps, *, is_kept: bool = False) -> bool:
    """Clean up the server; kick its players with a text unless it was lost or never ran. False on a console fault."""
    row = lease.row
    outcome = await outbox.outcome_of(deps.db, row.id)
    reason = outcome.reason if outcome else None
    if row.running_at_ms is None or reason == CancelReason.SERVER_LOST:
        text = None
    elif reason == CancelReason.INCOMPLETE_ROSTER:
        text = ROSTER_INCOMPLETE
    else:
        text = MATCH_CANCELED_TEXT if reason else MATCH_OVER_TEXT
    return await leave_server(lease, deps, text, is_kept=is_kept)


async def leave_server(lease: Lease, deps: Deps, farewell: str | None, *, is_kept: bool = False) -> bool:
    """Clean up a server before its release: kick its players with a text, and restore changed console variables.

    If the server `is_kept`, its players are kicked and nothing is restored. A server that another match already uses is
    left unchanged. Return False after a console fault.
    """
    row = lease.row
    if row.rcon_host is None or row.rcon_password is None or (farewell is None and row.changed_cvars is None):
        return True
    try:
        line = ConsoleLine(lease, deps)
    except ValueError as exc:
        # The vault key was replaced, so the password is lost. The server must be released nevertheless.
        _log.error("rcon password cannot be decrypted", extra={"server_id": row.id, "error": str(exc)})
        return True
    try:
        async with asyncio.timeout(FAREWELL_S):
            if await _has_other_match(lease, line):
                _log.warning("server not cleaned up: another match uses it", extra={"server_id": row.id})
                return True
            if farewell is not None:
                await _kick_all(line, farewell)
            if not is_kept:
                await restore_cvars(lease, line)
    except (ConsoleError, TimeoutError) as exc:
        _log.info("server not cleaned up", extra={"server_id": row.id, "error": str(exc)})
        return not isinstance(exc, ConsoleFaultError)
    finally:
        await line.close()
    return True


async def _has_other_match(lease: Lease, line: ConsoleLine) -> bool:
    """True if the server can be reused, and already sends its log to another match."""
    if lease.row.changed_cvars is None:
        return False
    tokens = await line.ask(LOG_LISTENERS, lambda answer: log_tokens_in(parse_log_listeners(answer)))
    return not all(map(lease.owns_log, tokens))


async def _kick_all(line: ConsoleLine, text: str) -> None:
    for player in await line.ask(STATUS, parse_status):
        if not player.is_bot:
            await line.run(kick_command(player.user_id, text))
