"""Hold the answers to game servers while many matches are driven, so that they post less often.

A server has one request in flight, and sends in the next what it logged meanwhile. Its post is committed and applied as
always; only the answer waits. Answers that are due go out together, so the next posts arrive together too.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from matchpod.service.match_log.live import Answer, LocalMatch

FEW_MATCHES: Final = 32
"""Up to this many matches, no answer is held."""

HOLD_S_PER_MATCH: Final = 0.003
"""Distance between two answers to the same server, for each match that this process drives."""

MAX_HOLD_S: Final = 1.5
"""Longest distance between two answers: a server that dies loses the lines that it logged meanwhile."""

TICK_S: Final = 0.15
"""Answers that are due go out once per tick."""


def hold_s(matches: int) -> float:
    """The minimum distance between two answers to a server, in a process that drives this many matches."""
    return 0.0 if matches <= FEW_MATCHES else min(matches * HOLD_S_PER_MATCH, MAX_HOLD_S)


class HeldAnswers:
    """The answers that wait until they are due; each match has at most one."""

    def __init__(self) -> None:
        self._due: dict[int, list[LocalMatch]] = {}
        """The matches by the tick in which their answer is due."""
        self._timer: asyncio.TimerHandle | None = None

    def hold(self, live: LocalMatch, answer: Answer, distance_s: float) -> None:
        """Send an answer with others, when the last one to this server was long enough ago.

        `live` sends it earlier if its map may end.
        """
        live.answer()  # of an earlier post: its sender has given it up
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
