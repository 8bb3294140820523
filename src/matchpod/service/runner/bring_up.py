"""How does a match get its server? A place in the region, a server in it, its configuration, and the proof."""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from zlib import crc32

from matchpod.core.effects import CancelReason
from matchpod.core.server_status import ServerPhase, ServerStep
from matchpod.cs2.console_commands import game_mode_of
from matchpod.ports import ConsoleError, FleetError, GameServer, ServerOrder
from matchpod.service.conclusion import Ending
from matchpod.service.folding import settings_of
from matchpod.service.identifiers import TOKEN_RANDOM_BYTES, new_token
from matchpod.service.regions import Region
from matchpod.service.runner.claim import Claim
from matchpod.service.runner.configure import ConfigurationError, configure
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.ending import conclude, leave_server
from matchpod.service.runner.surroundings import Surroundings
from matchpod.service.runner.watch import LOOKS_GONE
from matchpod.storage import servers, slots
from matchpod.storage.servers import ServerRow

LOOK_AGAIN_MS: Final = 30_000
"""How often a match that waits for a place looks for one by itself; it is woken when one becomes free."""

TRIES: Final = 3
"""A server that does not come up is replaced; after that it is not the server's fault alone."""

TRY_AGAIN_MS: Final = 1_000
"""Between two tries."""

TRY_S: Final = 180.0
"""For one try, at the speed of a real server: its start, its map and its settings."""

MIN_TRY_S: Final = 60.0
"""However fast the region's world runs: processes of a busy machine start slowly."""

LOOK_S: Final = 2.0
"""How often it is asked whether the process of a server that is being set up still runs."""

MAX_ERROR_CHARS: Final = 500
"""What is kept of a failure, for operators."""

DETECTIONS_VARIABLE: Final = "MATCHPOD_ANTICHEAT_URL"
"""In the environment of a server: where its anti-cheat plugin may report, for this match alone."""

_LOG = logging.getLogger(__name__)


async def bring_up(claim: Claim, around: Surroundings) -> bool:
    """Take a match from its creation to running; False when it is not there yet, or never will be."""
    region = around.regions.get(claim.row.region)
    if region is None:
        await _fail(claim, around, CancelReason.SERVER_FAILED, "its region is not configured any more")
        return False
    if not await _find_place(claim, around, region):
        return False
    try:
        async with asyncio.timeout(max(MIN_TRY_S, TRY_S / region.speed)):
            server = await _start(claim, around, region)
    except (FleetError, ConsoleError, ConfigurationError, TimeoutError) as exc:
        await _try_again(claim, around, region, str(exc) or "it took too long")
        return False
    # Outside of the time limit: a change that was cut off may have been made.
    await claim.step(ServerStep.PROVEN, ip=server.ip, port=server.port, running_at_ms=around.clock.now_ms(), error=None)
    row = claim.row
    around.measures.bring_up_s.observe(((row.running_at_ms or 0) - row.created_at_ms) / 1000, region.code)
    _LOG.info("server running", extra={"server_id": row.id, "region": row.region, "port": row.port})
    return True


async def _find_place(claim: Claim, around: Surroundings, region: Region) -> bool:
    row, now_ms = claim.row, around.clock.now_ms()
    slot = await _reserve(claim, around, region)
    if slot is not None:
        if row.phase is ServerPhase.PENDING:
            await claim.step(ServerStep.PLACE_FOUND, slot=slot)
            _LOG.info("place found", extra={"server_id": row.id, "slot": slot})
        elif row.slot != slot:
            await claim.change(slot=slot)
        return True
    if now_ms >= row.created_at_ms + around.pending_ms:
        await _fail(claim, around, CancelReason.NO_CAPACITY, "no server became free in time")
        return False
    next_at_ms = min(now_ms + LOOK_AGAIN_MS, row.created_at_ms + around.pending_ms)
    if row.phase is ServerPhase.ALLOCATING:
        await claim.step_back(ServerStep.REGION_FULL, next_at_ms, was_pending=True)
        _LOG.info("region full, match waits", extra={"server_id": row.id, "region": row.region})
    else:
        await claim.give_back(next_at_ms)
    return False


async def _reserve(claim: Claim, around: Surroundings, region: Region) -> str | None:
    row, all_slots = claim.row, region.fleet.slots
    is_new = row.phase is ServerPhase.ALLOCATING and row.slot is None and row.tries == 0
    if is_new and await servers.is_anybody_waiting(around.db, region.code, row.created_at_ms):
        return None  # a place that is free right now is theirs
    # Every match begins to look at another place, and after a failed try at the next.
    first = (crc32(row.id.encode()) + row.tries) % len(all_slots) if all_slots else 0
    return await slots.reserve(around.db, region.code, row.id, [*all_slots[first:], *all_slots[:first]])


