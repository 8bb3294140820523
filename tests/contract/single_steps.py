"""A match that no supervisor drives, with a fake console and a fake fleet, to test single steps of the runner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast

import msgspec

from cs2_protocol.console_commands import LOG_LISTENERS
from matchpod.core.failures import Failure
from matchpod.core.match.match import Match
from matchpod.core.server_status import ServerPhase
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import ConsoleFaultError, ConsoleLostError, Database, Fleet
from matchpod.service.match_log.entries import EntryKind, NewEntry, statements_of, stored_entry
from matchpod.service.match_log.fold import Fold
from matchpod.service.regions.regions import Region
from matchpod.service.runner.console_line import ConsoleLine
from matchpod.service.runner.deps import Deps
from matchpod.service.runner.effects import EffectExecutor
from matchpod.service.runner.intervals import Intervals
from matchpod.service.runner.lease import Lease
from matchpod.service.runner.liveness import LivenessProbe
from matchpod.storage.servers import LEASE_MS
from tests.clocks import ManualClock
from tests.contract.parts import Parts
from tests.contract.world import SPEED, create_match
from tests.waiting import until

NO_PAUSES = Intervals(probe_s=0.0, last_posts_s=0.0, log_gap_ms=0, retry_s=0.0, action_again_s=0.0)

STEP_S = 20.0
"""Time limit of a step: far longer than it takes on a busy machine."""


class FakeLine:
    """A fake `ConsoleLine`. The first `failures` commands fail, as while a map is loading.

    Commands that begin with `unanswered` are executed without an answer; the answer to `faulty` is too long.
    """

    def __init__(
        self, *, failures: int = 0, map_name: str = "de_nuke", unanswered: str | None = None, faulty: str | None = None
    ) -> None:
        self.failures = failures
        self.faulty = faulty
        self.map_name = map_name
        self.unanswered = unanswered
        self.listeners = ""
        """The answer that lists the log addresses."""
        self.players: dict[str, str] = {}
        """The names of the connected players, by id; their user ids begin at 2."""
        self.commands: list[str] = []

    def count(self, command: str) -> int:
        """Return how many commands began like this one."""
        return sum(sent.startswith(command) for sent in self.commands)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition is true, because of a command or what followed from it."""
        await until(condition, within_s=STEP_S)

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 5.0) -> list[str]:
        return [await self.run(command, timeout_s=timeout_s) for command in commands]

    async def ask(self, command: str, parse: Callable[[str], object], *, timeout_s: float = 5.0) -> object:
        return parse(await self.run(command, timeout_s=timeout_s))

    async def run(self, command: str, *, timeout_s: float = 5.0) -> str:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise ConsoleLostError("the connection was reset")
        self.commands.append(command)
        if self.faulty is not None and command.startswith(self.faulty):
            raise ConsoleFaultError("packet size 8388618 is not between 10 and 65546")
        if self.unanswered is not None and command.startswith(self.unanswered):
            raise ConsoleLostError("the connection was reset")
        if command == LOG_LISTENERS:
            return self.listeners
        if command == "status_json":
            clients = [{"steamid64": player_id, "name": name} for player_id, name in self.players.items()]
            return json.dumps({"server": {"map": self.map_name, "clients": clients}})
        if command == "status":
            numbered = enumerate(self.players.values(), start=2)
            rows = [f"{number} 00:40 9 0 active 0 192.0.2.1:1 '{name}'\n" for number, name in numbered]
            return f"---------players--------\n{''.join(rows)}#end\n"
        return ""


class FakeFleet:
    """A fleet with given reports; then it does not know more. Time passes when it is asked."""

    def __init__(self, answers: Sequence[FleetReport]) -> None:
        self.answers = list(answers)
        self.on_probe: Callable[[], object] = bool

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        self.on_probe()
        return self.answers.pop(0) if self.answers else FleetReport.UNKNOWN


class SingleStep(msgspec.Struct, dict=True):
    """What an effect executor and a liveness probe need, and what they reported."""

    lease: Lease
    deps: Deps
    region: Region
    fold: Fold
    clock: ManualClock
    fleet: FakeFleet
    line: FakeLine
    lost: list[str]
    """Why the server was lost."""
    failed: list[Failure]

    @property
    def match(self) -> Match:
        return self.fold.match

    def pass_time(self, ms: int) -> None:
        self.clock.at_ms += ms

    def each_probe(self, ms: int) -> None:
        self.fleet.on_probe = lambda: self.pass_time(ms)

    async def line_is_asked(self, command: str, times: int) -> None:
        """Wait until the console was asked this often."""
        async with asyncio.timeout(STEP_S):
            while self.line.count(command) < times:
                await asyncio.sleep(0.01)

    def executor(self) -> EffectExecutor:
        line = cast(ConsoleLine, self.line)
        return EffectExecutor(
            self.lease,
            self.deps,
            self.region,
            line=line,
            match=self.match,
            on_failed=self.failed.append,
            append=self.append_entry,
        )

    async def append_entry(self, kind: EntryKind, body: bytes) -> None:
        new = NewEntry(kind=kind, received_ms=self.clock.now_ms(), body=body)
        numbers, *_ = await self.deps.db.write(statements_of(self.lease.row.id, new))
        self.fold.apply(stored_entry(self.lease.row.id, msgspec.convert(numbers[0][0], int), new))

    def probe(self) -> LivenessProbe:
        return LivenessProbe(
            self.lease,
            self.deps,
            self.region,
            line=cast(ConsoleLine, self.line),
            fold=self.fold,
            on_lost=self.lost.append,
            on_failed=self.failed.append,
        )

    async def probe_to_end(self, probe: LivenessProbe | None = None) -> None:
        async with asyncio.timeout(STEP_S):
            await (probe or self.probe()).run()

    @asynccontextmanager
    async def executing(self) -> AsyncIterator[EffectExecutor]:
        executor = self.executor()
        task = asyncio.create_task(executor.run())
        try:
            yield executor
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def open_step(db: Database, line: FakeLine | None = None, *, answers: Sequence[FleetReport] = ()) -> SingleStep:
    """Create a match whose server is probed without a pause, and has the given console and reports of its fleet."""
    fleet = FakeFleet(answers)
    region = Region(code="eu", name="Europe", location="here", speed=SPEED, fleet=cast(Fleet, fleet))
    parts = Parts(db, regions=[region], intervals=NO_PAUSES)
    await create_match(db, now_ms=parts.clock.at_ms, phase=ServerPhase.RELEASED)
    row = await parts.row()
    return SingleStep(
        lease=Lease(msgspec.structs.replace(row, lease_until_ms=parts.clock.at_ms + LEASE_MS), db, parts.clock),
        deps=parts.deps,
        region=region,
        fold=Fold.begin(row, 1.0),
        clock=parts.clock,
        fleet=fleet,
        line=line or FakeLine(),
        lost=[],
        failed=[],
    )
