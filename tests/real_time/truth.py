"""What really happens in a match, by its server's own log: a copy that is complete, counted apart from the service.

Values are kept with the time at which they changed: what is shown may be as old as the time that an answer takes.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Generic, TypeVar

V = TypeVar("V")

FIRST_ID64: Final = 76561197960265728

_CONNECTED: Final = re.compile(r'"[^"]*<\d+><\[U:1:(\d+)\]><[^>]*>" connected, address')
_ENTERED: Final = re.compile(r'"[^"]*<\d+><\[U:1:(\d+)\]><[^>]*>" entered the game')
_DISCONNECTED: Final = re.compile(r'"[^"]*<\d+><\[U:1:(\d+)\]><[^>]*>" disconnected \(reason')
_SCORE: Final = re.compile(r' - MatchStatus: Score: (\d+):(\d+) on map "[^"]*" RoundsPlayed: (-?\d+)')
_KILLED: Final = re.compile(
    r'"[^"]*<\d+><\[U:1:(\d+)\]><(CT|TERRORIST)>" \[[^]]*\] killed "[^"]*<\d+><\[U:1:\d+\]><(CT|TERRORIST)>" '
)
_MATCH_START: Final = 'World triggered "Match_Start"'
_ROUND_START: Final = 'World triggered "Round_Start"'
_RESTORED: Final = 'World triggered "Match_Reloaded"'
_GAME_OVER: Final = " - Game Over: "


class History(Generic[V]):
    """A value, and when it changed."""

    def __init__(self, first: V) -> None:
        self._times = [float("-inf")]
        self._values = [first]

    @property
    def now(self) -> V:
        """The current value."""
        return self._values[-1]

    def set(self, value: V, at_s: float) -> None:
        """Record a change."""
        if value != self.now:
            self._times.append(at_s)
            self._values.append(value)

    def during(self, from_s: float, until_s: float) -> list[V]:
        """Return all values that it had in this time."""
        return self._values[bisect_right(self._times, from_s) - 1 : bisect_right(self._times, until_s)]


class Truth:
    """The course of one match."""

    def __init__(self) -> None:
        self.here: History[frozenset[str]] = History(frozenset())
        """Who is connected, by SteamID64."""
        self.entered: History[frozenset[str]] = History(frozenset())
        """Whose client has also loaded the map."""
        self.score: History[tuple[int, int]] = History((0, 0))
        """The rounds won by both teams, the smaller number first: lines at halftime name sides wrongly."""
        self.rounds_played: History[int] = History(-1)
        """-1 in warmup."""
        self.has_round: History[bool] = History(False)
        """True from the first round on the loaded map, until the map is over."""
        self.kills: History[Mapping[str, int]] = History({})
        """Kills of enemies on the loaded map, by SteamID64; restored rounds do not count."""
        self.posts_s: History[float] = History(float("-inf"))
        """When the last post arrived."""
        self.longest_quiet_s = 0.0
        """The longest time between two posts."""
        self._kills: dict[int, Counter[str]] = {}
        """Those of each round."""
        self._round = 0
        self._is_restored = False
        self.loads_s: list[float] = []
        """When maps were loaded."""
        self.events_s: dict[str, float] = {}
        """When a restore, a disconnect during play and the end of a map were first logged."""
        self.scored_s: list[float] = []
        """When the score was logged at the end of a round."""

    def read(self, text: str, *, begin: int, at_s: float) -> None:
        """Read a post of the log."""
        if self.posts_s.now > float("-inf"):
            self.longest_quiet_s = max(self.longest_quiet_s, at_s - self.posts_s.now)
        self.posts_s.set(at_s, at_s)
        if begin == 0:
            self.loads_s.append(at_s)
            self._begin_map(at_s)
        for line in text.splitlines():
            self._read_line(line, at_s)

    def _read_line(self, line: str, at_s: float) -> None:
        if found := _CONNECTED.search(line):
            self.here.set(self.here.now | {_id64(found[1])}, at_s)
            self.entered.set(self.entered.now - {_id64(found[1])}, at_s)
        elif found := _ENTERED.search(line):
            self.entered.set(self.entered.now | {_id64(found[1])}, at_s)
        elif found := _DISCONNECTED.search(line):
            self.here.set(self.here.now - {_id64(found[1])}, at_s)
            self.entered.set(self.entered.now - {_id64(found[1])}, at_s)
            if self.has_round.now:
                self.events_s.setdefault("disconnect", at_s)
        elif found := _KILLED.search(line):
            if found[2] != found[3]:
                self._kills.setdefault(self._round, Counter())[_id64(found[1])] += 1
                self._count_kills(at_s)
        elif found := _SCORE.search(line):
            self._read_score(*map(int, found.groups()), at_s=at_s)
        elif _MATCH_START in line:
            self._begin_map(at_s)
        elif _ROUND_START in line and self.rounds_played.now >= 0:
            self._round = self.rounds_played.now + 1
            self.has_round.set(True, at_s)
        elif _RESTORED in line:
            self._is_restored = True
            self.events_s.setdefault("restore", at_s)
        elif _GAME_OVER in line:
            self.events_s.setdefault("end", at_s)
            self.has_round.set(False, at_s)

    def _begin_map(self, at_s: float) -> None:
        self._round = 0
        self._kills.clear()
        self._count_kills(at_s)
        self.has_round.set(False, at_s)

    def _read_score(self, ct: int, t: int, rounds_played: int, *, at_s: float) -> None:
        self.score.set((min(ct, t), max(ct, t)), at_s)
        if rounds_played != self.rounds_played.now:
            self.scored_s.append(at_s)
        self.rounds_played.set(rounds_played, at_s)
        if self._is_restored:
            self._is_restored = False
            self._kills = {number: kills for number, kills in self._kills.items() if number <= rounds_played}
            self._count_kills(at_s)

    def _count_kills(self, at_s: float) -> None:
        total: Counter[str] = Counter()
        for number, kills in self._kills.items():
            if number:  # 0 is warmup
                total.update(kills)
        self.kills.set(dict(total), at_s)


def _id64(account: str) -> str:
    return str(FIRST_ID64 + int(account))


class LogCopies:
    """Receives copies of the logs of game servers, each at a path of its own."""

    def __init__(self) -> None:
        self._truths: dict[str, Truth] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> LogCopies:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, server_id: str) -> tuple[str, Truth]:
        """Return the URL for the log of a server, and what will be known from it."""
        truth = self._truths[f"/{server_id}"] = Truth()
        return f"http://127.0.0.1:{self._server.server_port}/{server_id}", truth

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        truths = self._truths

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                begin = int(self.headers["X-LogBytes-BeginOffset"])
                # A server has one request in flight: posts of one match are read one after the other.
                truths[self.path].read(body.decode(errors="replace"), begin=begin, at_s=time.monotonic())
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
