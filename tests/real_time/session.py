"""Play matches at the speed of real games, and look at everything that API and console show meanwhile.

Each server sends a copy of its log here. Whatever is shown is judged a few seconds later, when the log of that time is
complete. At the end, results are compared with those of the same matches played fast and without lost posts.
"""

from __future__ import annotations

import json
import signal
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from tests.chaos.judge import comparable, paths_of_incomplete_maps
from tests.contract.same_result import differences, incomplete_mvps
from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.service.game_server import execute
from tests.e2e.service.read_history import read_history
from tests.e2e.service.running_service import PATIENT_SPEED, RunningService, free_port_range, region, wait_until
from tests.real_time.games import MATCH_OVER, REGION, STALL_S, Game
from tests.real_time.judge import (
    AHEAD_S,
    Played,
    judge_card,
    judge_missed,
    judge_reason,
    judge_server,
    judge_wall,
    parse_time,
)
from tests.real_time.truth import LogCopies, Truth
from tests.real_time.wall import WallPage, read_wall

LOOK_S: Final = 1.0
"""How often everything is looked at: pages change once per second."""
LATER_S: Final = 30.0
"""How much later it is judged: by then it is known what happened, and whether this machine was too busy."""
SETTLE_S: Final = 10.0
"""A match that was just created or has just ended may or may not have a server."""
WRITE_S: Final = 60.0
"""How often the report is written while matches are played."""
TIME_OVER: Final = "time over"
GAP_S: Final = 15.0
"""An alarm that is shown again within this time is the same one."""
STARVED_S: Final = 2.0
"""If a look takes this long, this machine is too busy to judge by seconds what is shown around that time."""
AROUND_S: Final = 30.0
"""How long before and after such a look nothing is judged: the service postpones deadlines after it stood still."""
_SETTINGS: Final = {
    "silence_s": "30",
    "callback_private": "allow",
    "max_creations_per_minute": "off",
    "max_live_matches": "off",
}


class AlarmSeen(msgspec.Struct, kw_only=True):
    """An alarm as a replica showed it, from its first to its last sight."""

    game: str
    replica: str
    text: str
    from_s: float
    until_s: float
    why: str | None
    """Why it was true; None if it was false."""


class Report(msgspec.Struct, kw_only=True):
    alarms: list[AlarmSeen] = []
    faults: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """What was wrong in API and console by match, and how often it was seen."""
    first_s: dict[tuple[str, str], float] = {}
    looks: Counter[str] = msgspec.field(default_factory=Counter)
    ends: dict[str, str] = {}
    compared: list[str] = []
    """Matches whose results were compared with those of an undisturbed match."""
    longest_quiet_s: dict[str, float] = {}
    starved_s: float = 0.0
    """How long this machine was too busy."""

    @property
    def false_alarms(self) -> list[AlarmSeen]:
        """The alarms that were not true."""
        return [one for one in self.alarms if one.why is None]

    def lines(self) -> Iterator[str]:
        yield f"looks: {dict(self.looks)}; too busy for {self.starved_s:.0f} s"
        yield f"longest time without a log post: { ({name: round(one) for name, one in self.longest_quiet_s.items()}) }"
        yield f"ends: {self.ends}; compared with an undisturbed match: {self.compared}"
        yield f"alarms: {len(self.alarms)}, false: {len(self.false_alarms)}"
        for one in sorted(self.alarms, key=lambda one: one.from_s):
            lasted = f"{one.from_s:7.0f} s for {one.until_s - one.from_s:4.0f} s"
            yield f"  {lasted}  {one.game} ({one.replica}): {one.text}: {one.why or 'FALSE'}"
        yield f"other faults: {len(self.faults)}"
        for (game, text), count in self.faults.items():
            yield f"  {self.first_s[game, text]:7.0f} s, {count} times: {game}: {text}"


