"""Measure where the time of the whole fold goes: run it several times, each time with one more stage enabled.

The difference between two runs is the time of the stage in between. Disabled stages return at once, so the path through
the code stays the same.
"""

from __future__ import annotations

from collections.abc import Callable

from cs2_protocol.log_lines.reader import Line, LineReader
from cs2_protocol.log_lines.world_lines import LogFileClosed
from matchpod.core.anticheat.detectors import Detectors
from matchpod.core.effects import Effect
from matchpod.core.events import CheatSuspected, Event, GameEvent
from matchpod.core.match.match import Match
from matchpod.core.stats.ledger import Ledger
from matchpod.core.views.timeline import Timeline
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.map_flow import MapFlow
from matchpod.cs2.match_reader import MatchReader
from tests.bench.workload import Workload

Run = Callable[[], object]

_IGNORED_LINE = LogFileClosed()


class _NoLines(LineReader):
    def read(self, raw: bytes) -> tuple[int | None, Line]:
        return 0, _IGNORED_LINE


class _PrefixesOnly(LineReader):
    def parse(self, text: str) -> Line:
        return _IGNORED_LINE


class _NoInterpreter(Interpreter):
    def read(self, at_ms: int, line: Line, out: list[GameEvent]) -> None:
        pass


class _NoMatch(Match):
    def apply(self, event: GameEvent, now_ms: int) -> list[Effect]:
        return []


class _NoDetectors(Detectors):
    def apply(self, event: GameEvent) -> list[CheatSuspected]:
        return []


class _NoLedger(Ledger):
    def apply(self, event: Event) -> None:
        pass


def stages(workload: Workload) -> dict[str, Run]:
    """Return the runs by the last stage that is enabled, in order; the last one is the whole fold."""
    settings = workload.settings

    def without_interpreter(lines: LineReader) -> MatchReader:
        interpreter = _NoInterpreter(MapFlow.of(settings))
        return MatchReader(match=Match.create(settings, 0), interpreter=interpreter, lines=lines, timeline=Timeline())

    def without_match() -> MatchReader:
        return MatchReader(
            match=_NoMatch.create(settings, 0), interpreter=Interpreter.of(settings), timeline=Timeline()
        )

    def without_detectors() -> MatchReader:
        reader = MatchReader.create(settings, 0)
        reader.match.watch = _NoDetectors()
        return reader

    def without_ledger() -> MatchReader:
        reader = without_detectors()
        reader.match.current_map.ledger = _NoLedger()
        return reader

    def run_with(make: Callable[[], MatchReader]) -> Run:
        def run() -> None:
            read_post = make().read_post
            for post in workload.posts:
                read_post(post)

        return run

    return {
        "posts to lines, and the loop": run_with(lambda: without_interpreter(_NoLines())),
        "decoding, prefix and time": run_with(lambda: without_interpreter(_PrefixesOnly())),
        "player token and grammar": run_with(lambda: without_interpreter(LineReader())),
        "interpretation": run_with(without_match),
        "match, presence, map": run_with(without_ledger),
        "ledger": run_with(without_detectors),
        "anti-cheat detectors": run_with(lambda: MatchReader.create(settings, 0)),
    }
