"""Print results as tables or JSON to standard output, and notes to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
import typer

from matchpod.adapters.log_output import escape_unprintable

LINE_CHARACTERS: Final = 2_000
"""Width of tables, more than any line needs, so that each item is one complete line even in a pipe or narrow window."""
NOTHING: Final = "-"
"""Placeholder for a missing value, so that each line has the same number of columns."""

AsJson = Annotated[bool, typer.Option("--json", help="Print an array of objects instead of a table.")]
"""The `--json` option of commands that print lists."""

_S = TypeVar("_S", bound=msgspec.Struct)

Columns: TypeAlias = Mapping[str, Callable[[_S], str | None]]
"""Column headers, each with the function that formats an item's cell."""


def print_listing(items: Sequence[_S], columns: Columns[_S], *, as_json: bool) -> None:
    """Print the items as a table with one line per item, or as a JSON array with all fields."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(items), indent=2))
        return
    # Imported here, so that commands that print no table start quickly.
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
    """Print `?` for characters that standard output cannot encode, because names may have any characters."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def short_time(at: str | None) -> str | None:
    """Shorten a time of the API for a table: `2026-01-31 18:05`, in UTC."""
    return None if at is None else at[:16].replace("T", " ")


def print_note(sentence: str) -> None:
    """Print a text to standard error, separate from the result, with a prefix on each line."""
    for line in sentence.splitlines():
        typer.echo(f"matchpod: {line}", err=True)
