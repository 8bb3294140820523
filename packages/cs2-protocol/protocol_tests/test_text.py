"""Invisible characters are found; letters of all scripts are not."""

from __future__ import annotations

import pytest

from cs2_protocol.text import unprintable_in


@pytest.mark.parametrize("text", ["", "plain", "Südermalm Fünf", "北京", "a b", "🦊"])
def test_visible_text_has_none(text: str) -> None:
    assert unprintable_in(text) is None


@pytest.mark.parametrize(("text", "found"), [("a\nb", "U+000A"), ("a\u202eb", "U+202E"), ("\ud800", "U+D800")])
def test_first_invisible_character_is_named(text: str, found: str) -> None:
    assert unprintable_in(text) == found
