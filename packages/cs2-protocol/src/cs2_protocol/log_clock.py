"""Parse and format the time stamps of server logs, and convert them to UTC.

A time stamp is the server's local time without a time zone. It is parsed as if it were UTC; `LogClock` then adds the
offset to real UTC. The offset is determined once: if each post changed it, the times of lines would depend on how the
log was split into posts.
"""

from __future__ import annotations

import re
from datetime import date

import msgspec

ZONE_STEP_MS = 20 * 60_000
"""Drift in milliseconds above which the server's time zone, or our own clock, must have changed. The smallest
daylight-saving step is 30 min, while the clocks of real servers differed by at most 18 s."""

_DAY_MS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_STAMP = re.compile(r"(\d\d)/(\d\d)/(\d{4}) - ([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{3}))?", re.ASCII)


class LogClock(msgspec.Struct):
    """Converts the server's local time to UTC. If `anchor` was never called, as for a log file, times are unchanged."""

    offset_ms: int = 0
    is_anchored: bool = False
    is_real_time: bool = True
    """False in a sandbox with faster game time. The caller then anchors the clock only once, because drift does not
    indicate a time zone change."""
    is_ours_in_doubt: bool = False
    """True after a restart of the service, because our clock may have been set since the last post."""
    ours_set_ms: int = 0
    """Milliseconds by which our clock was set forward since the offset was determined."""

    def anchor(self, log_ms: int, received_ms: int) -> None:
        """Determine the offset at the first call. Later calls change it only if the server's time zone has changed.

        If our own clock was set instead, the offset stays: changing it would make durations wrong by the difference.
        `log_ms` should be the time in the post's headers, since a line may have been logged long before it was sent.
        """
        drift_ms = received_ms - self.ours_set_ms - (log_ms + self.offset_ms)
        if not self.is_anchored:
            self.offset_ms = received_ms - log_ms
            self.is_anchored = True
        elif abs(drift_ms) > ZONE_STEP_MS and self.is_ours_in_doubt:
            self.ours_set_ms += drift_ms
        elif abs(drift_ms) > ZONE_STEP_MS:
            self.offset_ms += drift_ms
        self.is_ours_in_doubt = False


def parse_stamp(text: str) -> int | None:
    """Parse `MM/DD/YYYY - HH:MM:SS`, optionally with `.mmm`, to milliseconds since the epoch, as if it were UTC."""
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
    """Format a time in the years 1 to 9999 as a stamp; if `millis` is False, it is rounded down to the second."""
    day, rest = divmod(ms, _DAY_MS)
    when = date.fromordinal(day + _EPOCH_DAY)
    seconds, thousandths = divmod(rest, 1000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    stamp = f"{when.month:02}/{when.day:02}/{when.year:04} - {hour:02}:{minute:02}:{second:02}"
    return f"{stamp}.{thousandths:03}" if millis else stamp
