"""Replay a recorded match and print its scoreboard or its result: `matchpod replay`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from matchpod import replay as recordings
from matchpod.cli.resources import fail
from matchpod.cli.terminal import print_note, replace_unencodable
from matchpod.core.model import MatchType, SeriesFormat
from matchpod.core.views.result import build_result
from matchpod.cs2.match_reader import MatchReader
from matchpod.scoreboard import scoreboard

PROGRESS_BYTES = 16 << 20
"""Total size in bytes from which a progress bar is shown. Smaller files are read too quickly."""

PIPE_COLUMNS = 120
"""Width in characters of the output without a terminal; enough for the longest names."""


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Log files or recorded log posts, in the order they were written."),
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the result object instead of tables.")] = False,
    match_type: Annotated[
        MatchType | None, typer.Option("--match-type", help="The type of the match. Default: as in the logs.")
    ] = None,
    series_format: Annotated[
        SeriesFormat | None, typer.Option("--format", help="The series format. Default: the shortest that fits.")
    ] = None,
) -> None:
    """Replay a recorded match and print its scoreboard.

    Reads server log files, transcripts of log posts, or log posts as JSON lines. The maps of a series may be in one
    file or in several files.
    """
    try:
        _print_match(_replay(files, match_type, series_format), as_json=json)
    except recordings.ReplayError as exc:
        fail(str(exc), code=2)
    except BrokenPipeError:
        raise  # the pipe for our output was closed; typer exits quietly
    except OSError as exc:
        fail(str(exc))


def _print_match(reader: MatchReader, *, as_json: bool) -> None:
    if as_json:
        if reader.match.outcome is None:
            print_note("the log ends before the match does; the result is partial")
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(build_result(reader.match)), indent=2) + b"\n")
    else:
        replace_unencodable()
        console = Console()
        if not console.is_terminal:
            console = Console(width=PIPE_COLUMNS)
        console.print(scoreboard(reader))
    sys.stdout.flush()


def _replay(files: list[Path], match_type: MatchType | None, series_format: SeriesFormat | None) -> MatchReader:
    opened = [recordings.open_recording(path) for path in files]
    total = sum(file.size for file in opened)
    console = Console(stderr=True)
    if total < PROGRESS_BYTES or not console.is_terminal:
        return recordings.replay(opened, match_type=match_type, series_format=series_format)
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=2 * total)  # each file is read twice: in the survey and in the replay
        return recordings.replay(
            opened,
            match_type=match_type,
            series_format=series_format,
            progress=lambda read: bar.advance(task, read),
        )
