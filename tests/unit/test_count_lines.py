"""`make check` prints lines by room, and what came and went since the last release."""

from __future__ import annotations

import pytest

from scripts.count_lines import Lines, changes, count, room_of, table


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("README.md", "/"),
        ("src/matchpod/ports.py", "src/matchpod"),
        ("src/matchpod/core/match/match.py", "src/matchpod/core"),
        ("packages/cs2-protocol/src/cs2_protocol/rcon.py", "packages/cs2-protocol"),
        ("packages/cs2-protocol/pyproject.toml", "packages/cs2-protocol"),
        ("packages/cs2-protocol/protocol_tests/samples.py", "tests"),
        ("tests/unit/core/test_outcome.py", "tests"),
        ("docs/adr/README.md", "docs"),
    ],
)
def test_room_of_a_file(path: str, room: str) -> None:
    assert room_of(path) == room


def test_changes_are_summed_by_room_with_files_that_are_gone() -> None:
    changed = changes("\0".join(["3\t1\tdocs/new name.md", "0\t7\tdocs/gone.md", "-\t-\ttests/golden/some.xz", ""]))
    rooms = count({"docs/new name.md": 10, "src/matchpod/ports.py": 5, "tests/golden/some.xz": 0}, changed)
    assert rooms == {"docs": Lines(10, 3, 8), "src/matchpod": Lines(5, 0, 0), "tests": Lines(0, 0, 0)}
    assert table(rooms).splitlines()[-2:] == [
        f"{'source':<28}{5:>8}  +0 (+0 -0)",
        f"{'all':<28}{15:>8}  -5 (+3 -8)",
    ]
