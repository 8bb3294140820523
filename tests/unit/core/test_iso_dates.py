"""Parsing ISO 8601 dates and date-times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.iso_dates import DateRange, iso_time, read_date

NOON_MS = 1_789_992_000_000  # 2026-09-21T12:00:00Z
DAY_MS = 86_400_000


def test_date_time_covers_one_millisecond() -> None:
    for text, at_ms in [
        ("2026-09-21T12:00", NOON_MS),
        ("2026-09-21 12:00", NOON_MS),
        ("2026-09-21t12:00", NOON_MS),
        ("2026-09-21T12:00:00", NOON_MS),
        ("2026-09-21T12:00:00Z", NOON_MS),
        ("2026-09-21T12:00:00z", NOON_MS),
        ("2026-09-21 12:00Z", NOON_MS),
        ("2026-09-21T12:00:07", NOON_MS + 7_000),
        ("2026-09-21T12:00:00.5", NOON_MS + 500),
        ("2026-09-21T12:00:00,05", NOON_MS + 50),
        ("2026-09-21T12:00:00.123Z", NOON_MS + 123),
        ("2026-09-21T12:00:00.123999999Z", NOON_MS + 123),
        ("2026-09-21T14:00:00+02:00", NOON_MS),
        ("2026-09-21T14:00:00+0200", NOON_MS),
        ("2026-09-21T14:00:00+02", NOON_MS),
        ("2026-09-21T14:00:00.000+02:00", NOON_MS),
        ("2026-09-21T06:30:00-05:30", NOON_MS),
        ("2026-09-21T06:30-0530", NOON_MS),
        ("2026-09-21T12:00:00-00:00", NOON_MS),
        ("2026-09-22T01:00:00+13:00", NOON_MS),
        ("1970-01-01T00:00", 0),
        ("1969-12-31T23:59:59.999", -1),
        ("2024-02-29T00:00", 1_709_164_800_000),
        ("2000-02-29T23:59:59", 951_868_799_000),
    ]:
        assert read_date(text) == DateRange(at_ms, at_ms + 1)


@pytest.mark.parametrize("zone", ["02:00", "0200", "02"])
def test_space_is_accepted_as_an_unencoded_plus(zone: str) -> None:
    assert read_date(f"2026-09-21T14:00:00 {zone}") == DateRange(NOON_MS, NOON_MS + 1)
    assert read_date(f"2026-09-21 14:00 {zone}") == DateRange(NOON_MS, NOON_MS + 1)


INVALID = [
    "", " ", "yesterday", "2026", "2026-09", "2026-9-21", "20260921", "26-09-21", "2026-W39-1", "2026-264",
    "2026-13-01", "2026-00-10", "2026-01-00", "2026-04-31", "2026-02-29", "1900-02-29", "2100-02-29", "0000-01-01",
    "2026-09-21T", "2026-09-21T12", "2026-09-21T1200", "2026-09-21T24:00", "2026-09-21T12:60", "2026-09-21T12:00:60",
    "2026-09-21T12:00:00.", "2026-09-21T12:00:00.1234567890", "2026-09-21T12:00.5", "2026-09-21  12:00",
    "2026-09-21T12:00:00+24:00", "2026-09-21T12:00:00+02:60", "2026-09-21T12:00:00+2", "2026-09-21T12:00:00 +02:00",
    "2026-09-21T12:00:00ZZ", "2026-09-21Z", "2026-09-21+02:00", " 2026-09-21", "2026-09-21 ", "2026-09-21\n",
    "+2026-09-21", "-2026-09-21", "٢٠٢٦-09-21", "2026-09-21T12:00:00−02:00", "1790000000", "x" * 4000,
]  # fmt: skip


def test_invalid_date_is_rejected() -> None:
    assert [text for text in INVALID if read_date(text) is not None] == []


def test_zone_may_shift_a_time_beyond_the_supported_years() -> None:
    first, last = read_date("0001-01-01T00:00:00+23:59"), read_date("9999-12-31T23:59:59.999-23:59")
    assert first is not None
    assert last is not None
    assert first.from_ms < -62_135_596_800_000
    assert last.from_ms > 253_402_300_799_999


@given(
    st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)),  # noqa: DTZ001 - the zone follows
    st.integers(min_value=-23 * 60 - 59, max_value=23 * 60 + 59),
    st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
)
def test_isoformat_output_is_read_to_the_millisecond(moment: datetime, zone_minutes: int, precision: str) -> None:
    text = moment.replace(tzinfo=timezone(timedelta(minutes=zone_minutes))).isoformat(timespec=precision)
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    at_ms = since // timedelta(milliseconds=1)
    assert read_date(text) == read_date(text.replace("+", " ")) == DateRange(at_ms, at_ms + 1)


@given(st.dates())
def test_every_calendar_day_has_24_hours(day: object) -> None:
    span = read_date(str(day))
    assert span is not None
    assert span.before_ms - span.from_ms == DAY_MS
    assert read_date(f"{day}T00:00") == DateRange(span.from_ms, span.from_ms + 1)
    assert read_date(f"{day}T23:59:59.999") == DateRange(span.before_ms - 1, span.before_ms)


@given(st.text(max_size=30))
def test_arbitrary_text_never_raises(text: str) -> None:
    read_date(text)


def test_times_are_utc_with_milliseconds_and_clamped() -> None:
    assert iso_time(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    assert (iso_time(-1), iso_time(10**15)) == ("1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")
