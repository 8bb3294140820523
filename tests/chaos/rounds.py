"""Execute a plan: create its matches, inject its faults, and record what is seen from outside until all is quiet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set
from contextlib import nullcontext
from pathlib import Path

import msgspec

from tests.buggy_service import BUGS, count_deaths, count_lost_answers, read_bug, remove_bugs
from tests.chaos.cluster import Cluster
from tests.chaos.faults import inject
from tests.chaos.machine import StolenTime
from tests.chaos.observed import Answer, Delivery, Leftovers, MatchSeen, Observations
from tests.chaos.plan import BUGS as BUG_FAULTS
from tests.chaos.plan import KINDS, STATIC, FaultKind, Json, Moment, Plan, PlannedFault, PlannedMatch
from tests.chaos.receivers import Receivers
from tests.chaos.replica import Replica
from tests.chaos.small_disk import SmallDisk
from tests.chaos.stores import SqliteStore, Store
from tests.e2e.service.running_service import GameProcess

STATIC_SERVERS = 2
RETRY_S = 0.25
WATCH_S = 0.5
QUIET_POLL_S = 0.5
STALL_S = 240.0
"""A round is stuck if nothing happens for this long: no post, no callback, no change in the database."""
ROUND_S = 1800.0
"""Limit of a round, which only one that never becomes quiet reaches."""

_OPEN = "SELECT id, phase FROM servers WHERE phase <> 'released'"
_DUE = "SELECT id, attempts FROM callbacks WHERE next_at_ms IS NOT NULL"
_SET_ASIDE = "SELECT server_id, seq FROM unfinished_entries WHERE kind IS NOT NULL ORDER BY seq"
_TRANSIENT = (0, 502, 503)


class Watched:
    """A match in progress: what was seen of it, and the moments it has reached."""

    def __init__(self, planned: PlannedMatch) -> None:
        self.planned = planned
        self.seen = MatchSeen()
        self.moments = {moment: asyncio.Event() for moment in Moment}

    def reach(self, moment: Moment) -> None:
        """Mark this moment and all before it as reached."""
        for one in Moment:
            self.moments[one].set()
            if one is moment:
                return


class Round:
    """One round: replicas of the service behind a balancer, receivers, game servers and faults."""

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        store: Store | None = None,
        *,
        replicas: int = 1,
        regions: str | None = None,
        is_forgetful: bool = False,
        limit_s: float = ROUND_S,
    ) -> None:
        """`regions` replaces those of simulated servers; `is_forgetful`: see Replica."""
        self.plan = plan
        self._limit_s = limit_s
        self.store = store or SqliteStore(folder / "data")
        has_full_disk = any(fault.kind is FaultKind.DISK_FULL for fault in plan.faults)
        self.disk = SmallDisk(folder / "data") if has_full_disk else None
        self.bugs = folder / "bugs"
        uses_static = any(KINDS[match.game.kind].region == STATIC for match in plan.matches)
        self.cluster = Cluster(
            folder,
            self.store,
            replicas=replicas,
            static_servers=STATIC_SERVERS if uses_static else 0,
            seed=plan.seed,
            bugs=self.bugs,
            regions=regions,
            is_forgetful=is_forgetful,
        )
        self._matches = {match.name: Watched(match) for match in plan.matches}
        self._injected: list[str] = []
        self._skipped: list[str] = []
        self._stolen = StolenTime()

    async def run(self) -> Observations:
        """Run the round until all is quiet; return what was seen."""
        with self.disk or nullcontext():
            async with Receivers() as self.receivers, self.cluster:
                sampling = asyncio.create_task(self._stolen.run())
                try:
                    return await self._run()
                finally:
                    sampling.cancel()

    async def _run(self) -> Observations:
        secret = await self.cluster.webhook_secret()
        self._began_s = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for match in self._matches.values():
                group.create_task(self._play(match))
            for fault in self.plan.faults:
                group.create_task(self._inject(fault))
        is_quiet = await self._wait_until_quiet()
        bugs = self._bugs()
        remove_bugs(self.bugs)
        self._injected += ["lost_answer"] * count_lost_answers(self.bugs)
        for replica in self.cluster.replicas:
            await replica.wait_until_ready()  # one that is still starting answers nothing, and would end by SIGTERM
        await self.cluster.balancer.wait_until_ready(len(self.cluster.replicas))
        for match in self._matches.values():
            await self._read_final(match)
        exit_codes = [await replica.stop() for replica in self.cluster.replicas]
        seen = await self._observations(secret, exit_codes)
        return msgspec.structs.replace(seen, bugs=bugs, is_stuck=not is_quiet)

    # --- matches --------------------------------------------------------------------------------------------------

    async def _post(self, answers: list[Answer], path: str, body: object = None, **headers: str) -> Answer:
        """Repeat a request until its answer is final; append all answers."""
        while True:
            answers.append(await self.cluster.call("POST", path, body, **headers))
            if answers[-1].status not in _TRANSIENT:
                return answers[-1]
            await asyncio.sleep(RETRY_S)

    async def _play(self, match: Watched) -> None:
        planned, seen = match.planned, match.seen
        await self._sleep_until(planned.at_s)
        body = {
            **planned.game.body(speed=planned.speed, is_lockstep=planned.is_lockstep),
            "externalMatchId": planned.name,
            "callbackUrl": self.receivers.url(planned.name, planned.receiver),
        }
        answer = await self._post(seen.creates, "/api/v1/matches", body, **{"Idempotency-Key": planned.name})
        if answer.status != 201:
            match.reach(Moment.ENDED)
            return
        seen.server_id = answer.json["serverId"]
        seen.server_ids.add(answer.json["serverId"])
        match.reach(Moment.CREATED)
        waiting = {fault.on for fault in self.plan.faults if fault.match == planned.name} | {planned.cancel_on}
        async with asyncio.TaskGroup() as group:
            awaited = waiting - {None, Moment.CREATED}
            watching = group.create_task(self._watch(match, awaited)) if awaited else None
            if planned.cancel_on is not None:
                await match.moments[planned.cancel_on].wait()
                await self._post(seen.cancels, f"/api/v1/servers/{seen.server_id}/cancel")
            if watching is not None:
                await watching

    async def _watch(self, match: Watched, awaited: Set[Moment | None]) -> None:
        """Poll a match until it has reached these moments or its callback arrives, and mark them.

        No longer, because a replica that is asked applies the entries of the match too.
        """
        quiet_s = time.monotonic() + STALL_S
        while not self.receivers.at(match.planned.name) and time.monotonic() < quiet_s:
            answer = await self.cluster.call("GET", f"/api/v1/servers/{match.seen.server_id}")
            if answer.status == 200 and (moment := _moment_of(answer.json)) is not None:
                if not match.moments[moment].is_set():
                    quiet_s = time.monotonic() + STALL_S
                match.reach(moment)
                if all(one is None or match.moments[one].is_set() for one in awaited):
                    return
            await asyncio.sleep(WATCH_S)
        match.reach(Moment.ENDED)

    async def _read_final(self, match: Watched) -> None:
        if match.seen.server_id is None:
            return
        match.seen.final = await self.cluster.call("GET", f"/api/v1/matches/{match.planned.name}")
        match.seen.server = await self.cluster.call("GET", f"/api/v1/servers/{match.seen.server_id}")

    # --- faults ---------------------------------------------------------------------------------------------------

    async def _inject(self, fault: PlannedFault) -> None:
        await self._sleep_until(fault.at_s)
        if fault.match is not None and fault.on is not None:
            await self._matches[fault.match].moments[fault.on].wait()
        skipped = await inject(fault, self)
        if skipped is None:
            self._injected.append(fault.kind)
        else:
            self._skipped.append(f"{fault.kind}: {skipped}")

    async def log_token(self, name: str) -> str:
        """Return the token with which the server of a match posts its log; an unused one if the server is released."""
        return (await self.store.log_tokens()).get(self._matches[name].seen.server_id or "", "released")

    async def slot(self, name: str) -> str | None:
        """Return the slot of a match in its fleet, if it has one."""
        server_id = self._matches[name].seen.server_id
        rows = await self.store.rows(f"SELECT slot FROM servers WHERE id = '{server_id}'")
        return None if not rows or rows[0][0] is None else str(rows[0][0])

    async def driver(self, name: str) -> Replica | None:
        """Return the replica that drives a match, if there is one."""
        server_id = self._matches[name].seen.server_id
        ((owner,),) = await self.store.rows(f"SELECT lease_owner FROM servers WHERE id = '{server_id}'") or ((None,),)
        pids = {one.process.pid: one for one in self.cluster.replicas if one.process is not None}
        return pids.get(int(str(owner).split(":")[1])) if owner else None

    def server_id(self, name: str) -> str | None:
        """Return the id of the server of a match, if the match was created."""
        return self._matches[name].seen.server_id

    def game_process(self, name: str) -> GameProcess | None:
        """Return the game-server process of a match, if it has one."""
        server_id = self._matches[name].seen.server_id
        found = self.cluster.game_processes(server_id) if server_id else []
        return found[0] if found else None

    # --- the end --------------------------------------------------------------------------------------------------

    async def _sleep_until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, self._began_s + at_s - time.monotonic()))

    async def _wait_until_quiet(self) -> bool:
        """Wait until all matches are released and all callbacks decided; False if nothing happens any more."""
        end_s = time.monotonic() + self._limit_s
        changed_s, before = time.monotonic(), None
        while time.monotonic() < min(end_s, changed_s + STALL_S):
            now = (
                await self.store.rows(_OPEN),
                await self.store.rows(_DUE),
                self.receivers.count,
                self.cluster.balancer.forwarded,
            )
            processes = self.cluster.game_processes()
            if not now[0] and not now[1] and not processes:
                return True
            if now != before:
                changed_s, before = time.monotonic(), now
            await asyncio.sleep(QUIET_POLL_S)
        return False

    async def _observations(self, secret: str, exit_codes: list[int]) -> Observations:
        for name, match in self._matches.items():
            match.seen.deliveries = [
                Delivery(
                    at_s=one.at_s,
                    id=one.request.headers.get("webhook-id", ""),
                    body=one.request.body,
                    is_accepted=one.is_accepted,
                    is_signed=one.is_signed_with(secret),
                )
                for one in self.receivers.at(name)
            ]
        return Observations(
            matches={name: match.seen for name, match in self._matches.items()},
            deaths=self.cluster.deaths,
            leftovers=await self._leftovers(exit_codes),
            injected=self._injected,
            skipped=self._skipped,
            errors=_errors(self.cluster.replicas, self._hit()),
            set_aside=await self._set_aside(),
            bug_deaths=count_deaths(self.bugs),
            stray_paths=self.receivers.stray(),
            stolen_share=self._stolen.largest_share,
        )

    async def _set_aside(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for server_id, seq in msgspec.convert(await self.store.rows(_SET_ASIDE), list[tuple[str, int]]):
            found.setdefault(self._name(server_id), []).append(seq)
        return found

    def _hit(self) -> set[str]:
        """Return the ids of the servers whose entries have a bug in them."""
        hit = {fault.match for fault in self.plan.faults if fault.kind in (*BUG_FAULTS, FaultKind.RESUMED_DIE)}
        ids = (match.seen.server_id for match in self._matches.values() if match.planned.name in hit)
        return {server_id for server_id in ids if server_id is not None}

    def _bugs(self) -> dict[str, int]:
        found = (bug for what in BUGS if (bug := read_bug(self.bugs, what)) is not None)
        return {self._name(server_id): seq for server_id, seq in found}

    def _name(self, server_id: str) -> str:
        names = (name for name, match in self._matches.items() if match.seen.server_id == server_id)
        return next(names, server_id)

    async def _leftovers(self, exit_codes: list[int]) -> Leftovers:
        async def texts(sql: str) -> tuple[str, ...]:
            return tuple(" ".join(map(str, row)) for row in await self.store.rows(sql))

        known = {match.seen.server_id for match in self._matches.values()}
        processes = self.cluster.game_processes()
        return Leftovers(
            processes=tuple(f"{game.server_id} pid {game.pid}" for game in processes),
            slots=await texts("SELECT region, slot, server_id FROM slots"),
            leases=await texts("SELECT id, lease_owner FROM servers WHERE lease_owner IS NOT NULL"),
            open_servers=await texts(_OPEN),
            due_callbacks=await texts(_DUE),
            snapshots=await texts("SELECT server_id FROM snapshots"),
            static_servers=await self.cluster.static.leftovers(),
            unknown_servers=tuple(one for one in await texts("SELECT id FROM servers") if one not in known),
            exit_codes=tuple(f"replica {number}: {code}" for number, code in enumerate(exit_codes) if code),
        )


def _moment_of(server: Json) -> Moment | None:
    match = server["match"]
    if match and (sum(match.get("score", {}).values()) or any(player["kills"] for player in match["players"])):
        return Moment.SCORE
    if match and match["players"]:
        return Moment.PLAYERS
    return Moment.RUNNING if server["status"] == "running" else None


def _errors(replicas: list[Replica], hit: Set[str]) -> list[str]:
    """Return errors in the logs of all replicas; not that one cannot start while its database is down, nor about the
    servers that are hit by a bug.
    """
    found = []
    for replica in replicas:
        for name, text in replica.texts().items():
            for line in text.splitlines():
                if any(server_id in line for server_id in hit):
                    continue
                if line.startswith("{") and '"level":"ERROR"' in line.replace(" ", ""):
                    found.append(f"replica {replica.number}, {name}: {line[:600]}")
                elif line.startswith("Traceback"):
                    found.append(f"replica {replica.number}, {name}: {line[:200]}")
    return found
