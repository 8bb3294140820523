"""How is a recorded match read again from a terminal? Files in, a scoreboard or the result object out."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from matchpod import replay as recordings
from matchpod.core.model import MatchType, SeriesFormat
from matchpod.core.result import build_result
from matchpod.cs2.match_reader import MatchReader
from matchpod.scoreboard import scoreboard

PROGRESS_BYTES = 16 << 20
"""Smaller files are read before a bar could be seen."""

PIPE_COLUMNS = 120
"""Room for the longest names where there is no terminal to ask."""


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Log files or recorded log posts, in the order they were written."),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the result object instead of tables.")] = False,
    match_type: Annotated[
        MatchType | None, typer.Option("--match-type", help="What was played. Default: as the logs say.")
    ] = None,
    series_format: Annotated[
        SeriesFormat | None, typer.Option("--format", help="The series. Default: the shortest that fits the maps.")
    ] = None,
) -> None:
    """Read a recorded match again and print its scoreboard.

    Takes server log files (both prefixes), transcripts of log posts, or JSON lines of them. The maps of a series may
    be in one file or in several.
    """
    try:
        _print_match(_replay(files, match_type, series_format), as_json=json)
    except recordings.ReplayError as fault:
        typer.echo(f"matchpod: {fault}", err=True)
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise  # whoever read our output has had enough; typer ends quietly
    except OSError as fault:
        typer.echo(f"matchpod: {fault}", err=True)
        raise typer.Exit(1) from None


def _print_match(reader: MatchReader, *, as_json: bool) -> None:
    if as_json:
        if reader.match.outcome is None:
            typer.echo("matchpod: the log ends before the match does; this is what there is", err=True)
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(build_result(reader.match)), indent=2) + b"\n")
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # names hold what a terminal may not be able to show
        console = Console()
        if not console.is_terminal:
            console = Console(width=PIPE_COLUMNS)
        console.print(scoreboard(reader))
    sys.stdout.flush()


def _replay(files: list[Path], match_type: MatchType | None, series_format: SeriesFormat | None) -> MatchReader:
    opened = [recordings.open_recording(path) for path in files]
    total = sum(one.size for one in opened)
    console = Console(stderr=True)
    if total < PROGRESS_BYTES or not console.is_terminal:
        return recordings.replay(opened, match_type=match_type, series_format=series_format)
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=2 * total)  # once to look, once to read
        return recordings.replay(
            opened,
            match_type=match_type,
            series_format=series_format,
            progress=lambda read: bar.advance(task, read),
        )
