"""How does a command show what it found? A table or JSON on standard output, words beside it on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from typing import Final, TypeAlias, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

LINE_CHARACTERS: Final = 2_000
"""More than any line of a listing has: an item is one line, in a pipe and in a narrow window, and no id is cut."""
NOTHING: Final = "-"
"""Stands in a table where there is no value, so that columns can be counted."""

_S = TypeVar("_S", bound=msgspec.Struct)

Columns: TypeAlias = Mapping[str, Callable[[_S], str | None]]
"""The heads of a table, and what an item shows under each."""


def print_listing(items: Sequence[_S], columns: Columns[_S], *, as_json: bool) -> None:
    """Print all items: one line each under the heads of `columns`, or an array of JSON objects with all fields."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(items), indent=2))
        return
    table = Table(box=None, pad_edge=False, header_style="")
    for head in columns:
        table.add_column(head, overflow="fold")
    for item in items:
        table.add_row(*(Text(harmless(cell(item) or NOTHING)) for cell in columns.values()))  # Text: no markup
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # names hold what a terminal may not be able to show
    Console(width=LINE_CHARACTERS).print(table, soft_wrap=True)


def minute(at: str | None) -> str | None:
    """A time of the API as a table has room for it: `2026-01-31 18:05`, in UTC."""
    return None if at is None else at[:16].replace("T", " ")


def harmless(text: str) -> str:
    """The text with all escaped that could drive a terminal or turn a line around: callers and servers wrote it."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def say(sentence: str) -> None:
    """Tell the person at the terminal, beside the result."""
    typer.echo(f"matchpod: {sentence}", err=True)
