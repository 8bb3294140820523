"""Run rounds of chaos on one database until the time is over or a violation is found.

Each game is first played once without faults; the results of all later rounds are compared with these.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from tests.chaos.judge import Difference, Verdict, comparable, judge
from tests.chaos.observed import Observations
from tests.chaos.plan import PLAYED, SEEDS_PER_KIND, FaultKind, GameSpec, Mix, Plan, PlannedMatch, make_plan
from tests.chaos.rounds import Round
from tests.chaos.stores import PostgresServer

Reference = Mapping[GameSpec, Mapping[str, Any]]

REFERENCE_SPEED = 200
MAX_PRINTED = 40
"""Violations printed of a round: a wrong game has hundreds of wrong numbers."""

_COMMON = (
    FaultKind.SERVER_KILL,
    FaultKind.SERVER_HANG,
    FaultKind.SERVER_PAUSE,
    FaultKind.CONSOLE_CUT,
    FaultKind.CONSOLE_HOLD,
    FaultKind.SERVER_RESTART,
    FaultKind.LOG_CUT,
    FaultKind.LOG_HOLD,
    FaultKind.LOG_DOUBLE,
    FaultKind.LOG_LOSE,
    FaultKind.LOG_REORDER,
    FaultKind.ENTRY_RAISE,
    FaultKind.ENTRY_STALL,
    FaultKind.CLOCK_STEP,
    FaultKind.RESTART,
    FaultKind.FREEZE,
)
_USUAL = Mix(matches=96, kills=16, length_s=60, faults=_COMMON)
_ANSWERS = Mix(
    name="answers",
    matches=16,
    kills=5,
    length_s=50,
    creation_share=0.2,
    lockstep_share=0.0,
    free_speeds=(3,),
    faults=(FaultKind.ANSWER_LOSE,),
    kinds=("series", "restored", *("deathmatch",) * 14),
    cancel_share=0.0,
    bad_receiver_share=0.0,
    is_lossless=True,
)
"""Nothing else is wrong, so every match has its whole result."""
_STORM = Mix(
    name="storm",
    matches=44,
    kills=3,
    length_s=40,
    creation_share=0.2,
    lockstep_share=0.0,
    free_speeds=(3,),
    faults=(FaultKind.FREEZE, FaultKind.CONSOLE_CUT, FaultKind.LOG_CUT, FaultKind.LOG_DOUBLE),
    kinds=("deathmatch",),
    cancel_share=0.0,
)
"""All are live at once in one process, which writes their posts in ticks: up to 32 matches nothing is held back."""
MIXES = {
    "sqlite": (_ANSWERS, _STORM, replace(_USUAL, faults=(*_COMMON, FaultKind.DISK_FULL))),
    "postgres": (
        replace(_ANSWERS, replicas=2),
        _STORM,
        replace(_USUAL, replicas=2, faults=(*_COMMON, FaultKind.DATABASE_CRASH, FaultKind.DATABASE_STOP)),
    ),
}
"""The rounds of `make chaos`, which take turns."""


class Totals(msgspec.Struct, kw_only=True):
    """Sums over the rounds of a session."""

    database: str
    seed: int
    rounds: int = 0
    seconds: float = 0.0
    matches: int = 0
    injected: Counter[str] = msgspec.field(default_factory=Counter)
    ends: Counter[str] = msgspec.field(default_factory=Counter)
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    repeats: int = 0
    overload_losses: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list)
    violations: int = 0

    def add(self, plan: Plan, seen: Observations, verdict: Verdict) -> None:
        self.rounds += 1
        self.matches += len(plan.matches)
        self.injected.update(seen.injected)
        self.skipped.update(seen.skipped)
        self.ends.update(verdict.ends)
        self.repeats += verdict.repeats
        self.overload_losses += verdict.overload_losses
        self.differences += verdict.differences
        self.violations += len(verdict.violations)


async def play_reference(folder: Path, games: Iterable[GameSpec]) -> Reference:
    """Play games without faults; return their comparable callbacks."""
    matches = tuple(
        PlannedMatch(name=f"{game.kind}-{game.seed}", at_s=0, game=game, speed=REFERENCE_SPEED, is_lockstep=True)
        for game in games
    )
    plan = Plan(seed=0, matches=matches, faults=())
    seen = await Round(plan, folder).run()
    found = {match.game: comparable(json.loads(seen.matches[match.name].deliveries[0].body)) for match in matches}
    verdict = judge(plan, seen, found)
    assert not verdict.violations, f"the run without faults is not clean: {verdict.violations}"
    return found


def played_games(kinds: Iterable[str] = PLAYED) -> list[GameSpec]:
    return [GameSpec(kind, seed) for kind in kinds for seed in range(1, 1 + SEEDS_PER_KIND)]


async def run_session(
    folder: Path, database: str, *, seed: int, minutes: float, mixes: Sequence[Mix], report: Callable[[str], None]
) -> Totals:
    """Run rounds with increasing seeds, of each mix in turn; stop at the first violation and keep the folder of its
    round.
    """
    began_s = time.monotonic()
    totals = Totals(database=database, seed=seed)
    with closing(PostgresServer(folder / "postgres")) if database == "postgres" else nullcontext() as server:
        games = played_games([kind for kind in PLAYED if any(kind in mix.kinds for mix in mixes)])
        report(f"{database}: playing {len(games)} games without faults, for comparison")
        reference = await play_reference(folder / f"{database}-reference", games)
        while totals.rounds < len(mixes) or time.monotonic() - began_s < minutes * 60:
            number, mix = seed + totals.rounds, mixes[totals.rounds % len(mixes)]
            plan, place = make_plan(number, mix), folder / f"{database}-{number}"
            round_began_s = time.monotonic()
            store = await server.create_store() if server else None
            seen = await Round(plan, place, store, replicas=mix.replicas).run()
            verdict = judge(plan, seen, reference)
            totals.add(plan, seen, verdict)
            totals.seconds = time.monotonic() - began_s
            report(_line(totals, number, mix, seen, verdict, time.monotonic() - round_began_s))
            if verdict.violations:
                for violation in verdict.violations[:MAX_PRINTED]:
                    report(f"  {violation.kind} {violation.match}: {violation.text[:1000]}")
                report(f"  kept: {place}")
                report(f"  to repeat: {_command(database, number, mix)}")
                return totals
            shutil.rmtree(place)
    return totals


def _command(database: str, seed: int, mix: Mix) -> str:
    sizes = f"--matches {mix.matches} --kills {mix.kills}"
    return f".venv/bin/python -m tests.chaos matches --database {database} --seed {seed} --mix {mix.name} {sizes}"


def _line(totals: Totals, seed: int, mix: Mix, seen: Observations, verdict: Verdict, seconds: float) -> str:
    kinds = Counter(seen.injected)
    faults = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    ends = ", ".join(f"{count} {end}" for end, count in sorted(verdict.ends.items()))
    return (
        f"{totals.database} round {totals.rounds}, {mix.name}, seed {seed}, {seconds:.0f} s: {ends}; "
        f"faults: {faults or 'none'}; "
        f"{verdict.repeats} repeated callbacks, {len(verdict.differences)} marked differences, "
        f"{verdict.overload_losses} servers lost by overload (stolen CPU up to {seen.stolen_share:.0%}), "
        f"{len(verdict.violations)} violations; so far {totals.matches} matches, {totals.injected['kill']} kills"
    )
