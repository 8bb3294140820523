"""Laws of pauses in real logs: a pause is logged at once, and holds the next freeze time.

A freeze time that was held lasts its whole length again once the pause is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cs2_protocol.log_lines.reader import LineReader
from cs2_protocol.log_lines.world_lines import FreezeStarted, PauseChanged, WorldTriggered
from tests.corpus.real_logs import INFERNO, LEAVER

TIMEOUTS = ("TimeOutTs", "TimeOutCTs")
SECOND_MS = 1000
"""Precision of times in a log file."""


@dataclass
class Freeze:
    """A freeze time that ended with the start of a round."""

    started_ms: int
    ended_ms: int
    held_until_ms: int | None
    """When the last pause that held it ended."""

    @property
    def length_ms(self) -> int:
        return self.ended_ms - (self.held_until_ms or self.started_ms)


@dataclass
class Pauses:
    freezes: list[Freeze]
    timeouts_ms: list[int]
    """How long each timeout ran: from its start, or that of the freeze time after it."""
    called_in_rounds: int


def read_pauses(lines: Iterable[bytes]) -> Pauses:
    """Read the pauses of a log; fail if a round starts in one that was on when its freeze time began."""
    reader, found = LineReader(), Pauses([], [], 0)
    since: dict[str, int] = {}
    freeze: Freeze | None = None
    for raw in lines:
        at_ms, line = reader.read(raw)
        match line:
            case PauseChanged(is_enabled=True, by=by):
                assert by not in since
                since[by] = at_ms or 0
                found.called_in_rounds += freeze is None
            case PauseChanged(by=by):
                began_ms = since.pop("mp_pause_match" if by == "mp_unpause_match" else by)
                if freeze is not None:
                    freeze.held_until_ms = at_ms
                    if by in TIMEOUTS:
                        found.timeouts_ms.append((at_ms or 0) - max(began_ms, freeze.started_ms))
            case FreezeStarted():
                freeze = Freeze(at_ms or 0, 0, None)
            case WorldTriggered(trigger="Round_Start"):
                assert not since, f"round started in a pause: {raw!r}"
                assert freeze is not None
                freeze.ended_ms = at_ms or 0
                found.freezes.append(freeze)
                freeze = None
    return found


@pytest.mark.parametrize(("name", "in_rounds"), [(INFERNO, 0), (LEAVER, 1)])
def test_pauses_of_a_real_match(corpus: Path, name: str, in_rounds: int) -> None:
    pauses = read_pauses((corpus / name).read_bytes().split(b"\n"))
    for held, after in zip(pauses.freezes, pauses.freezes[1:], strict=False):
        if held.held_until_ms is not None and after.held_until_ms is None:
            assert abs(held.length_ms - after.length_ms) <= SECOND_MS
    assert pauses.timeouts_ms == [60_000]
    assert pauses.called_in_rounds == in_rounds
    assert any(freeze.held_until_ms for freeze in pauses.freezes)
