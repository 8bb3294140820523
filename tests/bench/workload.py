"""Load the real log of one whole match for the benchmark."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from cs2_protocol.log_batches import LogPost
from cs2_protocol.log_clock import format_stamp, parse_stamp
from matchpod.core.events import RoundStarted
from matchpod.core.match.match import MatchPhase
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.cs2.match_reader import MatchReader
from tests.corpus_folder import corpus_dir

REAL_LOG = "cs2-5v5-inferno.log"
POST_BYTES = 4096
INSTANCE_TOKEN = "7be6ded70c65df71"
NETWORK_MS = 80

_FILE_PREFIX = re.compile(rb"^L (\d\d/\d\d/\d{4} - \d\d:\d\d:\d\d): ", re.MULTILINE)


@dataclass(frozen=True)
class Workload:
    """One match as bytes, as lines of a file, and as log posts."""

    data: bytes
    lines: list[bytes]
    settings: GameSettings
    posts: list[LogPost]
    busy_posts: list[LogPost]
    """The same log with a different time stamp on every line; a real server has one per tick. The worst case."""


def real_log() -> Path:
    """Return the path of the real log; end this process with a sentence if there is none."""
    path = corpus_dir() / REAL_LOG
    if not path.is_file():
        print(
            f"log reading skipped: there is no {path}; set MATCHPOD_CORPUS to the folder of real logs", file=sys.stderr
        )
        sys.exit()
    return path


def load_workload() -> Workload:
    """Return the match to read."""
    data = real_log().read_bytes()
    lines = lines_in(data)
    workload = Workload(
        data=data,
        lines=lines,
        settings=_settings_of(lines),
        posts=_split_into_posts(_FILE_PREFIX.sub(rb"\1.000 - ", data)),
        busy_posts=_split_into_posts(_with_unique_times(data)),
    )
    _check(workload)
    return workload


def lines_in(data: bytes) -> list[bytes]:
    """Return the lines of a log file."""
    return [line for line in data.split(b"\n") if line]


def _settings_of(lines: list[bytes]) -> GameSettings:
    """Return the settings of a competitive match whose rosters list the ten players of the log."""
    open_to_all = GameSettings(match_type=MatchType.COMPETITIVE, maps=("de_inferno",))
    events = MatchReader.create(open_to_all, 0).read_file(lines).events
    first = next(event for event in events if isinstance(event, RoundStarted))
    return GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=("de_inferno",),
        team1=TeamRoster("Reds", first.team1),
        team2=TeamRoster("Blues", first.team2),
    )


def _with_unique_times(data: bytes) -> bytes:
    count = 0
    second = b""

    def unique_time(found: re.Match[bytes]) -> bytes:
        nonlocal count, second
        count = count + 1 if found[1] == second else 0
        second = found[1]
        return b"%b.%03d - " % (second, count % 1000)

    return _FILE_PREFIX.sub(unique_time, data)


def _split_into_posts(data: bytes) -> list[LogPost]:
    posts = []
    for begin in range(0, len(data), POST_BYTES):
        body = data[begin : begin + POST_BYTES]
        sent_ms = _last_time(data[: begin + len(body)])
        posts.append(
            LogPost(
                body=body,
                received_ms=sent_ms + NETWORK_MS,
                begin=begin,
                end=begin + len(body),
                instance_token=INSTANCE_TOKEN,
                game_map="de_inferno",
                sent_ms=sent_ms,
            )
        )
    return posts


def _last_time(data: bytes) -> int:
    line = data[data.rindex(b"\n", 0, data.rindex(b"\n")) + 1 :]
    sent_ms = parse_stamp(line[: len(format_stamp(0, millis=True))].decode())
    if sent_ms is None:
        raise ValueError("line without a time stamp")
    return sent_ms


def _check(workload: Workload) -> None:
    """Raise ValueError unless all three forms of the log are read to the same end of the match."""
    readers = [MatchReader.create(workload.settings, 0) for _ in range(3)]
    readers[0].read_file(workload.lines)
    for reader, posts in zip(readers[1:], (workload.posts, workload.busy_posts), strict=True):
        for post in posts:
            reader.read_post(post)
    ends = {(reader.match.phase, reader.match.winner, reader.lines_read, reader.lines_unknown) for reader in readers}
    if len(ends) != 1 or readers[0].match.phase is not MatchPhase.OVER:
        raise ValueError(f"the three forms of the log differ, or the match does not end: {ends}")
