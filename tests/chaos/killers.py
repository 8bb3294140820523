"""Play matches while one entry of one match kills every process that applies it: the others must not notice.

With PostgreSQL, a process that is started again has a new data folder, like a container without a volume, and games are
played on simulated pods. With SQLite there is one process, which keeps its folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.chaos.cluster import PATIENT_SPEED
from tests.chaos.judge import Violation, judge
from tests.chaos.observed import Observations
from tests.chaos.plan import SANDBOX, SEEDS_PER_KIND, FaultKind, GameSpec, Moment, Plan, PlannedFault, PlannedMatch
from tests.chaos.rounds import Round
from tests.chaos.session import play_reference
from tests.chaos.stores import open_store
from tests.contract.agones_cluster import agones_cluster, agones_region, secret_file

KILLERS = {FaultKind.ENTRY_DIE: ("duel", 10, Moment.SCORE), FaultKind.RESUMED_DIE: ("leaver", 4, Moment.PLAYERS)}
"""The match that kills and from when on. If the service appends the entry, the game lasts longer than all deaths:
otherwise its end would be stored before the match fails."""
HEALTHY = (*(("deathmatch", 4),) * 5, ("overtime", 15), ("series", 20))
"""Kinds and speeds: slow enough that games are still played when processes die. Of deathmatches, which have no rounds,
snapshots are rare, so that many entries are applied again."""
BEGIN_S = 6.0
"""The match that kills is created this much later: the others are played by then."""
REPLICAS = 2
LIMIT_S = 200.0
"""Twice as long as a round takes on a busy machine."""
MAX_PRINTED = 12
TABLE = (
    "| entry that kills | matches | processes that died of it | set aside | ended as |",
    "|---|---:|---:|---:|---|",
)
_TITLES = {FaultKind.ENTRY_DIE: "a log post", FaultKind.RESUMED_DIE: "an entry of the service itself"}


def plan_killer(seed: int, kind: FaultKind) -> Plan:
    """Return the plan of a round: healthy matches, and one that kills."""
    rng = Random(f"{seed} {kind}")

    def match(name: str, at_s: float, kind: str, speed: int) -> PlannedMatch:
        game = GameSpec(kind, rng.randrange(1, 1 + SEEDS_PER_KIND))
        return PlannedMatch(name=name, at_s=at_s, game=game, speed=speed, is_lockstep=True)

    healthy = [match(f"healthy{number}", rng.random(), *one) for number, one in enumerate(HEALTHY)]
    game, speed, moment = KILLERS[kind]
    killer = match("killer", BEGIN_S, game, speed)
    fault = PlannedFault(kind=kind, at_s=BEGIN_S, match=killer.name, on=moment)
    return Plan(seed=seed, matches=(*healthy, killer), faults=(fault,), is_lossless=True)


async def measure_killers(folder: Path, database: str, seed: int, say: Callable[[str], None]) -> tuple[bool, list[str]]:
    """Play a round per kind of entry; return whether nothing was violated, and the figures."""
    folder.mkdir()
    plans = {kind: plan_killer(seed, kind) for kind in KILLERS}
    games = sorted({match.game for plan in plans.values() for match in plan.matches}, key=str)
    say(f"{database}: playing {len(games)} games without faults, for comparison")
    reference = await play_reference(folder / "reference", games)
    lines, is_clean = list(TABLE), True
    for kind, plan in plans.items():
        began_s = time.monotonic()
        seen, leaked = await _play(folder / kind, database, plan)
        verdict = judge(plan, seen, reference)
        set_aside = sum(map(len, seen.set_aside.values()))
        ends = ", ".join(f"{end} ({count})" for end, count in sorted(verdict.ends.items()))
        lines.append(f"| {_TITLES[kind]} | {len(plan.matches)} | {seen.bug_deaths} | {set_aside} | {ends} |")
        say(f"{lines[-1]} {time.monotonic() - began_s:.0f} s")
        violations = (*verdict.violations, *leaked)
        for violation in violations[:MAX_PRINTED]:
            say(f"VIOLATION: {violation.kind} {violation.match}: {violation.text[:1000]}")
        is_clean &= not violations
    return is_clean, lines


async def _play(folder: Path, database: str, plan: Plan) -> tuple[Observations, list[Violation]]:
    """Play a round; return what was seen, and the pods that are left."""
    if database == "sqlite":
        return await Round(plan, folder, limit_s=LIMIT_S).run(), []
    folder.mkdir()
    async with open_store(folder) as store, agones_cluster(folder, replicas=len(plan.matches)) as agones:
        seen = await Round(
            plan,
            folder,
            store,
            replicas=REPLICAS,
            regions=agones_region(SANDBOX, agones.kubeconfig, secret_file(folder), speed=PATIENT_SPEED),
            is_forgetful=True,
            limit_s=LIMIT_S,
        ).run()
        return seen, [Violation("leaked", "", f"pod {name}") for name in agones.api.names("Allocated")]
