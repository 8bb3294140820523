"""Lose single posts of a log, and compare what is then known with what the whole log says.

The law: losing a post changes only rounds that are named as missing, and what follows from them. The very last post is
an exception: nothing after it shows that it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.log_batches import LogPost
from cs2_protocol.log_clock import parse_stamp
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.stats.round_record import RoundRecord
from matchpod.cs2.match_reader import MatchReader

SILENCE_MS = 3_600_000
"""After this time without posts, every deadline has expired."""

LIST_MS = 5_000
"""How often the console lists the players while they are in doubt."""

_STAMP = re.compile(rb"(?:L )?(\d\d/\d\d/\d{4} - \d\d:\d\d:\d\d)")


@dataclass(frozen=True)
class Report:
    """A report of the match plugin."""

    received_ms: int
    body: bytes


@dataclass
class Losses:
    """What losing posts, one at a time, did to a match."""

    faults: list[str] = field(default_factory=list)
    """Differences from the whole log that are not named."""
    named: int = 0
    """Rounds that were named as missing, over all posts."""
    equal: int = 0
    """Those of them that are as in the whole log."""

    def add(self, other: Losses) -> None:
        self.faults += other.faults
        self.named += other.named
        self.equal += other.equal


def posts_by_second(data: bytes) -> list[LogPost]:
    """Split a log file into posts, one for all lines with the same time stamp."""
    posts: list[LogPost] = []
    begin, at_ms = 0, 0
    for stamp, group in groupby(data.splitlines(keepends=True), key=_time_of):
        body, at_ms = b"".join(group), stamp or at_ms
        end = begin + len(body)
        posts.append(LogPost(body=body, received_ms=at_ms, begin=begin, end=end, instance_token="a1"))
        begin = end
    return posts


def lose_posts(
    new_reader: Callable[[], MatchReader],
    received: Sequence[LogPost | Report],
    lost: Collection[int],
    *,
    has_console: bool = False,
) -> Losses:
    """Read a match without each of the posts at these indexes in turn. A console lists the players after a loss."""
    whole, lists = new_reader(), []
    for item in received:
        _read(whole, [item])
        lists.append({who: one.name for who, one in whole.match.presence.connected.items()})
    _finish(whole, received)
    losses, reader = Losses(), new_reader()
    for index, item in enumerate(received[:-1]):
        if index in lost and isinstance(item, LogPost):
            found = _read(_copy(reader), received[index + 1 :], lists[index:] if has_console else None)
            _compare(_finish(found, received), whole, losses, f"{index} {item.body[:60]!r}")
        _read(reader, [item])
    return losses


def read_all(reader: MatchReader, received: Sequence[LogPost | Report]) -> MatchReader:
    """Read everything, and wait until all deadlines have expired."""
    return _finish(_read(reader, received), received)


def _read(
    reader: MatchReader, items: Sequence[LogPost | Report], lists: Sequence[dict[PlayerId, str]] | None = None
) -> MatchReader:
    """Read items; `lists` has who is on the server before each of them."""
    listed_ms = 0
    for number, item in enumerate(items):
        now_ms = item.received_ms
        if lists is not None and reader.match.presence.is_doubtful and now_ms >= listed_ms + LIST_MS:
            listed_ms = now_ms
            reader.read_presence(lists[number], now_ms)
        tick_until(reader, now_ms)
        if isinstance(item, LogPost):
            reader.read_post(item)
        else:
            reader.read_report(item.body, now_ms)
    return reader


def _finish(reader: MatchReader, received: Sequence[LogPost | Report]) -> MatchReader:
    reader.read_held(None)
    tick_until(reader, received[-1].received_ms + SILENCE_MS)
    return reader


def tick_until(reader: MatchReader, now_ms: int) -> None:
    """Let the deadlines of a match pass until then."""
    for _ in range(100):
        due_ms = reader.next_deadline_ms()
        if due_ms is None or due_ms > now_ms:
            return
        reader.tick(due_ms)


def _compare(found: MatchReader, whole: MatchReader, losses: Losses, lost: str) -> None:
    maps, expected = found.match.maps, whole.match.maps
    if len(maps) != len(expected):
        losses.faults.append(f"{lost}: {len(maps)} maps instead of {len(expected)}")
        return
    for one, other in zip(maps, expected, strict=True):
        ours, theirs, named = _rounds(one), _rounds(other), set(one.missing_rounds)
        differ = {number for number in {*ours, *theirs} if ours.get(number) != theirs.get(number)}
        losses.named += len(named)
        losses.equal += len((named - differ) & theirs.keys())
        if differ - named:
            losses.faults.append(f"{lost}: rounds {sorted(differ)} of map {one.number}, named {sorted(named)}")
        if one.is_complete and _totals(one) != _totals(other):
            losses.faults.append(f"{lost}: {one.team1_score}:{one.team2_score} on map {one.number} as if complete")
        if one.winner not in (None, other.winner):
            losses.faults.append(f"{lost}: {one.winner} wins map {one.number}")


def _rounds(played: PlayedMap) -> dict[int, RoundRecord]:
    """All that is known about each round, without what says how it is known, and how much of it may be kept."""
    return {
        record.number: msgspec.structs.replace(
            record,
            team1=tuple(sorted(record.team1)),
            team2=tuple(sorted(record.team2)),
            is_cut=False,
            unseen=(),
            has_game_counts=False,
            max_rows=0,
        )
        for record in played.ledger.records()
    }


def _totals(played: PlayedMap) -> tuple[object, ...]:
    lines = {line.player_id: line for line in played.ledger.lines()}
    return played.status, played.winner, played.team1_score, played.team2_score, lines


def _copy(reader: MatchReader) -> MatchReader:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=MatchReader)


def _time_of(line: bytes) -> int | None:
    found = _STAMP.match(line)
    return None if found is None else parse_stamp(found[1].decode())
