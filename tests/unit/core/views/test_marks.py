"""Marks of matches, stored and read again."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from matchpod.core.views.marks import NO_MARKS, Marks, encode_marks, read_marks


def test_match_without_marks_stores_nothing() -> None:
    assert encode_marks({}, is_simulated=False) is None
    assert read_marks(None) == NO_MARKS == Marks(labels=UNSET, simulated=UNSET)


@pytest.mark.parametrize(
    ("labels", "is_simulated", "marks"),
    [
        ({"event": "finals", "table": "4"}, False, Marks(labels={"event": "finals", "table": "4"})),
        ({}, True, Marks(simulated=True)),
        ({"event": "ü"}, True, Marks(labels={"event": "ü"}, simulated=True)),
    ],
)
def test_stored_marks_are_read_again(labels: dict[str, str], *, is_simulated: bool, marks: Marks) -> None:
    assert read_marks(encode_marks(labels, is_simulated=is_simulated)) == marks


@pytest.mark.parametrize("stored", [b"", b"[]", b'{"labels":["a"]}', b'{"simulated":"yes"}'])
def test_marks_of_an_unknown_form_are_left_out(stored: bytes) -> None:
    assert read_marks(stored) == NO_MARKS


def test_marks_of_a_newer_version_are_ignored() -> None:
    assert read_marks(b'{"simulated":true,"league":7}') == Marks(simulated=True)
