"""Print how many lines each room (package or folder) has, and how many were added and removed since the latest release.

This is information only. Each change adds a few lines, and without this table the total would go unnoticed.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    # Make `tests` importable from the checkout when this file is run as a script.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from tests.last_release import COMMIT, ROOT, VERSION

TESTS = "tests"
GENERATED = frozenset({"uv.lock"})


class Lines(NamedTuple):
    """Number of lines of a room: now, and added and removed since the latest release."""

    now: int
    added: int
    removed: int


def room_of(path: str) -> str:
    """Return the room of a file, such as `src/matchpod/core`, `packages/cs2-protocol`, `tests` or `docs`."""
    first, *rest = path.split("/")
    if not rest:
        return "/"
    if first == "packages":
        return TESTS if rest[1].endswith("_tests") else f"packages/{rest[0]}"
    if first == "src":
        return "/".join(["src", rest[0], *(rest[1:2] if len(rest) > 2 else [])])
    return first


def changes(numstat: str) -> dict[str, tuple[int, int]]:
    """Return the added and removed lines by path, from `git diff --numstat -z`. Binary files count as 0 lines."""
    rows = [row.split("\t") for row in numstat.split("\0") if row]
    return {path: (0, 0) if added == "-" else (int(added), int(removed)) for added, removed, path in rows}


def count(sizes: Mapping[str, int], changed: Mapping[str, tuple[int, int]]) -> dict[str, Lines]:
    """Return the lines of each room, from the line counts of all files and the changes by path."""
    now: Counter[str] = Counter()
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for path, lines in sizes.items():
        now[room_of(path)] += lines
    for path, (plus, minus) in changed.items():
        added[room_of(path)] += plus
        removed[room_of(path)] += minus
    return {room: Lines(now[room], added[room], removed[room]) for room in sorted({*now, *removed})}


def table(rooms: Mapping[str, Lines]) -> str:
    """Return the table of rooms as text, with the sums of the source and of all rooms."""
    source = [lines for room, lines in rooms.items() if room.startswith(("src", "packages"))]
    text = [f"{'lines':<28}{'now':>8}  since {VERSION}"]
    for room, lines in {**rooms, "source": _sum(source), "all": _sum([*rooms.values()])}.items():
        growth = lines.added - lines.removed
        text.append(f"{room:<28}{lines.now:>8}  {growth:+d} (+{lines.added} -{lines.removed})")
    return "\n".join(text)


def _sum(lines: Sequence[Lines]) -> Lines:
    return Lines(*map(sum, zip((0, 0, 0), *lines, strict=True)))


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(ROOT), *arguments)
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def _lines(path: Path) -> int:
    content = path.read_bytes()
    return 0 if b"\0" in content else content.count(b"\n")


def main() -> int:
    """Print the table, or the reason why it cannot be computed."""
    try:
        changed = changes(_git("diff", "--numstat", "--no-renames", "-z", COMMIT))
        paths = [path for path in _git("ls-files", "-z").split("\0") if path and (ROOT / path).is_file()]
    except (OSError, subprocess.CalledProcessError):
        print(f"lines: the commit of {VERSION} is not in this checkout, so nothing is compared")
        return 0
    sizes = {path: _lines(ROOT / path) for path in paths if path not in GENERATED}
    print(table(count(sizes, {path: lines for path, lines in changed.items() if path not in GENERATED})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
