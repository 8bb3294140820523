"""Inject the faults of a plan into a round."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tests.buggy_service import DIE_RESUMED, keep_answers, lose_answers, put_bug
from tests.chaos.plan import BUGS, LOG_FAULTS, LOST_SHARE, FaultKind, PlannedFault
from tests.chaos.stores import PostgresStore

if TYPE_CHECKING:
    from tests.chaos.rounds import Round


async def inject(fault: PlannedFault, target: Round) -> str | None:
    """Cause a fault and, if it does not last, end it; return why it could not be caused, or None."""
    return await _FAULTS[fault.kind](fault, target)


async def _kill(fault: PlannedFault, target: Round) -> str | None:
    replica = target.cluster.replicas[fault.replica]
    if not fault.is_early:
        await replica.wait_until_ready()
    await replica.kill()
    return None


async def _restart(fault: PlannedFault, target: Round) -> str | None:
    await target.cluster.replicas[fault.replica].restart()
    return None


async def _freeze(fault: PlannedFault, target: Round) -> str | None:
    replica = target.cluster.replicas[fault.replica]
    await replica.wait_until_ready()
    await replica.freeze(fault.lasts_s)
    return None


async def _end_database(fault: PlannedFault, target: Round) -> str | None:
    if not isinstance(target.store, PostgresStore):
        return "only PostgreSQL has processes of its own"
    server = target.store.server
    await (server.crash if fault.kind is FaultKind.DATABASE_CRASH else server.stop_at_once)(fault.lasts_s)
    return None


async def _disturb_consoles(fault: PlannedFault, target: Round) -> str | None:
    is_cut = fault.kind is FaultKind.CONSOLE_CUT
    servers = target.cluster.static.servers
    await asyncio.gather(*((one.cut if is_cut else one.hold)(fault.lasts_s) for one in servers))
    return None


async def _restart_server(fault: PlannedFault, target: Round) -> str | None:
    assert fault.match is not None
    slot = await target.slot(fault.match)
    server = next((one for one in target.cluster.static.servers if one.address == slot), None)
    if server is None:
        return "the match has no static server at this moment"
    await server.restart()
    return None


async def _step_clock(fault: PlannedFault, target: Round) -> str | None:
    clock = target.cluster.replicas[fault.replica].clock
    if clock.fault is None:
        await clock.step(fault.step_s, fault.lasts_s)
    return clock.fault


async def _fill_disk(fault: PlannedFault, target: Round) -> str | None:
    assert target.disk is not None
    if target.disk.fault is None:
        await target.disk.fill(fault.lasts_s)
    return target.disk.fault


async def _tamper(fault: PlannedFault, target: Round) -> str | None:
    token = await target.log_token(fault.match) if fault.match is not None else None
    await target.cluster.log_faults.cause(LOG_FAULTS[fault.kind], token, fault.lasts_s)
    return None


async def _put_bug(fault: PlannedFault, target: Round) -> str | None:
    assert fault.match is not None
    server_id = target.server_id(fault.match)
    if server_id is None:
        return "the match was not created"
    put_bug(target.bugs, BUGS[fault.kind], server_id)
    return None


async def _die_resumed(fault: PlannedFault, target: Round) -> str | None:
    assert fault.match is not None
    server_id, driver = target.server_id(fault.match), await target.driver(fault.match)
    if server_id is None or driver is None:
        return "no replica drives the match at this moment"
    put_bug(target.bugs, DIE_RESUMED, server_id)
    await driver.kill()
    return None


async def _lose_answers(fault: PlannedFault, target: Round) -> str | None:
    lose_answers(target.bugs, LOST_SHARE, target.plan.seed)
    await asyncio.sleep(fault.lasts_s)
    keep_answers(target.bugs)
    return None


async def _signal_server(fault: PlannedFault, target: Round) -> str | None:
    assert fault.match is not None
    game = target.game_process(fault.match)
    if game is None:
        return "the match has no server process at this moment"
    game.signal(signal.SIGKILL if fault.kind is FaultKind.SERVER_KILL else signal.SIGSTOP)
    if fault.kind is FaultKind.SERVER_PAUSE:
        await asyncio.sleep(fault.lasts_s)
        game.signal(signal.SIGCONT)
    return None


_FAULTS: dict[FaultKind, Callable[[PlannedFault, Round], Awaitable[str | None]]] = {
    FaultKind.KILL: _kill,
    FaultKind.RESTART: _restart,
    FaultKind.FREEZE: _freeze,
    FaultKind.DATABASE_CRASH: _end_database,
    FaultKind.DATABASE_STOP: _end_database,
    FaultKind.CONSOLE_CUT: _disturb_consoles,
    FaultKind.CONSOLE_HOLD: _disturb_consoles,
    FaultKind.SERVER_RESTART: _restart_server,
    FaultKind.CLOCK_STEP: _step_clock,
    FaultKind.DISK_FULL: _fill_disk,
    **dict.fromkeys(LOG_FAULTS, _tamper),
    **dict.fromkeys(BUGS, _put_bug),
    FaultKind.RESUMED_DIE: _die_resumed,
    FaultKind.ANSWER_LOSE: _lose_answers,
    FaultKind.SERVER_KILL: _signal_server,
    FaultKind.SERVER_HANG: _signal_server,
    FaultKind.SERVER_PAUSE: _signal_server,
}
