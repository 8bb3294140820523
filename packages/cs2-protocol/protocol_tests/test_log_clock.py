"""Tests of log time stamps and their conversion to UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cs2_protocol.log_clock import ZONE_STEP_MS, LogClock, format_stamp, parse_stamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR_MS = 3_600_000

first_ms = (datetime(1, 1, 1, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
last_ms = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)
times = st.integers(min_value=first_ms, max_value=last_ms)
moments = st.integers(min_value=0, max_value=4 * 10**12)
small_drifts = st.integers(min_value=-ZONE_STEP_MS, max_value=ZONE_STEP_MS)


@given(times)
@example(first_ms)
@example(last_ms)
@example(0)
@example(-1)
def test_stamp_with_milliseconds_survives_the_round_trip(ms: int) -> None:
    assert parse_stamp(format_stamp(ms, millis=True)) == ms


@given(times)
def test_stamp_without_milliseconds_keeps_the_second(ms: int) -> None:
    assert parse_stamp(format_stamp(ms, millis=False)) == ms - ms % 1000


@given(times)
def test_stamps_agree_with_the_calendar(ms: int) -> None:
    moment = EPOCH + timedelta(milliseconds=ms)
    assert format_stamp(ms, millis=False)[:6] == moment.strftime("%m/%d/")
    assert format_stamp(ms, millis=False)[10:] == moment.strftime(" - %H:%M:%S")


def test_real_stamps_are_parsed() -> None:
    assert parse_stamp("07/17/2026 - 18:14:24.251") == 1_784_312_064_251
    assert parse_stamp("01/19/2026 - 19:02:08") == 1_768_849_328_000
    assert parse_stamp("02/29/2024 - 00:00:00") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "02/30/2026 - 18:14:24",
        "02/29/2026 - 18:14:24",
        "13/45/2026 - 18:14:24",
        "00/10/2026 - 18:14:24",
        "01/00/2026 - 18:14:24",
        "01/01/0000 - 18:14:24",
        "01/01/2026 - 24:00:00",
        "01/01/2026 - 18:60:24",
        "01/01/2026 - 18:14:60",
        "01/01/2026 - 18:14:24.",
        "01/01/2026 - 18:14:24.1",
        "01/01/2026 - 18:14:24.1234",
        "01/01/2026 - 18:14:24,123",
        "01/01/2026 - 18:14:24\n",
        " 01/01/2026 - 18:14:24",
        "1/01/2026 - 18:14:24",
        "01-01-2026 - 18:14:24",
        "01/01/2026 18:14:24",
        "01/01/2026 - +8:14:24",
        "01/01/2026 - 18:1_:24",
        "０１/01/2026 - 18:14:24",
        "٠١/01/2026 - 18:14:24",
    ],
)
def test_invalid_stamp_is_none(text: str) -> None:
    assert parse_stamp(text) is None


@given(st.text(alphabet="0123456789/-: .x٣", max_size=26))
def test_parsing_never_raises_and_formatting_restores_the_text(text: str) -> None:
    ms = parse_stamp(text)
    if ms is not None:
        assert format_stamp(ms, millis=len(text) == 25) == text


def test_clock_without_an_anchor_has_no_offset() -> None:
    assert LogClock().offset_ms == 0


@given(moments, moments)
def test_first_post_sets_the_offset(log_ms: int, received_ms: int) -> None:
    clock = LogClock()
    clock.anchor(log_ms, received_ms)
    assert log_ms + clock.offset_ms == received_ms


@given(moments, moments, st.lists(st.tuples(moments, small_drifts)))
def test_small_drift_does_not_change_the_offset(log_ms: int, received_ms: int, posts: list[tuple[int, int]]) -> None:
    clock = LogClock()
    clock.anchor(log_ms, received_ms)
    offset = clock.offset_ms
    for at, drift in posts:
        clock.anchor(at, at + offset + drift)
    assert 0 + clock.offset_ms == offset


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS, HOUR_MS // 2, -HOUR_MS // 2])
def test_daylight_saving_step_changes_the_offset(step_ms: int) -> None:
    clock = LogClock()
    clock.anchor(5 * HOUR_MS, 3 * HOUR_MS)
    clock.anchor(6 * HOUR_MS + step_ms, 4 * HOUR_MS)
    assert 6 * HOUR_MS + step_ms + clock.offset_ms == 4 * HOUR_MS


@pytest.mark.parametrize("set_ms", [HOUR_MS, -HOUR_MS])
def test_setting_our_clock_while_the_service_is_down_does_not_change_the_offset(set_ms: int) -> None:
    clock = LogClock()
    clock.anchor(5 * HOUR_MS, 3 * HOUR_MS)
    offset = clock.offset_ms
    clock.is_ours_in_doubt = True
    for log_ms in (6 * HOUR_MS, 7 * HOUR_MS):
        clock.anchor(log_ms, log_ms - 2 * HOUR_MS + set_ms)
        assert clock.offset_ms == offset
    clock.anchor(9 * HOUR_MS, 6 * HOUR_MS + set_ms)
    assert clock.offset_ms == offset - HOUR_MS, "later, only the server's time zone can have changed"


def test_outage_of_the_service_does_not_change_the_offset() -> None:
    clock = LogClock()
    clock.anchor(5 * HOUR_MS, 3 * HOUR_MS)
    clock.is_ours_in_doubt = True
    clock.anchor(9 * HOUR_MS, 7 * HOUR_MS)
    assert (clock.offset_ms, clock.ours_set_ms) == (-2 * HOUR_MS, 0)


def test_clock_survives_a_snapshot() -> None:
    clock = LogClock()
    clock.anchor(10, 30)
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(clock), type=LogClock)
    restored.anchor(20, 45)
    assert 20 + restored.offset_ms == 40
