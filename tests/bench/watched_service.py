"""Run `matchpod serve` and record when it publishes items to stream readers, and optionally a profile.

The program is unchanged, except that every call of `Streams.publish`, right after the commit, writes one line to a file.
With a second file, the stack is sampled every few milliseconds of CPU time, which costs some CPU itself.
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
from matchpod.service.streams.map_streams import Streams

PUBLICATIONS = "BENCH_PUBLICATIONS"
"""Environment variable: the file for publications, with time, map id, number of the first item and count."""
SAMPLES = "BENCH_SAMPLES"
"""Environment variable: the file for sampled stacks and their counts; without it nothing is sampled."""
SAMPLE_S = 0.004
"""Interval in CPU time of all threads; the system's clock has no finer resolution."""


def record_publications(file: Path) -> None:
    """Record every publication with its time."""
    output = file.open("w", buffering=1 << 20)
    atexit.register(output.close)
    publish = Streams.publish

    def recording_publish(self: Streams, map_id: str, first_seq: int, lines: Sequence[bytes]) -> None:
        output.write(f"{time.monotonic():.6f} {map_id} {first_seq} {len(lines)}\n")
        publish(self, map_id, first_seq, lines)

    Streams.publish = recording_publish  # type: ignore[method-assign]  # all publications go through it


def sample(file: Path) -> None:
    """Sample the stack of the event loop's thread; write the counts at exit."""
    stacks: Counter[str] = Counter()

    def on_signal(_number: int, frame: FrameType | None) -> None:
        names: list[str] = []
        while frame is not None:
            code = frame.f_code
            names.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
            frame = frame.f_back
        stacks[";".join(reversed(names))] += 1

    def write() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        file.write_text("".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))

    signal.signal(signal.SIGPROF, on_signal)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    atexit.register(write)


if __name__ == "__main__":
    record_publications(Path(os.environ[PUBLICATIONS]))
    if SAMPLES in os.environ:
        sample(Path(os.environ[SAMPLES]))
    sys.argv[1:] = ["serve"]
    main()
