"""Labels as they are written in filters."""

from __future__ import annotations

import pytest

from matchpod.core.labels import Label, read_label


@pytest.mark.parametrize(
    ("text", "name", "value"), [("event:finals", "event", "finals"), ("at:12:30", "at", "12:30"), ("a: b", "a", " b")]
)
def test_name_ends_at_the_first_colon(text: str, name: str, value: str) -> None:
    assert read_label(text) == Label(name, value)
    assert str(read_label(text)) == text
