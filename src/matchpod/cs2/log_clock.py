"""When was a line logged? Time stamps of the server log, read, written, and moved to UTC.

A log stamp is the server's local time without its zone. Read as if it were UTC it is good for differences; LogClock
adds one offset that makes it UTC. The offset is fixed once: were it followed post by post, the same lines would get
other times whenever the posts were cut in another way.
"""

from __future__ import annotations

import re
from datetime import date

import msgspec

ZONE_STEP_MS = 20 * 60_000
"""Drift that means another zone: the smallest daylight-saving step is 30 minutes, real clocks were 18 s apart."""

_DAY_MS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_STAMP = re.compile(r"(\d\d)/(\d\d)/(\d{4}) - ([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{3}))?", re.ASCII)


class LogClock(msgspec.Struct):
    """Moves the server's local time to UTC. Without an anchor (a log file) nothing is moved."""

    offset_ms: int = 0
    is_anchored: bool = False

    def anchor(self, log_ms: int, received_ms: int) -> None:
        """Fix the offset at the first call; later calls change it only when the server's zone stepped.

        `log_ms` is best the time the server put on the post: a line may have waited long before it was sent.
        """
        if not self.is_anchored or abs(log_ms + self.offset_ms - received_ms) > ZONE_STEP_MS:
            self.offset_ms = received_ms - log_ms
            self.is_anchored = True


def parse_stamp(text: str) -> int | None:
    """Milliseconds since the epoch of `MM/DD/YYYY - HH:MM:SS` or the same with `.mmm`, as if it were UTC."""
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    month, day, year, hour, minute, second, millis = map(int, found.groups("0"))
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    return days * _DAY_MS + (hour * 3600 + minute * 60 + second) * 1000 + millis


def format_stamp(ms: int, *, millis: bool) -> str:
    """The stamp of a time in the years 1 to 9999; without `millis` the second it lies in."""
    day, rest = divmod(ms, _DAY_MS)
    on = date.fromordinal(day + _EPOCH_DAY)
    seconds, thousandths = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    stamp = f"{on.month:02}/{on.day:02}/{on.year:04} - {hour:02}:{minute:02}:{second:02}"
    return f"{stamp}.{thousandths:03}" if millis else stamp
