"""When does the service hand an item to its readers, and where does its time go? `matchpod serve` that takes notes.

It is the same program; every call of `Streams.publish`, which comes right after the commit, leaves one line in a file.
With a second file, the stack is noted every few milliseconds of CPU time as well, which costs some of it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from matchpod.__main__ import main
from matchpod.service.history.streams import Streams

NOTES = "BENCH_NOTES"
"""The variable that names the file of what was published: when, which map, from which item on, how many."""
SAMPLES = "BENCH_SAMPLES"
"""The variable that names the file of stacks and how often each was seen; without it none are taken."""
SAMPLE_S = 0.004
"""Of CPU time of all threads: the clock of the system counts no finer."""


def note_publications(file: Path) -> None:
    """Write down what is published, at the time it is."""
    notes = file.open("w", buffering=1 << 20)
    atexit.register(notes.close)
    publish = Streams.publish

    def noting(self: Streams, map_id: str, first_seq: int, lines: Sequence[bytes]) -> None:
        notes.write(f"{time.monotonic():.6f} {map_id} {first_seq} {len(lines)}\n")
        publish(self, map_id, first_seq, lines)

    Streams.publish = noting  # type: ignore[method-assign]  # the one place where everything passes


def sample(file: Path) -> None:
    """Count the stacks of the thread of the event loop."""
    stacks: Counter[str] = Counter()

    def look(_number: int, frame: FrameType | None) -> None:
        names: list[str] = []
        while frame is not None:
            code = frame.f_code
            names.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
            frame = frame.f_back
        stacks[";".join(reversed(names))] += 1

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        file.write_text("".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))

    signal.signal(signal.SIGPROF, look)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    atexit.register(write)


if __name__ == "__main__":
    note_publications(Path(os.environ[NOTES]))
    if SAMPLES in os.environ:
        sample(Path(os.environ[SAMPLES]))
    sys.argv[1:] = ["serve"]
    main()