async def _start(claim: Claim, around: Surroundings, region: Region) -> GameServer:
    server = await _allocate(claim, around, region)
    line = ConsoleLine(claim, around)
    configuring = asyncio.create_task(configure(claim, around, line, is_fresh=server.is_fresh))
    try:
        await _wait_while_alive(configuring, claim.row, region)
        await configuring
    finally:
        configuring.cancel()
        await asyncio.gather(configuring, return_exceptions=True)
        await line.close()
    return server


async def _wait_while_alive(configuring: asyncio.Task[None], row: ServerRow, region: Region) -> None:
    """Until the server is set up; FleetError when its process is gone: nobody else would tell."""
    gone = 0
    while not (await asyncio.wait({configuring}, timeout=LOOK_S))[0]:
        gone = 0 if await region.fleet.is_alive(row.id, row.slot or "") else gone + 1
        if gone >= LOOKS_GONE:
            raise FleetError("it ended while it was set up")


async def _allocate(claim: Claim, around: Surroundings, region: Region) -> GameServer:
    row = claim.row
    settings = settings_of(row)
    game_type, game_mode = game_mode_of(settings.match_type)
    order = ServerOrder(
        server_id=row.id,
        slot=row.slot or "",
        map_name=settings.maps[0],
        game_type=game_type,
        game_mode=game_mode,
        rcon_password=around.vault.open(row.rcon_password) if row.rcon_password else "",
        players=settings.roster,
        environment={DETECTIONS_VARIABLE: around.detections_url(row.report_token)},
    )
    claim.check()
    server = await region.fleet.allocate(order)
    columns: dict[str, str | int | bytes | None] = {"rcon_host": server.rcon_host, "rcon_port": server.rcon_port}
    if server.rcon_password != order.rcon_password:
        columns |= {"rcon_password": around.vault.seal(server.rcon_password), "is_password_ours": False}
    if row.allocated_at_ms is None:
        columns["allocated_at_ms"] = around.clock.now_ms()
        _LOG.info("server allocated", extra={"server_id": row.id, "region": row.region, "slot": row.slot})
    await claim.change(**columns)
    return server


async def _try_again(claim: Claim, around: Surroundings, region: Region, error: str) -> None:
    row = claim.row
    tries = row.tries + 1
    around.measures.bring_up_failures.inc(region.code)
    _LOG.warning(
        "server did not come up", extra={"server_id": row.id, "slot": row.slot, "tries": tries, "error": error}
    )
    if tries >= TRIES:
        await claim.change(tries=tries)
        await _fail(claim, around, CancelReason.SERVER_FAILED, error)
        return
    await leave_server(claim, around, None)
    # Written right before the server goes: a match that its caller ended meanwhile is refused here, and whoever
    # ends it may have given the place to another match.
    await claim.change(tries=tries, error=_readable(error))
    claim.check()
    try:
        await region.fleet.release(row.id, row.slot or "")
    except FleetError as exc:
        # The place is not free; the next try begins with what is there.
        _LOG.warning("server was not released", extra={"server_id": row.id, "slot": row.slot, "error": str(exc)})
        await claim.give_back(around.clock.now_ms() + TRY_AGAIN_MS)
        return
    await _forget_server(claim, around, region)


async def _forget_server(claim: Claim, around: Surroundings, region: Region) -> None:
    """The next try is another server's, with tokens of its own: this one may still speak, and is not listened to."""
    now_ms = around.clock.now_ms()
    wake = servers.wake_waiting(region.code, now_ms, limit=1)
    forgotten = {"slot": None, "rcon_host": None, "rcon_port": None, "changed_cvars": None}
    log_token, report_token = (new_token(around.random_bytes(TOKEN_RANDOM_BYTES)) for _ in range(2))
    await claim.change(slots.free(claim.row.id), wake, log_token=log_token, report_token=report_token, **forgotten)
    await claim.give_back(now_ms + TRY_AGAIN_MS)


async def _fail(claim: Claim, around: Surroundings, reason: CancelReason, error: str) -> None:
    await claim.change(error=_readable(error))
    await conclude(claim, around, Ending(reason=reason))


def _readable(error: str) -> str:
    """A failure as it is kept: it may quote a server's output, and no database takes all of that as text."""
    return "".join(character if character.isprintable() else " " for character in error[:MAX_ERROR_CHARS])
