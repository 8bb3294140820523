"""Tests of log posts: each received line is read once, even if posts are repeated, split, extended or lost."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_batches import (
    CHECKSUM_BYTES,
    LATE_MS,
    MAX_LINE_BYTES,
    OPENING_LINES,
    Gap,
    Late,
    LineSplitter,
    LogCursor,
    LogPost,
    MapLoad,
    NewLines,
    Oversized,
    Restarted,
    Unfinished,
    WrongLength,
    read_post,
    split_lines,
)
from cs2_protocol.recorded_posts import read_posts
from protocol_tests.effort import examples

FIRST = b"07/17/2026 - 18:14:24.251 - Loading map\n"
SECOND = b"07/17/2026 - 18:24:00.020 - Loading map\n"


def post(
    body: bytes,
    begin: int | None = None,
    *,
    token: str | None = "one",
    game_map: str | None = "de_inferno",
    sent_ms: int | None = None,
) -> LogPost:
    end = None if begin is None else begin + len(body)
    return LogPost(
        body=body, received_ms=0, begin=begin, end=end, instance_token=token, game_map=game_map, sent_ms=sent_ms
    )


def read_all(cursor: LogCursor, posts: list[LogPost]) -> list[NewLines]:
    return [cursor.read(each) for each in posts]


def all_lines(results: list[NewLines]) -> list[bytes]:
    return [line for each in results for line in each.lines]


def expected_lines(stream: bytes) -> list[bytes]:
    cut = [line[:MAX_LINE_BYTES].removesuffix(b"\r") for line in stream.split(b"\n")]
    return [line for line in cut if line]


# --- laws -------------------------------------------------------------------------------------------------------

long_pieces = st.sampled_from([b"x" * MAX_LINE_BYTES, b"x" * (MAX_LINE_BYTES - 1), b"y" * (MAX_LINE_BYTES + 1)])
small_streams = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", b"\x0b", "\u2028".encode()])).map(
    b"".join
)
streams = small_streams | st.binary(max_size=200)
long_streams = st.lists(long_pieces | st.sampled_from([b"\n", b"\r", b"\r\n", b"a"]), max_size=8).map(b"".join)


@st.composite
def posted(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> tuple[bytes, list[LogPost]]:
    """Draw a stream and its posts without gaps: new parts, repeats, overlaps, and longer or shorter resends."""
    stream = draw(bodies)
    known = 0
    posts: list[LogPost] = []
    for cut, back in draw(st.lists(st.tuples(st.integers(0, len(stream)), st.integers(0, len(stream))), max_size=12)):
        begin = min(back, known)
        end = max(cut, begin)
        posts.append(post(stream[begin:end], begin))
        known = max(known, end)
    posts.append(post(stream[known:], known))
    return stream, posts


@given(posted(streams))
def test_splitting_and_repeating_posts_gives_each_line_once(case: tuple[bytes, list[LogPost]]) -> None:
    stream, posts = case
    cursor = LogCursor()
    results = read_all(cursor, posts)
    assert all_lines(results) + cursor.splitter.finish() == expected_lines(stream)
    assert all(each.notices == () for each in results)


@examples(25)
@given(posted(long_streams))
def test_truncation_of_long_lines_does_not_depend_on_posts(case: tuple[bytes, list[LogPost]]) -> None:
    stream, posts = case
    cursor = LogCursor()
    results = read_all(cursor, posts)
    assert all_lines(results) + cursor.splitter.finish() == expected_lines(stream)
    reported = sum(notice.lines for each in results for notice in each.notices if isinstance(notice, Oversized))
    assert reported == sum(len(line) > MAX_LINE_BYTES for line in stream.split(b"\n"))


@given(posted(streams))
def test_snapshot_between_any_two_posts_changes_nothing(case: tuple[bytes, list[LogPost]]) -> None:
    _, posts = case
    straight, resumed = LogCursor(), LogCursor()
    for each in posts:
        resumed = msgspec.msgpack.decode(msgspec.msgpack.encode(resumed), type=LogCursor)
        assert resumed.read(each) == straight.read(each)
    assert resumed == straight


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.data())
def test_successive_loads_give_each_line_once(sizes: list[int], data: st.DataObject) -> None:
    cursor = LogCursor()
    for load, size in enumerate(sizes, start=1):
        stream = b"".join(b"load %d line %d\n" % (load, number) for number in range(size))
        first_line = stream.index(b"\n") + 1
        ends = sorted({*data.draw(st.lists(st.integers(first_line, len(stream)))), len(stream)})
        begins = [0, *ends[:-1]]
        cuts = [(b, e) for b, e in zip(begins, ends, strict=True) for _ in range(data.draw(st.integers(1, 2)))]
        cuts += data.draw(st.lists(st.sampled_from([(0, end) for end in ends])))
        assert all_lines(read_all(cursor, [post(stream[b:e], b) for b, e in cuts])) == stream.split(b"\n")[:-1]
        assert cursor.load_number == load


@given(st.lists(st.binary(max_size=30)))
def test_chunks_of_a_file_do_not_change_its_lines(chunks: list[bytes]) -> None:
    assert list(split_lines(chunks)) == expected_lines(b"".join(chunks))


@given(st.lists(st.sampled_from(["log", "post", "hold", "change map", "deliver"]), max_size=40))
def test_delayed_posts_duplicate_no_line_and_lose_none_silently(steps: list[str]) -> None:
    """Simulate a server that resends a range until it is acknowledged, and drops the rest at a map change."""
    cursor = LogCursor()
    load, acknowledged, log = 1, 0, b"load 1\n"
    held: list[LogPost] = []
    lines: list[bytes] = []
    for now, step in enumerate(steps):
        sending = post(log[acknowledged:], acknowledged, sent_ms=now)
        if step == "log":
            log += b"load %d at %d\n" % (load, now)
        elif step == "hold":
            held.append(sending)
        elif step == "change map":
            load, acknowledged, log = load + 1, 0, b"load %d\n" % (load + 1)
        elif step == "post" or (held and held[0].begin != cursor.end):
            arrived = sending if step == "post" else held.pop(0)
            acknowledged = len(log) if step == "post" else acknowledged
            result = cursor.read(arrived)
            lines += result.lines
            assert not any(isinstance(notice, Gap | Unfinished) for notice in result.notices)
            if Late(len(arrived.body)) not in result.notices:
                assert set(arrived.body.split(b"\n")[:-1]) <= set(lines)
    assert len(lines) == len(set(lines))


def any_posts(begins: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[LogPost]]:
    each = st.builds(
        LogPost,
        body=st.binary(max_size=40),
        received_ms=st.just(0),
        begin=begins,
        end=st.none() | st.integers(0, 300),
        instance_token=st.sampled_from([None, "one", "two", "three"]),
        game_map=st.sampled_from([None, "de_inferno", "de_mirage"]),
        sent_ms=st.none() | st.integers(0, 3 * LATE_MS),
    )
    return st.lists(each, max_size=10)


@given(any_posts(st.integers(0, 300)) | any_posts(st.none()))
def test_arbitrary_posts_never_raise_and_no_byte_is_returned_twice(posts: list[LogPost]) -> None:
    cursor = LogCursor()
    for each in posts:
        waiting = len(cursor.splitter.tail)
        result = cursor.read(each)
        assert sum(map(len, result.lines)) <= waiting + len(each.body)
        assert each.begin is None or cursor.read(each).lines == []


# --- repeats ----------------------------------------------------------------------------------------------------


def test_lines_end_at_line_feeds_only() -> None:
    text = "a\u2028b\x0bc\x1cd\r\ne\rf\n\n\r\n".encode()
    assert LogCursor().read(post(text, 0)).lines == ["a\u2028b\x0bc\x1cd".encode(), b"e\rf"]


def test_posts_without_offsets_are_appended_in_order() -> None:
    cursor = LogCursor()
    results = read_all(cursor, [post(b"one\ntw", token=None), post(b"o\n", token=None), post(b"two\n", token=None)])
    assert all_lines(results) == [b"one", b"two", b"two"]


def test_body_length_takes_precedence_over_the_end_offset() -> None:
    cursor = LogCursor()
    result = cursor.read(LogPost(body=b"one\n", received_ms=0, begin=0, end=90))
    assert result == NewLines([b"one"], (WrongLength(90, 4),))
    assert cursor.read(post(b"two\n", 90)).notices == (Gap(86),)


# --- gaps -------------------------------------------------------------------------------------------------------


def test_missing_bytes_are_reported_and_the_unfinished_line_is_dropped() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\nRoundsPlayed: 1", 0))
    assert cursor.read(post(b"two\n", 100)) == NewLines([b"two"], (Unfinished(15), Gap(81)))
    assert cursor.read(post(b"three\n", 104)) == NewLines([b"three"])


def test_log_that_starts_late_has_a_gap() -> None:
    assert LogCursor().read(post(b"one\n", 40)) == NewLines([b"one"], (Gap(40),))


def test_offset_zero_after_a_load_whose_start_is_missing_is_a_new_load() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\n", 40))
    assert cursor.read(post(b"one\n", 0)) == NewLines([b"one"], (MapLoad(2, "de_inferno"),))


def test_resend_of_the_opening_is_recognized_after_a_gap() -> None:
    cursor = LogCursor()
    cursor.read(post(FIRST, 0))
    cursor.read(post(b"after the gap\n", 500))
    assert cursor.read(post(FIRST, 0)) == NewLines([])


# --- map loads --------------------------------------------------------------------------------------------------


def test_offset_zero_with_other_bytes_is_a_new_load() -> None:
    cursor = LogCursor()
    cursor.read(post(FIRST + b"unfinished", 0))
    result = cursor.read(post(SECOND, 0, game_map="de_mirage"))
    assert result == NewLines([SECOND[:-1]], (Unfinished(10), MapLoad(2, "de_mirage")))
    assert cursor.read(post(b"more\n", len(SECOND))).lines == [b"more"]


def test_load_with_the_same_first_lines_is_a_new_load() -> None:
    cursor = LogCursor()
    cursor.read(post(FIRST + b'"Akutan<0><BOT><>" connected\nmore\n', 0))
    result = cursor.read(post(FIRST + b'"Doc<0><BOT><>" connected\n', 0))
    assert result.notices == (MapLoad(2, "de_inferno"),)
    assert len(result.lines) == 2


def test_resend_of_a_long_load_is_recognized_by_its_first_lines() -> None:
    cursor = LogCursor()
    lines = [b"line %d" % number for number in range(OPENING_LINES + 50)]
    body = b"\n".join(lines) + b"\n"
    assert cursor.read(post(body, 0)).lines == lines
    assert cursor.read(post(body + b"new\n", 0)).lines == [b"new"]
    assert len(cursor.opening) == OPENING_LINES * CHECKSUM_BYTES


def test_other_map_within_the_known_range_is_a_new_load_whose_start_is_missing() -> None:
    cursor = LogCursor()
    cursor.read(post(FIRST * 10, 0))
    result = cursor.read(post(b"one\n", 50, game_map="de_mirage"))
    assert result == NewLines([b"one"], (MapLoad(2, "de_mirage"), Gap(50)))


def test_map_name_that_appears_later_is_not_a_new_load() -> None:
    cursor = LogCursor()
    cursor.read(post(FIRST, 0, game_map=None))
    assert cursor.read(post(FIRST, 0)) == NewLines([])
    assert cursor.game_map == "de_inferno"


# --- late posts -------------------------------------------------------------------------------------------------


def cursor_in_second_load() -> LogCursor:
    """Return a cursor that has read 40 bytes of one load and then the start of the next, sent 599 s later."""
    cursor = LogCursor()
    cursor.read(post(FIRST, 0, sent_ms=1_000))
    cursor.read(post(SECOND, 0, sent_ms=600_000))
    return cursor


def test_late_first_post_of_the_previous_load_is_not_a_new_load() -> None:
    assert cursor_in_second_load().read(post(FIRST, 0, sent_ms=599_000)) == NewLines([], (Late(len(FIRST)),))


def test_late_post_of_the_previous_load_is_not_a_gap() -> None:
    cursor = cursor_in_second_load()
    assert cursor.read(post(b"Game Over\n", 300, sent_ms=599_500)) == NewLines([], (Late(10),))
    assert cursor.read(post(b"Loading\n", cursor.end, sent_ms=600_100)) == NewLines([b"Loading"])


def test_post_is_not_late_after_the_clock_was_set_back() -> None:
    cursor = cursor_in_second_load()
    begin = cursor.end
    cursor.read(post(b"one\n", begin, sent_ms=3_000_000))
    cursor.read(post(b"two\n", begin + 4, sent_ms=580_000))
    assert cursor.read(post(b"two\nthree\n", begin + 4, sent_ms=581_000)) == NewLines([b"three"])


def test_resend_is_not_late_after_the_clock_was_set_back() -> None:
    cursor = cursor_in_second_load()
    cursor.read(post(b"one\n", cursor.end, sent_ms=3_000_000))
    assert cursor.read(post(b"one\ntwo\n", cursor.end - 4, sent_ms=580_000)) == NewLines([b"two"])


# --- restarts ---------------------------------------------------------------------------------------------------


def test_first_instance_token_is_not_a_restart() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\n", 0, token=None))
    assert cursor.read(post(b"two\n", 4)) == NewLines([b"two"])
    assert cursor.read(post(b"three\n", 8, token=None)) == NewLines([b"three"])


def test_different_instance_token_is_a_restart() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\nunfin", 0))
    assert cursor.read(post(b"one\n", 0, token="two")) == NewLines([b"one"], (Unfinished(5), Restarted("two")))
    assert cursor.load_number == 2


def test_restart_without_its_first_bytes_is_also_a_gap() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\n", 0))
    assert cursor.read(post(b"two\n", 4, token="two")).notices == (Restarted("two"), Gap(4))


def test_post_of_the_replaced_process_is_late() -> None:
    cursor = LogCursor()
    cursor.read(post(b"one\n", 0))
    cursor.read(post(b"uno\n", 0, token="two"))
    assert cursor.read(post(b"two\n", 4)) == NewLines([], (Late(4),))
    assert cursor.read(post(b"dos\n", 4, token="two")) == NewLines([b"dos"])


# --- limits -----------------------------------------------------------------------------------------------------


def test_bytes_without_a_line_end_do_not_grow_the_cursor() -> None:
    cursor = LogCursor()
    chunk = b"x" * 50_000
    results = read_all(cursor, [post(chunk, begin) for begin in range(0, 2_000_000, len(chunk))])
    assert [len(line) for line in all_lines(results)] == [MAX_LINE_BYTES]
    assert [notice for each in results for notice in each.notices] == [Oversized(1)]
    assert len(msgspec.msgpack.encode(cursor)) < 1_000
    assert cursor.read(post(b"xx\nnext\n", 2_000_000)) == NewLines([b"next"])


def test_gap_ends_the_skipping_of_a_long_line() -> None:
    cursor = LogCursor()
    cursor.read(post(b"x" * (MAX_LINE_BYTES + 1), 0))
    assert cursor.read(post(b"next\n", MAX_LINE_BYTES + 2)) == NewLines([b"next"], (Gap(1),))


def test_drop_unfinished_returns_the_number_of_bytes() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw")
    assert splitter.drop_unfinished() == 2
    assert splitter.feed(b"three\n") == [b"three"]


# --- headers ----------------------------------------------------------------------------------------------------


def test_header_names_are_case_insensitive() -> None:
    headers = {
        "x-logbytes-beginoffset": "118",
        "X-LOGBYTES-ENDOFFSET": " 271 ",
        "X-Tick-Start": "339",
        "X-Tick-End": "340",
        "X-Timestamp": "07/17/2026 - 18:14:24.392",
        "X-Server-Instance-Token": "7be6ded70c65df71",
        "X-Game-Map": "ar_pool_day",
    }
    assert read_post(headers, b"body", received_ms=7) == LogPost(
        body=b"body",
        received_ms=7,
        begin=118,
        end=271,
        instance_token="7be6ded70c65df71",
        game_map="ar_pool_day",
        sent_ms=1_784_312_064_392,
    )


@pytest.mark.parametrize("number", ["", "-1", "1.5", "0x1", "٣", "1" * 16, "one", "1 2"])
def test_invalid_offset_counts_as_missing(number: str) -> None:
    assert read_post({"X-LogBytes-BeginOffset": number}, b"", received_ms=0).begin is None


def test_headers_may_be_missing_or_empty() -> None:
    empty = {"X-Game-Map": "", "X-Server-Instance-Token": " ", "X-Timestamp": "yesterday"}
    assert (
        read_post({}, b"x", received_ms=0) == read_post(empty, b"x", received_ms=0) == LogPost(body=b"x", received_ms=0)
    )


# --- real data --------------------------------------------------------------------------------------------------


def test_real_capture_has_twelve_map_loads_and_no_loss(corpus: Path) -> None:
    posts = list(read_posts((corpus / "cs2-http-posts.txt").read_bytes()))
    cursor = LogCursor()
    results = read_all(cursor, posts)
    assert [notice for each in results for notice in each.notices] == [
        MapLoad(number, "ar_pool_day") for number in range(2, 14)
    ]
    assert all_lines(results) == [line for each in posts for line in each.body.split(b"\n") if line]


def test_repeating_each_real_post_changes_nothing(corpus: Path) -> None:
    posts = list(read_posts((corpus / "cs2-http-posts.txt").read_bytes()))
    once, twice = LogCursor(), LogCursor()
    for each in posts:
        assert twice.read(each) == once.read(each)
        assert twice.read(each) == NewLines([])


@pytest.mark.parametrize("size", [200, 4096, 100_000])
def test_posts_of_a_real_match_give_the_lines_of_its_file(corpus: Path, size: int) -> None:
    whole = (corpus / "cs2-5v5-inferno.log").read_bytes()
    posts = [post(whole[begin : begin + size + 700], begin) for begin in range(0, len(whole), size)]
    cursor = LogCursor()
    assert all_lines(read_all(cursor, posts)) + cursor.splitter.finish() == list(split_lines([whole]))


def test_new_load_with_a_partial_first_line_is_not_a_resend() -> None:
    cursor = LogCursor()
    cursor.read(LogPost(body=b"a\nb\n", received_ms=0, begin=0))
    results = [cursor.read(LogPost(body=body, received_ms=0, begin=begin)) for body, begin in ((b"X", 0), (b"Y\n", 1))]
    assert [line for one in results for line in one.lines] == [b"XY"]
