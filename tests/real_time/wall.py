"""Read the wall of the console as its readers see it: alarms, scores, who is there, and its counters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import msgspec

_CARD = re.compile(r'<article id="card-(srv_\w+)" class="([^"]*)".*?</article>', re.DOTALL)
_REASON = re.compile(r'<li class="urgency\d"[^>]*>(.*?)</li>', re.DOTALL)
_NOTE = re.compile(r'<p class="muted small note">(.*?)</p>', re.DOTALL)
_COUNTER = re.compile(r'<time class="counter"[^>]*>[^<]*</time>')
_UNTIL = re.compile(r'data-until="(\d+)"')
_NUMBER = re.compile(r"<dd>(\d+)</dd>")
_HERE = re.compile(r'aria-label="(\d+) of (\d+) on the server"')
_ROUND = re.compile(r'<p class="phase"><span class="state live"></span>round (\d+)')
_GROUP = re.compile(r'id="card-group-(\w+)" class="[^"]*"><h2>[^<]*<span class="count">(\d+)</span>')
_ATTENTION = re.compile(r'data-attention="(\d+)"')
_SERVERS = re.compile(r"<b>([\w-]+)</b>.*?(\d+) of (\d+) free", re.DOTALL)
_NOTICE = re.compile(r'notice-line">(.*?)</p>', re.DOTALL)


class Card(msgspec.Struct, frozen=True, kw_only=True):
    server_id: str
    reasons: tuple[str, ...]
    """Why it needs attention, and notes; without the times that run."""
    until_ms: int | None
    score: tuple[int, int] | None
    here: tuple[int, int] | None
    """How many listed players are on the server, and how many there are."""
    round: int | None
    is_ended: bool
    is_urgent: bool = False


class WallPage(msgspec.Struct, frozen=True, kw_only=True):
    cards: tuple[Card, ...]
    groups: dict[str, int]
    """The numbers in the headings of the groups."""
    attention: int
    free: dict[str, tuple[int, int]]
    """Free and all servers of each region."""
    notices: tuple[str, ...]
    """What regions say of their servers."""


def read_wall(html: str) -> WallPage:
    attention = _ATTENTION.search(html)
    assert attention is not None, html[:2000]
    return WallPage(
        cards=tuple(_cards(html)),
        groups={name: int(count) for name, count in _GROUP.findall(html)},
        attention=int(attention[1]),
        free={name: (int(free), int(every)) for name, free, every in _SERVERS.findall(html)},
        notices=tuple(map(unescape, _NOTICE.findall(html))),
    )


def _cards(html: str) -> Iterator[Card]:
    for found in _CARD.finditer(html):
        text, is_ended = found[0], " ended" in found[2]
        numbers, here, round_, until = (
            _NUMBER.findall(text),
            _HERE.search(text),
            _ROUND.search(text),
            _UNTIL.search(text.split('<p class="phase">')[-1]),
        )
        reasons = [*_REASON.findall(text), *_NOTE.findall(text)]
        yield Card(
            server_id=found[1],
            reasons=() if is_ended else tuple(unescape(_COUNTER.sub("", one)).strip() for one in reasons),
            until_ms=None if until is None else int(until[1]),
            score=(int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None,
            here=None if here is None else (int(here[1]), int(here[2])),
            round=None if round_ is None else int(round_[1]),
            is_ended=is_ended,
            is_urgent=" data-urgent" in text,
        )
