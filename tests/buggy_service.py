"""Run `matchpod` with bugs: an entry of one match raises an error, kills the process, or hangs; answers are lost.

`python -m tests.buggy_service serve`. A bug is a file in the folder that BUG_FOLDER names: `server_id seq`. With `seq` 0
it is in the next log post of the match; then the number is written into the file, so that the bug outlives the process.
`die_resumed` is in every entry `resumed` of the match, which the service itself appends.
The file `lose` has the share of the writes whose answers are lost: they are committed, but the writer gets an error.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any

from matchpod.__main__ import main
from matchpod.adapters.postgres import PostgresDatabase
from matchpod.adapters.sqlite import SqliteDatabase
from matchpod.cs2.match_reader import ReadResult
from matchpod.ports import DatabaseUnavailableError, Row, Statement
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.storage.raw_log import RawEntry

BUG_FOLDER = "CHAOS_BUG_FOLDER"
STALL_S = 2.0
BUGS = ("raise", "die", "hang", "spin", "stall")
DIE_RESUMED = "die_resumed"
DIED = "died"
LOSE, LOST = "lose", "lost"

Write = Callable[[Any, Sequence[Statement]], Coroutine[None, None, list[list[Row]]]]

_apply = Fold.apply


def put_bug(folder: Path, what: str, server_id: str, seq: int = 0) -> None:
    """Put a bug into all processes that use this folder: one of BUGS (`spin` never ends, `stall` takes 2 s), or
    DIE_RESUMED.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / what, f"{server_id} {seq}")


def read_bug(folder: Path, what: str) -> tuple[str, int] | None:
    """The server and the entry of a bug; None if there is none."""
    try:
        server_id, seq = (folder / what).read_text().split()
    except FileNotFoundError:
        return None
    return server_id, int(seq)


def remove_bugs(folder: Path) -> None:
    """Remove all bugs; what they caused stays counted."""
    for what in (*BUGS, DIE_RESUMED, LOSE):
        (folder / what).unlink(missing_ok=True)


def count_deaths(folder: Path) -> int:
    """Return how many processes died of a bug."""
    return _counted(folder / DIED)


def lose_answers(folder: Path, share: float, seed: int) -> None:
    """Lose the answers to a share of the writes in all processes that use this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _put(folder / LOSE, f"{share} {seed}")


def keep_answers(folder: Path) -> None:
    """Lose no further answers."""
    (folder / LOSE).unlink(missing_ok=True)


def count_lost_answers(folder: Path) -> int:
    """Return how many answers were lost."""
    return _counted(folder / LOST)


def _count(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b".")


def _counted(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _put(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.rename(path)


def _apply_with_bug(fold: Fold, entry: RawEntry) -> ReadResult:
    folder = Path(os.environ[BUG_FOLDER])
    for what in BUGS if folder.exists() and entry.kind == EntryKind.LOG else ():
        bug = read_bug(folder, what)
        if bug == (entry.server_id, 0):
            put_bug(folder, what, *(entry.server_id, entry.seq) if what != "stall" else ("none",))
        elif bug != (entry.server_id, entry.seq):
            continue
        _cause(what, fold, folder)
    if entry.kind == EntryKind.RESUMED and read_bug(folder, DIE_RESUMED) == (entry.server_id, 0):
        _cause("die", fold, folder)
    return _apply(fold, entry)


def _cause(what: str, fold: Fold, folder: Path) -> None:
    match what:
        case "raise":
            fold.reader.lines_read += 1  # half changed
            raise KeyError("a bug in the fold")
        case "die":
            _count(folder / DIED)
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


class _Losses:
    """Decides which answers are lost, by the seed in the file and the process; counts them in another file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOSE
        self._lost = folder / LOST
        self._chance: Random | None = None

    def is_next(self) -> bool:
        """True if the next answer is lost."""
        try:
            share, seed = self._path.read_text().split()
        except FileNotFoundError:
            return False
        self._chance = self._chance or Random(f"{seed} {os.getpid()}")
        if self._chance.random() >= float(share):
            return False
        _count(self._lost)
        return True


def _losing(write: Write, losses: _Losses) -> Write:
    async def write_and_lose(database: Any, statements: Sequence[Statement]) -> list[list[Row]]:
        rows = await write(database, statements)
        if losses.is_next():
            raise DatabaseUnavailableError("the answer was lost")
        return rows

    return write_and_lose


def _install_bugs(folder: Path) -> None:
    losses = _Losses(folder)
    # Not as assignments: mypy rejects those of methods.
    setattr(Fold, "apply", _apply_with_bug)  # noqa: B010
    for database in (SqliteDatabase, PostgresDatabase):
        setattr(database, "write", _losing(database.write, losses))  # noqa: B010


if __name__ == "__main__":
    if BUG_FOLDER in os.environ:
        _install_bugs(Path(os.environ[BUG_FOLDER]))
    sys.argv[0] = "matchpod"
    main()
