"""Listings escape text that could control the terminal."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.adapters.log_output import escape_unprintable
from matchpod.cli.terminal import print_listing


class Item(msgspec.Struct, frozen=True):
    """A line of a listing."""

    name: str | None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 😀", "plain ü 😀"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("a\nb\u2028c", "a\\nb\\u2028c"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_control_characters_in_a_cell_are_escaped(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert escape_unprintable(text) == shown
    print_listing([Item(text)], {"name": lambda one: one.name}, as_json=False)
    assert capsys.readouterr().out.splitlines()[1].rstrip() == shown
