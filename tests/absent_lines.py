"""Add the lines that a real server prints of players and bots who are not on it to a log, or remove them.

They are an empty `left buyzone` after `disconnected` and at round ends, the money of the team at round ends, and the
change of sides at halftime; see `cs2-inferno-leaver-bots.log`. The suicide of a living leaver is not one of them: it
counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

PENDING_ID, NO_ID = b"STEAM_ID_PENDING", b"<none>"

_PREFIX = re.compile(rb"(?:L )?\d\d/\d\d/\d{4} - \d\d:\d\d:\d\d(?:\.\d{3} - |: )")
_IDS = rb"\[U:\d:\d+\]|BOT|STEAM_\d:\d:\d+"
_LEFT = re.compile(rb'"(.*)<(\d+)><(' + _IDS + rb')><(CT|TERRORIST)>" disconnected \(reason "[^"]*"\)\s*')
_CAME = re.compile(rb'"(.*)<(\d+)><(' + _IDS + rb')><>" (?:connected, address "[^"]*"|entered the game)\s*')
_CHANGED_SIDE = re.compile(rb'"(.*)<(\d+)><([^<>]*)>" switched from team <(CT|TERRORIST)> to <(?:CT|TERRORIST)>\s*')
_OF_ABSENT = re.compile(
    rb'".*<\d+><(?:STEAM_ID_PENDING|<none>)>(?:<(?:CT|TERRORIST)>)?" '
    rb"(?:left buyzone with \[ \]|money change .*|switched from team <\w+> to <(?:CT|TERRORIST)>)\s*"
)
_OTHER = {b"CT": b"TERRORIST", b"TERRORIST": b"CT"}


@dataclass
class Absentee:
    """A player or bot who is not on the server."""

    name: bytes
    user_id: int
    steam_id: bytes
    team: bytes

    @property
    def is_bot(self) -> bool:
        return self.steam_id == b"BOT"

    def token(self, *, offset: int = 0, has_team: bool = True) -> bytes:
        steam_id = NO_ID if self.is_bot else PENDING_ID
        team = b"<" + self.team + b">" if has_team else b""
        return b'"%b<%d><%b>%b"' % (self.name, self.user_id + offset, steam_id, team)

    @property
    def last_line(self) -> bytes:
        return self.token() + b" left buyzone with [ ]"


def with_absent_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Return the log with additional lines of all who are absent. Two of them were never there in this log."""
    result: list[bytes] = []
    absent = [Absentee(b"Ghost", 60, b"[U:1:1]", b"CT"), Absentee(b"Phantom", 61, b"BOT", b"TERRORIST")]
    for prefix, group in groupby(lines, key=_prefix_of):
        if not prefix:
            result += group
            continue
        texts = [line[len(prefix) :] for line in group]
        result += [prefix + text for text in _extended(texts, absent)]
    return result


def without_absent_lines(lines: Iterable[bytes]) -> list[bytes]:
    """Return the log without all lines of those who are absent."""
    return [line for line in lines if not _OF_ABSENT.fullmatch(line[len(_prefix_of(line)) :])]


def count_leavers(lines: Iterable[bytes]) -> int:
    """Return how often a player or bot leaves a side in a log."""
    return sum(_LEFT.fullmatch(line[len(_prefix_of(line)) :]) is not None for line in lines)


def _prefix_of(line: bytes) -> bytes:
    found = _PREFIX.match(line)
    return found[0] if found else b""


def _extended(texts: list[bytes], absent: list[Absentee]) -> Iterator[bytes]:
    """Yield the lines of one tick, or of one second in a log file, with those of absent players."""
    changes = [found for found in map(_CHANGED_SIDE.fullmatch, texts) if found]
    is_halftime = len(changes) > 1 and not any(b"Match_Reloaded" in text for text in texts)
    has_line = {(found[1], int(found[2])) for found in changes}
    is_round_end = False
    for text in texts:
        yield text
        if found := _LEFT.fullmatch(text):
            absent.append(Absentee(found[1], int(found[2]), found[3], found[4]))
        elif found := _CAME.fullmatch(text):
            absent[:] = [one for one in absent if not _is_same(one, found[1], found[3])]
        elif is_halftime and _CHANGED_SIDE.fullmatch(text):
            is_halftime = False
            for one in absent:
                if not one.is_bot and (one.name, one.user_id) not in has_line:
                    yield b"%b switched from team <%b> to <%b>" % (
                        one.token(has_team=False), one.team, _OTHER[one.team],
                    )  # fmt: skip
                one.team = _OTHER[one.team]
        elif text.startswith(b'World triggered "Round_End"'):
            is_round_end = True
            for one in absent:
                if not one.is_bot:
                    yield one.token(offset=1) + b" money change 800+3250 = $4050 (tracked)"
        elif text.startswith(b"Loading map"):
            absent.clear()
    if is_round_end or any(map(_LEFT.fullmatch, texts)):
        yield from (one.last_line for one in absent)


def _is_same(one: Absentee, name: bytes, steam_id: bytes) -> bool:
    return one.steam_id == steam_id and (not one.is_bot or one.name == name)
