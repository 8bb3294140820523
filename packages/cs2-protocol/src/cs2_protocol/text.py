"""Find characters that are not allowed in a console argument."""

from __future__ import annotations

import unicodedata

UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of invisible characters, which some parsers treat specially: control, format, surrogate,
separator."""


def unprintable_in(text: str) -> str | None:
    """Return the first control, format, surrogate or line-separator character as `U+XXXX`, or None."""
    if text.isascii() and text.isprintable():  # fast path for the common case
        return None
    for character in text:
        if unicodedata.category(character) in UNPRINTABLE:
            return f"U+{ord(character):04X}"
    return None
