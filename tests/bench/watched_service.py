"""Run `matchpod serve` and record when it publishes items to stream readers.

The program is unchanged, except that every call of `Streams.publish`, right after the commit, writes one line to a file.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from matchpod.__main__ import main
from matchpod.service.streams.map_streams import Streams

PUBLICATIONS = "BENCH_PUBLICATIONS"
"""Environment variable: the file for publications, with time, map id, number of the first item and count."""


def record_publications(file: Path) -> None:
    """Record every publication with its time."""
    output = file.open("w", buffering=1 << 20)
    atexit.register(output.close)
    publish = Streams.publish

    def recording_publish(self: Streams, map_id: str, first_seq: int, lines: Sequence[bytes]) -> None:
        output.write(f"{time.monotonic():.6f} {map_id} {first_seq} {len(lines)}\n")
        publish(self, map_id, first_seq, lines)

    Streams.publish = recording_publish  # type: ignore[method-assign]  # all publications go through it


if __name__ == "__main__":
    record_publications(Path(os.environ[PUBLICATIONS]))
    sys.argv[1:] = ["serve"]
    main()
