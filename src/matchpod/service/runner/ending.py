"""How does a match end, and its server with it? First the outcome, in one transaction; then the server, until gone."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from matchpod.core.effects import CancelReason
from matchpod.core.match import ROSTER_INCOMPLETE
from matchpod.cs2.console_answers import parse_status
from matchpod.cs2.console_commands import STATUS, kick_command
from matchpod.ports import ConsoleError, DatabaseAwayError, FleetError, NothingChangedError
from matchpod.service.conclusion import Ending
from matchpod.service.conclusion import conclude as conclusion
from matchpod.service.history.naming import server_name
from matchpod.service.history.recorder import Recorder
from matchpod.service.history.settling import settle
from matchpod.service.runner.claim import Claim, ClaimLostError
from matchpod.service.runner.configure import restore_cvars
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.surroundings import Surroundings
from matchpod.storage import history, map_events, outbox, raw_log, servers, slots

FAREWELL_S: Final = 3.0
"""For telling everybody why they have to go; a server that does not listen is released all the same."""

RELEASE_AGAIN_MS: Final = 2_000
MAX_RELEASE_AGAIN_MS: Final = 60_000
"""Between two tries to release a server: twice as long each time, up to a minute, for ever."""

MATCH_OVER_TEXT: Final = "The match is over"
MATCH_CANCELED_TEXT: Final = "The match was canceled"

_LOG = logging.getLogger(__name__)


async def conclude(claim: Claim, around: Surroundings, ending: Ending, recorder: Recorder | None = None) -> None:
    """Give the match its one outcome; ClaimLostError when it has one already, or is somebody else's."""
    row, now_ms = claim.row, around.clock.now_ms()
    statements = conclusion(
        row,
        ending,
        fence=row.fence,
        now_ms=now_ms,
        callback_id=around.new_callback_id(),
        final=recorder.final() if recorder else None,
    )
    await (recorder.end(statements, now_ms) if recorder else claim.write(statements))
    claim.lose()  # concluding gives the claim back
    outcome = ending.reason or "match_over"
    around.measures.matches_ended.inc(row.region, outcome)
    around.on_concluded()
    _LOG.info("match ended", extra={"server_id": row.id, "outcome": outcome, "status": ending.status.value})


async def end(claim: Claim, around: Surroundings) -> None:
    """Release the server of a match that has its outcome; repeated until the fleet confirms."""
    row = claim.row
    if row.slot is not None:
        region = around.regions.get(row.region)
        if region is None:
            _LOG.error("server cannot be released: its region is not configured", extra={"server_id": row.id})
            await _settle_history(claim, around)  # it has ended all the same
            await claim.give_back(around.clock.now_ms() + MAX_RELEASE_AGAIN_MS)
            return
        await _say_farewell(claim, around)
        claim.check()
        try:
            await region.fleet.release(row.id, row.slot)
        except FleetError as exc:
            await _settle_history(claim, around)
            await _release_later(claim, around, str(exc))
            return
        wake = servers.wake_waiting(row.region, around.clock.now_ms(), limit=1)
        await claim.change(slots.free(row.id), wake, slot=None)
    else:
        await claim.write([servers.change(row.id, row.fence, slot=None), slots.free(row.id)])
    await _settle_history(claim, around)
    await raw_log.compress(around.db, row.id)
    await map_events.compact(around.db, row.id)
    await claim.write([servers.release(row.id, row.fence)])
    claim.lose()
    _LOG.info("server released", extra={"server_id": row.id, "region": row.region})


async def _settle_history(claim: Claim, around: Surroundings) -> None:
    """Make the history of the match final; after the server is gone, which must not wait for it."""
    row, region = claim.row, around.regions.get(claim.row.region)
    try:
        await settle(
            around.db,
            row,
            speed=region.speed if region else 1.0,
            server_name=server_name(region.name if region else row.region, row.id),
            streams=around.streams,
            now_ms=around.clock.now_ms(),
        )
    except NothingChangedError as exc:
        raise ClaimLostError(row.id) from exc
    except DatabaseAwayError:
        raise
    except Exception:  # noqa: BLE001 - a log that cannot be read must not keep a server; it can be recomputed
        around.measures.crashes.inc("history")
        _LOG.exception("history was not settled", extra={"server_id": row.id})
        # It stays as it was last stored, without numbers: nobody is to wait for them, nor to try again for ever.
        await claim.write([servers.hold(row.id, row.fence), history.give_up(row.id)])
        for one in await history.maps_of(around.db, row.id):
            around.streams.finish(one.id)


async def _release_later(claim: Claim, around: Surroundings, error: str) -> None:
    row = claim.row
    wait_ms = min(RELEASE_AGAIN_MS * 2 ** min(row.tries, 10), MAX_RELEASE_AGAIN_MS)
    _LOG.warning("server was not released", extra={"server_id": row.id, "slot": row.slot, "error": error})
    await claim.give_back(around.clock.now_ms() + wait_ms, tries=row.tries + 1)


async def _say_farewell(claim: Claim, around: Surroundings) -> None:
    """Send everybody away with a reason they can read; a server that is gone has nobody to send."""
    row = claim.row
    outcome = await outbox.outcome_of(around.db, row.id)
    reason = outcome.reason if outcome else None
    if row.running_at_ms is None or reason == CancelReason.SERVER_LOST:
        text = None
    elif reason == CancelReason.INCOMPLETE_ROSTER:
        text = ROSTER_INCOMPLETE
    else:
        text = MATCH_CANCELED_TEXT if reason else MATCH_OVER_TEXT
    await leave_server(claim, around, text)


async def leave_server(claim: Claim, around: Surroundings, farewell: str | None) -> None:
    """Undo what a match leaves on a server that goes on: its people, unless nobody came yet, and its settings."""
    row = claim.row
    if row.rcon_host is None or row.rcon_password is None or (farewell is None and row.changed_cvars is None):
        return
    try:
        line = ConsoleLine(claim, around)
    except ValueError as exc:
        # The key of the vault was exchanged: nobody opens this password again, and the server must go all the same.
        _LOG.error("console password cannot be opened", extra={"server_id": row.id, "error": str(exc)})
        return
    try:
        async with asyncio.timeout(FAREWELL_S):
            if farewell is not None:
                await _kick_everybody(line, farewell)
            await restore_cvars(claim, line)
    except (ConsoleError, TimeoutError) as exc:
        _LOG.info("server did not take its farewell", extra={"server_id": row.id, "error": str(exc)})
    finally:
        await line.close()


async def _kick_everybody(line: ConsoleLine, text: str) -> None:
    status = parse_status(await line.run(STATUS))
    for player in status.players if status else ():
        if not player.is_bot:
            await line.run(kick_command(player.user_id, text))
