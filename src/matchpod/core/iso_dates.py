"""Parse ISO 8601 calendar dates and date-times into milliseconds since 1970, and format such times.

A date covers its whole day, a date-time a single millisecond. Without a zone, both are UTC. Parsing uses only integers,
so nothing overflows if a zone offset shifts a time before the year 1 or after the year 9999.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

import msgspec

LAST_MS: Final = 253_402_300_799_999
"""Latest time that can be formatted, in ms: the end of 9999. Logs may contain later times than `datetime` supports."""

_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_SECOND_MS: Final = 1000
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()

_DATE: Final = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME: Final = (
    r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
)
# An unencoded plus in a query string decodes to a space: `…T14:30:00+02:00` arrives as `…T14:30:00 02:00`.
_ZONE: Final = r"(?:[Zz]|(?P<sign>[+\- ])(?P<zone_hour>[01][0-9]|2[0-3])(?::?(?P<zone_minute>[0-5][0-9]))?)"
_PATTERN: Final = re.compile(rf"{_DATE}(?:[Tt ]{_TIME}{_ZONE}?)?")


class DateRange(msgspec.Struct, frozen=True):
    """A half-open time range: `from_ms` is included, `before_ms` is not."""

    from_ms: int
    before_ms: int


def read_date(text: str) -> DateRange | None:
    """Return the time range of a date or date-time; None if the text is not valid."""
    found = _PATTERN.fullmatch(text)
    if found is None:
        return None
    try:
        day = date(int(found["year"]), int(found["month"]), int(found["day"])).toordinal() - _EPOCH_DAY
    except ValueError:  # no such month or day, or year 0
        return None
    midnight_ms = day * _DAY_MS
    if found["hour"] is None:
        return DateRange(midnight_ms, midnight_ms + _DAY_MS)
    at_ms = midnight_ms + _time_ms(found) - _zone_ms(found)
    return DateRange(at_ms, at_ms + 1)


def iso_time(ms: int) -> str:
    """Format a time as UTC with milliseconds and `Z`; times out of range are clamped."""
    seconds, rest_ms = divmod(min(max(ms, 0), LAST_MS), 1000)
    return f"{_iso_second(seconds)}.{rest_ms:03d}Z"


def _time_ms(found: re.Match[str]) -> int:
    whole = int(found["hour"]) * _HOUR_MS + int(found["minute"]) * _MINUTE_MS + int(found["second"] or 0) * _SECOND_MS
    return whole + int((found["fraction"] or "0").ljust(3, "0")[:3])


def _zone_ms(found: re.Match[str]) -> int:
    if found["sign"] is None:
        return 0
    ahead = int(found["zone_hour"]) * _HOUR_MS + int(found["zone_minute"] or 0) * _MINUTE_MS
    return -ahead if found["sign"] == "-" else ahead


@lru_cache(maxsize=64)  # most formatted times are in the current second
def _iso_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]
