"""Where does the time of the whole fold go? The fold again and again, each time with one more stage doing its work.

The difference between two such readings is what the stage in between takes. Stages that are switched off answer at
once, so the way through the code stays the same.
"""

from __future__ import annotations

from collections.abc import Callable

from matchpod.core.anticheat.watch import Watch
from matchpod.core.effects import Effect
from matchpod.core.events import CheatSuspected, Event, GameEvent
from matchpod.core.match import Match
from matchpod.core.stats.ledger import Ledger
from matchpod.core.timeline import Timeline
from matchpod.cs2.interpreter import Interpreter
from matchpod.cs2.log_lines.reader import Line, LineReader
from matchpod.cs2.log_lines.world_lines import LogFileClosed
from matchpod.cs2.map_flow import MapFlow
from matchpod.cs2.match_reader import MatchReader
from tests.bench.workload import Workload

Run = Callable[[], object]

_MEANS_NOTHING = LogFileClosed()


class _NoLines(LineReader):
    def read(self, raw: bytes) -> tuple[int | None, Line]:
        return 0, _MEANS_NOTHING


class _OnlyPrefixes(LineReader):
    def parse(self, said: str) -> Line:
        return _MEANS_NOTHING


class _NoInterpreter(Interpreter):
    def read(self, at_ms: int, line: Line, out: list[GameEvent]) -> None:
        pass


class _NoMatch(Match):
    def apply(self, event: GameEvent, now_ms: int) -> list[Effect]:
        return []


class _NoWatch(Watch):
    def see(self, event: GameEvent) -> list[CheatSuspected]:
        return []


class _NoLedger(Ledger):
    def apply(self, event: Event) -> None:
        pass


def stages(workload: Workload) -> dict[str, Run]:
    """The readings by the last stage that works in each, in order; the last one is the whole fold."""
    settings = workload.settings

    def without_interpreter(lines: LineReader) -> MatchReader:
        interpreter = _NoInterpreter(MapFlow.of(settings))
        return MatchReader(match=Match.create(settings, 0), interpreter=interpreter, lines=lines, timeline=Timeline())

    def without_match() -> MatchReader:
        return MatchReader(
            match=_NoMatch.create(settings, 0), interpreter=Interpreter.of(settings), timeline=Timeline()
        )

    def without_watch() -> MatchReader:
        reader = MatchReader.create(settings, 0)
        reader.match.watch = _NoWatch()
        return reader

    def without_ledger() -> MatchReader:
        reader = without_watch()
        reader.match.current_map.ledger = _NoLedger()
        return reader

    def reading(make: Callable[[], MatchReader]) -> Run:
        def run() -> None:
            read_post = make().read_post
            for post in workload.posts:
                read_post(post)

        return run

    return {
        "posts to lines, and the loop": reading(lambda: without_interpreter(_NoLines())),
        "decoding, prefix and time": reading(lambda: without_interpreter(_OnlyPrefixes())),
        "player token and grammar": reading(lambda: without_interpreter(LineReader())),
        "interpretation": reading(without_match),
        "match, presence, map": reading(without_ledger),
        "ledger": reading(without_watch),
        "anti-cheat detectors": reading(lambda: MatchReader.create(settings, 0)),
    }
