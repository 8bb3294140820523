"""Measure how long a match takes from the post with `Game Over` to its callback. Part of `make bench`.

A service on one core plays matches of all modes at once, on a farm of simulated servers on another core. What the farm
sends passes through a relay, which records when it passes on the last line; all clocks are those of this process. With
`--against`, two checkouts take turns: while one plays, the other has no matches. Samples during which the host of a
virtual machine took a core away are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import uvloop

if __name__ == "__main__":
    # Run as a script: make `tests` importable from the checkout.
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from matchpod.adapters.rcon_client import RconConsoles
from tests.bench.checkouts import Checkout, HostWatch, Machine, add_argument, bench_folder, checkouts, percentile
from tests.bench.pinned_process import require_two_cores
from tests.bench.relay import Relay
from tests.bench.stream_matches import FIRST_PLAYER, RCON_PASSWORD, START_S, Site
from tests.chaos.receivers import Receivers

SPEED = 10.0
ROUNDS = 2
MATCHES = 2
"""Matches of each kind at the same time."""
TURNS = 3
PLAY_S = 3600.0
"""Timeout for the matches of a turn, in simulated seconds."""
QUIET_S = 40
TARGET_P50_MS = 30.0
TARGET_P99_MS = 100.0
TAKEN_S = 0.015
"""CPU time that the host may take during a sample: the system counts in steps of 10 ms."""
TAKEN_SHARE = 0.05
"""What it may take of a long sample in addition."""
STOP_COUNTING = 'matchpod_shots_url ""'


@dataclass(frozen=True)
class Kind:
    """A kind of match: its mode, the number of listed players, and whether a plugin counts shots."""

    mode: str
    players: int
    has_shots: bool

    @property
    def label(self) -> str:
        """Its name in the table."""
        plugin = {"competitive": ", MatchZy" if self.players else ", no MatchZy"}.get(self.mode, "")
        return f"{self.mode}{plugin}, {'shots' if self.has_shots else 'no shots'}"

    def settings(self, number: int) -> dict[str, Any]:
        listed = [str(FIRST_PLAYER + 10 * number + seat) for seat in range(self.players)]
        variables = {"sim_scenario": "one_sided", "sim_seed": number + 1, "sim_roster_delay": QUIET_S}
        cvars = "\n".join(f"{name} {value}" for name, value in variables.items())
        settings: dict[str, Any] = {"matchType": self.mode, "map": "de_inferno", "customCvars": cvars}
        if self.mode == "deathmatch":
            return {**settings, "dmRoundMinutes": 2}
        settings |= {"maxRounds": ROUNDS, "freezeTime": 3}
        if listed:
            teams = (listed[: self.players // 2], listed[self.players // 2 :])
            settings["teams"] = {f"team{team}": {"players": one} for team, one in enumerate(teams, start=1)}
        return settings


KINDS = tuple(
    Kind(mode, players, has_shots)
    for mode, players in (
        ("competitive", 10),
        ("competitive", 0),
        ("wingman", 4),
        ("deathmatch", 0),
        ("casual", 0),
        ("retakes", 0),
    )
    for has_shots in (True, False)
)

Latencies = Mapping[Kind, list[float]]


class Subject:
    """A service of one checkout with its own farm."""

    def __init__(self, checkout: Checkout, folder: Path, *, speed: float, matches: int) -> None:
        self.checkout = checkout
        self.latencies_ms: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
        self.disturbed_ms: list[float] = []
        """Latencies of matches from which the host took a core."""
        self._folder = folder
        self._speed = speed
        self._matches = matches
        self._site: Site | None = None
        self._relay = Relay(lambda: self._site.port if self._site else 0)

    async def begin(self) -> None:
        """Start the farm and the service."""
        await self._relay.open()
        self._folder.mkdir()
        self._site = Site(
            self._folder,
            len(KINDS) * self._matches,
            speed=self._speed,
            checkout=self.checkout,
            environment={"MATCHPOD_PUBLIC_URL": f"http://127.0.0.1:{self._relay.port}"},
        )
        self._site.begin()

    def end(self) -> None:
        if self._site is not None:
            self._site.end()

    async def play(self, receivers: Receivers, host: HostWatch, first: int) -> None:
        """Play matches of all kinds with numbers from `first` on, and measure them."""
        assert self._site is not None
        kinds = dict(enumerate(KINDS * self._matches, start=first))
        ports = dict(await asyncio.gather(*(self._start(receivers, number, kind) for number, kind in kinds.items())))
        deadline = monotonic() + START_S + PLAY_S / self._speed
        while missing := [kind.label for number, kind in kinds.items() if not receivers.at(str(number))]:
            if monotonic() > deadline:
                raise RuntimeError(f"no callback of {missing} in time")
            await asyncio.sleep(0.1)
        for number, kind in kinds.items():
            arrival = receivers.at(str(number))[0]
            _check(arrival.request.body, kind, self.checkout)
            begin_s, end_s = self._relay.game_over_s.pop(ports[number]), arrival.at_s
            is_disturbed = host.taken_s(begin_s, end_s) > TAKEN_S + TAKEN_SHARE * (end_s - begin_s)
            (self.disturbed_ms if is_disturbed else self.latencies_ms[kind]).append((end_s - begin_s) * 1000)
        await self._wait_until_released()

    async def _start(self, receivers: Receivers, number: int, kind: Kind) -> tuple[int, int]:
        assert self._site is not None
        created = await self._site.create_with(kind.settings(number), callbackUrl=receivers.url(str(number)))
        async with asyncio.timeout(START_S):
            server = await self._site.running_server(created["serverId"])
        if not kind.has_shots:
            console = await RconConsoles().open("127.0.0.1", server["port"], RCON_PASSWORD)
            await console.run(STOP_COUNTING)
            await console.close()
        return number, server["port"]

    async def _wait_until_released(self) -> None:
        """Wait until all servers can be used again, so that the next turn does not measure their release."""
        assert self._site is not None
        async with asyncio.timeout(START_S):
            while any(region["allocated"] for region in await self._site.get("/api/v1/regions")):
                await asyncio.sleep(0.2)


def _check(body: bytes, kind: Kind, checkout: Checkout) -> None:
    """Raise RuntimeError unless the match ended regularly and has shots if they were counted."""
    callback = json.loads(body)
    if callback["eventType"] != "match_over":
        raise RuntimeError(f"{checkout.label}: {kind.label}: {body[:500]!r}")
    has_shots = b'"shotsFired"' in body
    if has_shots != kind.has_shots and kind.mode != "deathmatch":
        raise RuntimeError(f"{checkout.label}: {kind.label}: shots are {'' if has_shots else 'not '}counted")


async def measure(
    folder: Path, compared: Sequence[Checkout], *, turns: int, speed: float, matches: int
) -> list[Subject]:
    """Let the checkouts take turns."""
    host = HostWatch()
    watching = asyncio.create_task(host.run())
    subjects = [Subject(one, folder / one.label, speed=speed, matches=matches) for one in compared]
    try:
        async with Receivers() as receivers:
            for subject in subjects:
                await subject.begin()
            for turn in range(turns):
                for index, subject in enumerate(subjects):
                    await subject.play(receivers, host, (turn * len(subjects) + index) * len(KINDS) * matches)
    finally:
        watching.cancel()
        for subject in subjects:
            subject.end()
    return subjects


def print_figures(subjects: Sequence[Subject]) -> None:
    """Print the latencies of each kind of match, and whether the targets were reached."""
    heads = (f"{one.checkout.label:>10}{'p50':>9}{'p99':>9}{'max':>9}" for one in subjects)
    print(f"{'Game Over to callback, ms':34}" + "".join(heads))
    rows = [(kind.label, [one.latencies_ms[kind] for one in subjects]) for kind in KINDS]
    rows.append(("all", [[ms for times in one.latencies_ms.values() for ms in times] for one in subjects]))
    rows.append(("all while the host took a core", [one.disturbed_ms for one in subjects]))
    for label, columns in rows:
        print(f"{label:34}" + "".join(_cells(times) for times in columns))
    for share, target in ((0.5, TARGET_P50_MS), (0.99, TARGET_P99_MS)):
        worst = max((percentile(times, share) for times in subjects[-1].latencies_ms.values() if times), default=0.0)
        verdict = "reached" if worst <= target else "missed"
        print(f"worst p{share * 100:.0f} of a kind: {worst:.1f} ms   target at most {target:g} ms: {verdict}")


def _cells(times: Sequence[float]) -> str:
    shown = "".join(f"{percentile(times, share):>9.1f}" for share in (0.5, 0.99, 1.0))
    return f"{f'{len(times)} x':>10}{shown if times else ' ' * 27}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_argument(parser)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--matches", type=int, default=MATCHES, help="matches of each kind per turn")
    parser.add_argument("--speed", type=float, default=SPEED, help="simulated seconds per real second")
    given = parser.parse_args()
    require_two_cores("benchmark of callback latency", "the farm needs its own core")
    machine = Machine()
    with bench_folder() as folder:
        subjects = uvloop.run(
            measure(folder, checkouts(given.against), turns=given.turns, speed=given.speed, matches=given.matches)
        )
    samples = given.turns * given.matches
    print(
        f"\ncallback latency: {samples} matches of each kind, {len(KINDS) * given.matches} at a time at {given.speed:g}x, "
        f"SQLite\n{machine.text()}"
    )
    print_figures(subjects)


if __name__ == "__main__":
    main()
