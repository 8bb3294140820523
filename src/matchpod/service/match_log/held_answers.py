"""Delay the answers to log posts while this process drives many matches, so that game servers post less often.

A server has one request in flight. All lines that it logs until the answer are sent in the next request. Posts are
committed and applied as usual; only the answers are delayed. Due answers are sent together, so that the next posts
arrive at about the same time and share a transaction.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from matchpod.service.match_log.live import Answer, LocalMatch

FEW_MATCHES: Final = 32
"""Maximum number of driven matches at which no answer is delayed."""

HOLD_S_PER_MATCH: Final = 0.003
"""Minimum time in seconds between two answers to the same server, per match that this process drives."""

MAX_HOLD_S: Final = 1.5
"""Upper limit in seconds of the minimum time between two answers. A server that dies loses the lines not posted yet."""

TICK_S: Final = 0.15
"""Interval between ticks in seconds. A due answer is sent at the next tick."""


def hold_s(matches: int) -> float:
    """Return the minimum time between two answers to a server, in a process that drives this many matches."""
    return 0.0 if matches <= FEW_MATCHES else min(matches * HOLD_S_PER_MATCH, MAX_HOLD_S)


class HeldAnswers:
    """The delayed answers; at most one answer per match."""

    def __init__(self) -> None:
        self._due: dict[int, list[LocalMatch]] = {}
        """The matches with a held answer, by the tick at which the answer is due."""
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, live: LocalMatch, answer: Answer, distance_s: float) -> None:
        """Delay an answer until `distance_s` has passed since the last answer to this server.

        `live` sends the answer earlier if its map may end.
        """
        live.answer()  # send an older held answer; the server no longer waits for it
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        tick = math.floor(max(live.answered_s + distance_s, now_s) / TICK_S) + 1
        live.hold_answer(answer, tick)
        self._due.setdefault(tick, []).append(live)
        if self._timer is None:
            self._plan(now_s)

    def _plan(self, now_s: float) -> None:
        next_s = (math.floor(now_s / TICK_S) + 1) * TICK_S
        self._timer = asyncio.get_running_loop().call_at(next_s, self._answer_due)

    def _answer_due(self) -> None:
        now_s = asyncio.get_running_loop().time()
        current = math.floor(now_s / TICK_S)
        for tick in [tick for tick in self._due if tick <= current]:
            for live in self._due.pop(tick):
                if live.held_until == tick:
                    live.answer()
        self._timer = None
        if self._due:
            self._plan(now_s)
