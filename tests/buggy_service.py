"""Run `matchpod` with bugs: an entry of one match raises an error, kills the process, or hangs.

`python -m tests.buggy_service serve`. A bug is a file in the folder that BUG_FOLDER names: `server_id seq`. With `seq` 0
it is in the next log post of the match; then the number is written into the file, so that the bug outlives the process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from matchpod.__main__ import main
from matchpod.cs2.match_reader import ReadResult
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.storage.raw_log import RawEntry

BUG_FOLDER = "CHAOS_BUG_FOLDER"
STALL_S = 2.0
BUGS = ("raise", "die", "hang", "spin", "stall")

_apply = Fold.apply


def put_bug(folder: Path, what: str, server_id: str, seq: int = 0) -> None:
    """Put a bug into all processes that use this folder: `raise`, `die`, `hang`, `spin` (never ends) or `stall` (2 s)."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{what}.draft"
    draft.write_text(f"{server_id} {seq}")
    draft.rename(folder / what)


def read_bug(folder: Path, what: str) -> tuple[str, int] | None:
    """The server and the entry of a bug; None if there is none."""
    try:
        server_id, seq = (folder / what).read_text().split()
    except FileNotFoundError:
        return None
    return server_id, int(seq)


def _apply_with_bug(fold: Fold, entry: RawEntry) -> ReadResult:
    folder = Path(os.environ[BUG_FOLDER])
    for what in BUGS if folder.exists() and entry.kind == EntryKind.LOG else ():
        bug = read_bug(folder, what)
        if bug == (entry.server_id, 0):
            put_bug(folder, what, *(entry.server_id, entry.seq) if what != "stall" else ("none",))
        elif bug != (entry.server_id, entry.seq):
            continue
        _cause(what, fold)
    return _apply(fold, entry)


def _cause(what: str, fold: Fold) -> None:
    match what:
        case "raise":
            fold.reader.lines_read += 1  # half changed
            raise KeyError("a bug in the fold")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            time.sleep(3600)
        case "spin":
            _hold_the_interpreter()
        case _:
            time.sleep(STALL_S)


def _hold_the_interpreter() -> None:
    """Compute without ever releasing the lock of the interpreter."""
    sum(range(10**15))


if __name__ == "__main__":
    if BUG_FOLDER in os.environ:
        setattr(Fold, "apply", _apply_with_bug)  # noqa: B010 - mypy rejects the assignment of a method
    sys.argv[0] = "matchpod"
    main()
