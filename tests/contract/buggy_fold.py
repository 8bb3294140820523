"""A bug in the code that reads a log line: it raises an error, each time, on one kill of a match."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cs2_protocol.log_lines import player_lines
from matchpod.core.events import GameEvent
from matchpod.cs2 import interpreter
from matchpod.cs2.combat import Combat
from matchpod.ports import Database
from matchpod.service.match_log.fold import Fold
from matchpod.storage import unfinished
from matchpod.storage.raw_log import RawEntry
from matchpod.storage.servers import ServerRow

KILL = 8
"""A kill in the middle of a match."""


class BuggyKills:
    """Raises on the kills with these numbers, counted from 1 over the whole test; always on the same lines."""

    def __init__(self, numbers: set[int]) -> None:
        self._numbers = numbers
        self._seen: dict[tuple[int, str], int] = {}
        self.raised = 0

    def __call__(self, combat: Combat, at_ms: int, line: player_lines.Killed) -> GameEvent | None:
        number = self._seen.setdefault((at_ms, repr(line)), len(self._seen) + 1)
        if number in self._numbers:
            self.raised += 1
            raise KeyError(line.weapon)
        return combat.killed(at_ms, line)


def break_kills(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> BuggyKills:
    bug = BuggyKills(set(numbers))
    monkeypatch.setitem(interpreter._COMBAT, player_lines.Killed, bug)
    return bug


def failing_seq(entries: Sequence[RawEntry], row: ServerRow) -> int:
    """The number of the first entry that cannot be applied."""
    fold = Fold.begin(row, 1.0)
    for entry in entries:
        try:
            fold.apply(entry)
        except KeyError:
            return entry.seq
    raise AssertionError("all entries can be applied")


async def set_aside(db: Database, server_id: str = "srv_1") -> list[int]:
    return [one.seq for one in await unfinished.of_server(db, server_id)]
