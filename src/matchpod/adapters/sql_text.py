"""Translate portable SQL statements to PostgreSQL.

The service's statements have `:name` parameters and the type BLOB. PostgreSQL numbers its parameters, calls the type
BYTEA, and has no tables WITHOUT ROWID. Everything else is kept as it is, including quoted text and comments.
"""

from __future__ import annotations

import re

import msgspec

_PIECE = re.compile(
    r"""
      (?P<kept>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | ::)
    | :(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<bytes>\bBLOB\b)
    | (?P<rowid>\bWITHOUT[ ]ROWID\b)
    | (?P<rows>\bRETURNING\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUERY = re.compile(r"\s*(SELECT|WITH|VALUES|SHOW)\b", re.IGNORECASE)


class NumberedSql(msgspec.Struct, frozen=True):
    """A statement for PostgreSQL. `names[0]` is the name of the parameter `$1`, and so on."""

    text: str
    names: tuple[str, ...]
    returns_rows: bool


def number_parameters(sql: str) -> NumberedSql:
    """Translate a statement. A name that occurs several times gets one number."""
    names: list[str] = []
    returns_rows = _QUERY.match(sql) is not None

    def translate(piece: re.Match[str]) -> str:
        nonlocal returns_rows
        if name := piece["name"]:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        if piece["bytes"]:
            return "BYTEA"
        if piece["rowid"]:
            return ""
        if piece["rows"]:
            returns_rows = True
        return piece[0]

    text = _PIECE.sub(translate, sql)
    return NumberedSql(text, tuple(names), returns_rows)