class Session:
    """Lanes of matches on one or two replicas."""

    def __init__(
        self,
        folder: Path,
        lanes: Sequence[Sequence[Game]],
        *,
        minutes: float,
        database_url: str | None = None,
        replicas: int = 1,
        report_file: Path | None = None,
    ) -> None:
        self._folder = folder
        self._report_file = report_file
        self._written_s = 0.0
        self._minutes = minutes
        self._queues = [list(lane) for lane in lanes]
        self._lanes: list[Played | None] = [None] * len(lanes)
        self._servers = len(lanes) + 2
        self._database_url = database_url
        self._key = ""
        self._names = [f"replica {number + 1}" for number in range(replicas)]
        self._created = 0
        self._taken: list[tuple[float, int]] = []
        self._ended_s: list[float] = []
        self._starved_s: list[float] = []
        """When this machine was too busy."""
        self._pending: deque[tuple[float, Callable[[], None]]] = deque()
        self._silences: dict[str, dict[str, list[float]]] = {}
        self._finished: list[Played] = []
        self.report = Report()

    def run(self) -> Report:
        """Play until the time is over; return what was seen."""
        with ExitStack() as stack:
            self._copies = stack.enter_context(LogCopies())
            self._callbacks = stack.enter_context(CallbackReceiver())
            self._services = [self._start(stack, number) for number in range(len(self._names))]
            self._clients = [stack.enter_context(_logged_in(service)) for service in self._services]
            self._began_s = time.monotonic()
            self._wall_offset_s = time.time() - self._began_s
            while (now_s := time.monotonic()) < self._began_s + self._minutes * 60:
                self._look(now_s)
                if now_s - self._written_s > WRITE_S:
                    self._written_s = now_s
                    self._write_report()
                took_s = time.monotonic() - now_s
                if took_s > STARVED_S:
                    self.report.starved_s += took_s
                    self._starved_s.append(time.monotonic())
                time.sleep(max(0.0, LOOK_S - took_s))
            time.sleep(2 * AHEAD_S)  # the copies of the logs are complete
            self._judge_pending(float("inf"))
            for played in self._lanes:
                if played is not None:
                    self._services[0].cancel(played.server_id)
                    self.report.ends[played.game.name] = TIME_OVER
                    self._judge_alarms(played)
            for played in self._finished:
                self._judge_alarms(played)
                self._judge_end(played)
        self._compare()
        self._write_report()
        return self.report

    def _write_report(self) -> None:
        if self._report_file is not None:
            self._report_file.write_text("".join(f"{line}\n" for line in self.report.lines()), encoding="utf-8")

    # --- playing --------------------------------------------------------------------------------------------------

    def _start(self, stack: ExitStack, number: int) -> RunningService:
        if number == 0:
            self._regions = region(REGION, free_port_range(self._servers), speed=1)
        service = RunningService(
            self._folder / f"replica-{number + 1}",
            regions=self._regions,
            database_url=self._database_url,
            data_dir=self._folder / "data" if self._database_url else None,
            key=self._key,
            settings=_SETTINGS,
        )
        stack.enter_context(service)
        self._key = service.key
        return service

    def _create(self, lane: int) -> None:
        game, service = self._queues[lane].pop(0), self._services[self._created % len(self._services)]
        self._created += 1
        settings = game.settings(minutes=self._minutes)
        url = self._callbacks.url(f"/{game.name.replace(' ', '-')}")
        created = service.create(settings, region=REGION, externalMatchId=game.name, callbackUrl=url)
        self._lanes[lane] = Played(game=game, server_id=created["serverId"], truth=Truth(), created_s=time.monotonic())

    def _look(self, now_s: float) -> None:
        """Go on with all lanes, and look at everything once."""
        for lane, played in enumerate(self._lanes):
            if played is None:
                if self._queues[lane]:
                    self._create(lane)
                continue
            self._disturb(played, now_s)
            is_over = False
            for number in range(len(self._services)):
                with self._noting_failures(played.game.name, number):
                    is_over = self._look_at_server(played, number)
                if is_over:
                    self._lanes[lane] = None
                    self._finished.append(played)
                    self._ended_s.append(time.monotonic())
                    break
        for number in range(len(self._services)):
            with self._noting_failures("", number):
                self._look_at_wall(number)
        self._judge_pending(now_s - LATER_S)

    def _disturb(self, played: Played, now_s: float) -> None:
        """Stop a server, or let it go on."""
        after_s = played.game.stall_after_s
        if after_s is None:
            return
        is_over = played.stalled_s is not None and now_s >= played.stalled_s[0] + STALL_S
        if played.stalled_s is None and now_s >= played.running_s + after_s:
            played.stalled_s = (now_s, float("inf"))
            self._signal(played, signal.SIGSTOP)
        elif is_over and played.stalled_s is not None and played.stalled_s[1] == float("inf"):
            self._signal(played, signal.SIGCONT)
            played.stalled_s = (played.stalled_s[0], time.monotonic())

    def _signal(self, played: Played, number: signal.Signals) -> None:
        for process in self._services[0].server_processes(played.server_id):
            process.signal(number)

    def _look_at_server(self, played: Played, number: int) -> bool:
        """Look at a server with a replica; True if its match has ended."""
        before_s = time.monotonic()
        view = self._services[number].get(played.server_id)
        if view["status"] in ("stopped", "failed"):
            self.report.ends[played.game.name] = view["reason"] or MATCH_OVER
            return True
        if view["status"] == "running" and played.running_s == float("inf"):
            url, played.truth = self._copies.add(played.server_id)
            execute(view, f'logaddress_add_http "{url}"')
            played.running_s = time.monotonic()
            return False

        def judge() -> None:
            for text in judge_server(view, played, before_s, self._monotonic):
                self._fault(played, f"API of {self._names[number]}: {text}", before_s)

        self._pending.append((before_s, judge))
        return False

    def _look_at_wall(self, number: int) -> None:
        before_s = time.monotonic()
        response = self._clients[number].get("/console?view=cards")
        assert response.status_code == 200, response.text[:2000]
        wall = read_wall(response.text)
        opened = {played.server_id: played for played in self._lanes if played is not None}
        known = sum(1 for played in opened.values() if played.running_s + SETTLE_S < before_s)
        unsure = len(opened) - known + sum(1 for ended_s in self._ended_s if before_s - ended_s < 3 * SETTLE_S)
        taken = set(range(known, known + unsure + 1))
        self._pending.append((before_s, lambda: self._judge_wall(wall, number, opened, taken, before_s)))

    # --- judging --------------------------------------------------------------------------------------------------

    def _judge_pending(self, until_s: float) -> None:
        while self._pending and self._pending[0][0] <= until_s:
            at_s, judge = self._pending.popleft()
            is_starved = self._is_starved(at_s, at_s)
            self.report.looks["skipped" if is_starved else "judged"] += 1
            if not is_starved:
                judge()

    def _is_starved(self, from_s: float, until_s: float) -> bool:
        """True if this machine was too busy to judge what was shown in this span."""
        return any(from_s - AROUND_S <= one <= until_s + AROUND_S for one in self._starved_s)

    def _judge_wall(self, wall: WallPage, number: int, opened: dict[str, Played], taken: set[int], at_s: float) -> None:
        replica = self._names[number]
        for text in judge_wall(wall, self._servers, taken, REGION):
            self._note(("", f"wall of {replica}: {text}"), at_s)
        stalled = [played for played in opened.values() if played.is_stalled(at_s - SETTLE_S, at_s)]
        for notice in wall.notices:
            if not stalled:
                self._alarm("", replica, notice, at_s, None)
        for card in wall.cards:
            played = opened.get(card.server_id)
            if played is None or played.running_s > at_s:
                continue
            for text in judge_card(card, played, at_s):
                self._fault(played, f"wall of {replica}: {text}", at_s)
            for reason in card.reasons:
                if reason.startswith("nothing heard"):
                    self._silences.setdefault(card.server_id, {}).setdefault(replica, []).append(at_s)
                self._alarm(played.game.name, replica, reason, at_s, judge_reason(reason, played, at_s))

    def _alarm(self, game: str, replica: str, text: str, at_s: float, why: str | None) -> None:
        from_s = at_s - self._began_s
        for one in reversed(self.report.alarms):
            if (one.game, one.replica, one.text) == (game, replica, text) and from_s - one.until_s < GAP_S:
                one.until_s = from_s
                one.why = None if why is None else one.why
                return
        self.report.alarms.append(
            AlarmSeen(game=game, replica=replica, text=text, from_s=from_s, until_s=from_s, why=why)
        )

    def _judge_alarms(self, played: Played) -> None:
        """Judge whether all true alarms were shown, and note how quiet the server was."""
        shown = {replica: self._silences.get(played.server_id, {}).get(replica, []) for replica in self._names}
        if played.stalled_s is None or not self._is_starved(*played.stalled_s):
            for text in judge_missed(played, shown, time.monotonic()):
                self._fault(played, text, time.monotonic())
        self.report.longest_quiet_s[played.game.name] = played.truth.longest_quiet_s

    def _judge_end(self, played: Played) -> None:
        """Judge what is known once a match has ended."""
        game, end = played.game, self.report.ends[played.game.name]
        if end != game.end:
            self._fault(played, f"it ended with {end} instead of {game.end}", time.monotonic())
        if end != MATCH_OVER:
            return
        try:
            wait_until(lambda: self._is_released(played.server_id), "its server is released")
            read_history(self._services[0], played.server_id)
        except AssertionError as exc:
            failed = traceback.extract_tb(exc.__traceback__)[-1]
            text = f"its history is not consistent: {failed.name}: {failed.line}: {str(exc)[:500]}"
            self._fault(played, text, time.monotonic())

    def _is_released(self, server_id: str) -> bool:
        return any(server_id in service.released() for service in self._services)

    def _fault(self, played: Played, text: str, at_s: float) -> None:
        self._note((played.game.name, text), at_s)

    @contextmanager
    def _noting_failures(self, game: str, number: int) -> Iterator[None]:
        try:
            yield
        except (AssertionError, OSError, httpx.HTTPError) as exc:
            self._note((game, f"{self._names[number]} did not answer: {exc!r:.500}"), time.monotonic())

    def _note(self, fault: tuple[str, str], at_s: float) -> None:
        self.report.faults[fault] += 1
        self.report.first_s.setdefault(fault, at_s - self._began_s)

    def _monotonic(self, text: str) -> float:
        return parse_time(text) - self._wall_offset_s

    # --- comparing ------------------------------------------------------------------------------------------------

    def _compare(self) -> None:
        """Compare the results with those of the same matches, played fast and without lost posts."""
        over = [one for one in self._finished if self.report.ends[one.game.name] == MATCH_OVER]
        if not over:
            return
        regions = region(REGION, free_port_range(len(over)), speed=PATIENT_SPEED)
        with (
            CallbackReceiver() as receiver,
            RunningService(self._folder / "reference", regions=regions, settings=_SETTINGS) as service,
        ):
            for played in over:
                settings = played.game.settings(minutes=self._minutes, is_reference=True)
                service.create(settings, region=REGION, callbackUrl=receiver.url(f"/{played.game.seed}"))
            for played in over:
                with self._noting_failures(played.game.name, 0):
                    self._compare_one(played, receiver)

    def _compare_one(self, played: Played, receiver: CallbackReceiver) -> None:
        expected = comparable(json.loads(receiver.wait_for(f"/{played.game.seed}")[0].body))
        found = self._callbacks.wait_for(f"/{played.game.name.replace(' ', '-')}")[0]
        for text in unmarked_differences(comparable(json.loads(found.body)), expected):
            self._fault(played, f"result: {text}", time.monotonic())
        self.report.compared.append(played.game.name)


def unmarked_differences(found: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Yield where a result differs from the undisturbed one without saying that something is missing there."""
    incomplete, mvps = paths_of_incomplete_maps(found), incomplete_mvps(found)
    for path, (one, other) in differences(found, expected).items():
        is_end = path.rpartition(".")[2].startswith("winner")
        if one is not None and path not in mvps and (is_end or not path.startswith(incomplete)):
            yield f"{path} is {str(one)[:200]}, but {str(other)[:200]} in the undisturbed match"


def _logged_in(service: RunningService) -> httpx.Client:
    headers = {"Sec-Fetch-Site": "same-origin"}
    response = httpx.post(f"{service.url}/console/login", data={"key": service.key}, headers=headers)
    assert response.status_code == 303, response.text
    return httpx.Client(base_url=service.url, cookies={"matchpod": response.cookies["matchpod"]}, timeout=60.0)
