"""Print results to standard output, as tables or JSON, and notes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable

LINE_CHARACTERS: Final = 2_000
"""Width of tables in characters. No row needs that many, so each item is one complete line, even in a pipe or a narrow
window."""
NOTHING: Final = "-"
"""Placeholder for a missing value in a table, so that all lines have the same number of columns."""

AsJson = Annotated[bool, typer.Option("--json", help="Print an array of objects instead of a table.")]
"""The `--json` option of commands that print lists."""

_S = TypeVar("_S", bound=msgspec.Struct)

Columns: TypeAlias = Mapping[str, Callable[[_S], str | None]]
"""Table columns by header. Each column is a function that returns the text of an item's cell."""


def print_listing(items: Sequence[_S], columns: Columns[_S], *, as_json: bool) -> None:
    """Print the items as a table with one line per item, or as a JSON array with all their fields."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(items), indent=2))
        return
    # Imported here, so that commands without a table start quickly.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="")
    for head in columns:
        table.add_column(head, overflow="fold")
    for item in items:
        table.add_row(*(Text(escape_unprintable(cell(item) or NOTHING)) for cell in columns.values()))  # no markup
    replace_unencodable()
    Console(width=LINE_CHARACTERS).print(table, soft_wrap=True)


def command_group(help_text: str) -> typer.Typer:
    """Return a group of commands, such as `matchpod keys`."""
    return typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, help=help_text)


def replace_unencodable() -> None:
    """Let standard output replace characters that it cannot encode with `?`, because names may have any characters."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def short_time(at: str | None) -> str | None:
    """Shorten a time in the format of the API for a table: `2026-01-31 18:05`, in UTC."""
    return None if at is None else at[:16].replace("T", " ")


def print_note(sentence: str) -> None:
    """Print a text to standard error, apart from the result. Each line begins with `matchpod: `."""
    for line in sentence.splitlines():
        typer.echo(f"matchpod: {line}", err=True)
