"""Check that no file of the checkout uses an avoided word.

Print each use with its location, and exit with 1 if there are any.

The words hide who does what ("whoever drives it") or read as old-fashioned. Words that are data are allowed: a string
that is just such a word, the HE grenade, and the lines in EXCEPTIONS.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.check_layout import repository_files

_ROLE = "name the role: the caller, the process, a player, an operator"
_THEY = "they, them or their for people, it or its for programs"

SUGGESTIONS = {
    "whoever": f"{_ROLE}; or: regardless of who",
    "whomever": f"{_ROLE}; or: regardless of whom",
    "somebody": _ROLE,
    "nobody": "no caller, no process, no player",
    "he": _THEY,
    "him": _THEY,
    "his": _THEY,
    "himself": "themselves for people, itself for programs",
    "so many": "N, or at most N",
    "no more": "no longer, none left, or at most N",
}
"""The avoided words, and what to write instead."""

SKIPPED = (
    "uv.lock",
    "docs/example.log",
    "src/matchpod/web/openapi/assets/examples.json",
    "tests/golden/",
    "scripts/check_words.py",
    "tests/unit/test_word_rules.py",
)
"""Files and folders that are not checked: generated files, recorded data, and this check with its test."""

EXCEPTIONS = (
    ("src/matchpod/core/views/leaderboard.py", "he: Annotated", "API field: HE grenades"),
    ("src/matchpod/core/views/leaderboard.py", "he=line.he_thrown", "API field: HE grenades"),
    ("packages/cs2-simulator/src/cs2_simulator/play/people/chatter.py", "he was one hp", "chat of simulated players"),
    (
        "packages/cs2-simulator/src/cs2_simulator/play/people/interruptions.py",
        "restore pls, he crashed",
        "chat of simulated players",
    ),
    ("tests/bench/history_cases.py", "he=1", "API field: HE grenades"),
    ("tests/contract/test_database.py", "postgresql://nobody@", "a database user"),
    ("tests/contract/test_history.py", "he=0", "API field: HE grenades"),
    ("tests/unit/web/histories.py", "he=1", "API field: HE grenades"),
)
"""Lines that may contain an avoided word: file, text on the line, and reason."""

_WORD = re.compile(
    # Allowed: the grenade `HE`, a string that consists of the word only, and the phrase "no more than".
    r"(?<!\w)(?P<quote>[\"'`]?)(?P<word>(?-i:(?!HE\b))(?:" + "|".join(SUGGESTIONS) + r"))(?!\w)(?! than\b)",
    re.IGNORECASE,
)


def find_faults(root: Path) -> list[str]:
    """Return all faults of the checkout at `root`."""
    return [fault for file in repository_files(root) for fault in file_faults(file, file.relative_to(root).as_posix())]


def file_faults(file: Path, path: str) -> Iterator[str]:
    """Yield the uses of avoided words in a file. Skipped, deleted and binary files have none."""
    if path.startswith(SKIPPED) or not file.is_file():
        return
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return  # a binary file
    allowed = [part for exempt, part, _ in EXCEPTIONS if exempt == path]
    for number, line in enumerate(text.split("\n"), start=1):
        for word in words_in(line):
            if not any(part in line for part in allowed):
                yield f"{path}:{number} {word!r}: write {SUGGESTIONS[word.lower()]}"


def words_in(line: str) -> Iterator[str]:
    """Yield the avoided words in a line, spelled as in the line."""
    for found in _WORD.finditer(line):
        quote, word = found["quote"], found["word"]
        is_whole_string = bool(quote) and line.startswith(quote, found.end())
        if not is_whole_string:
            yield word


def main(root: Path) -> int:
    """Print the faults of the checkout."""
    faults = find_faults(root)
    for fault in faults:
        print(fault)
    print(f"words: {len(faults)} faults" if faults else "words: no faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
