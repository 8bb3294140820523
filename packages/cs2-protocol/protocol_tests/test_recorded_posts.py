"""Tests of recordings: posts are read byte for byte, and errors name the invalid line."""

from __future__ import annotations

import base64
import contextlib
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_batches import LogPost
from cs2_protocol.recorded_posts import MAX_TIME_MS, RecordingError, RecordingForm, detect_form, read_posts

DAY_MS = 86_400_000
SENT_MS = 1_784_312_064_267  # 07/17/2026 - 18:14:24.267


def transcript(body: bytes, *, clock: str = "18:14:24.961", headers: str | None = None) -> bytes:
    if headers is None:
        headers = f"X-LogBytes-BeginOffset=0; X-Timestamp=07/17/2026 - 18:14:24.267; Content-Length={len(body)}"
    return b"[%s] POST /log\nHEADERS: %s\nBODY:\n%s\n---\n" % (clock.encode(), headers.encode(), body)


def single_post(recording: bytes) -> LogPost:
    (read,) = read_posts(recording)
    return read


def error_of(recording: bytes) -> str:
    with pytest.raises(RecordingError) as caught:
        list(read_posts(recording))
    return str(caught.value)


# --- transcripts ------------------------------------------------------------------------------------------------


def test_posts_of_a_real_transcript_match_their_offsets(corpus: Path) -> None:
    posts = list(read_posts((corpus / "cs2-http-posts.txt").read_bytes()))
    assert len(posts) == 14
    for each in posts:
        assert each.begin is not None
        assert each.end == each.begin + len(each.body)
        assert each.body.endswith(b"\n")
        assert each.instance_token == "7be6ded70c65df71"
        assert each.game_map == "ar_pool_day"
        assert each.sent_ms is not None
        assert 0 < each.received_ms - each.sent_ms < 1_500


def test_lines_of_a_real_map_load_come_in_one_post_a_second_after_it(corpus: Path) -> None:
    recording = (corpus / "cs2-http-posts.txt").read_bytes()
    loads = [each for each in read_posts(recording) if b" - Loading map " in each.body]
    assert len(loads) == 12
    for each in loads:
        assert each.begin == 0
        stamps = {line[:25] for line in each.body.splitlines() if b"Loading map " in line or b"Started:" in line}
        assert len(stamps) == 1, "both lines are logged in the same tick"
    ticks = [int(tick) for tick in re.findall(rb"X-LogBytes-BeginOffset=0; .*?X-Tick-Start=([0-9]+)", recording)]
    assert min(ticks) > 64, "64 ticks are a second, and ticks count from the load"


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=4))
def test_any_bytes_survive_a_transcript(bodies: list[bytes]) -> None:
    recording = b"".join(map(transcript, bodies))
    assert [each.body for each in read_posts(recording)] == bodies


def test_body_that_imitates_the_end_of_a_post_is_complete() -> None:
    body = b"one\n---\n[18:14:24.961] POST /log\n"
    assert single_post(transcript(body)).body == body


def test_body_without_a_length_may_contain_a_line_of_dashes() -> None:
    assert single_post(transcript(b"one\n---\ntwo\n", headers="X-Game-Map=de_nuke")).body == b"one\n---\ntwo\n"


def test_header_values_may_contain_equals_signs_and_semicolons() -> None:
    headers = "Accept=text/html,*/*;q=0.9; User-Agent=A (X11; Linux=6; x); X-Game-Map=de_nuke; X-Tick-End=7"
    read = single_post(transcript(b"one\n", headers=headers))
    assert read.game_map == "de_nuke"


def test_header_text_before_the_first_name_is_ignored() -> None:
    assert single_post(transcript(b"one\n", headers="; nothing; X-Game-Map=de_nuke")).game_map == "de_nuke"


@pytest.mark.parametrize(
    ("body", "length", "read"),
    [
        (b"one\n\n", 4, b"one\n"),
        (b"one", 4, b"one\n"),
        (b"one\ntwo\n", 4, b"one\ntwo\n"),
        (b"one\n", 90, b"one\n"),
        (b"", 0, b""),
    ],
)
def test_trailing_newline_is_added_or_removed_to_match_content_length(body: bytes, length: int, read: bytes) -> None:
    assert single_post(transcript(body, headers=f"Content-Length={length}")).body == read


def test_missing_length_is_derived_from_the_offsets() -> None:
    body = b"one\n---\n[18:14:24.961] POST /log\n"
    headers = f"X-LogBytes-BeginOffset=100; X-LogBytes-EndOffset={100 + len(body)}"
    assert single_post(transcript(body, headers=headers)).body == body


def test_invalid_length_is_ignored() -> None:
    assert single_post(transcript(b"one\n", headers="Content-Length=many")).body == b"one\n"


def test_transcript_may_contain_blank_lines_and_windows_line_ends() -> None:
    recording = b"\r\n\n[18:14:24] POST /log\r\nHEADERS: X-Game-Map=de_nuke\r\nBODY:\r\none\n\r\n---\r\n\r\n"
    read = single_post(recording)
    assert (read.body, read.game_map) == (b"one\n", "de_nuke")


def test_receive_time_combines_transcript_time_and_post_date() -> None:
    assert single_post(transcript(b"")).received_ms == SENT_MS + 694
    assert single_post(transcript(b"", clock="18:14:24.9")).received_ms == SENT_MS + 633
    assert single_post(transcript(b"", clock="18:14:25")).received_ms == SENT_MS + 733


@pytest.mark.parametrize(
    ("clock", "sent", "difference_ms"), [("00:00:01", "23:59:59", 2_000), ("23:59:59", "00:00:01", -2_000)]
)
def test_receive_time_crosses_midnight(clock: str, sent: str, difference_ms: int) -> None:
    read = single_post(transcript(b"", clock=clock, headers=f"X-Timestamp=07/17/2026 - {sent}"))
    assert read.sent_ms is not None
    assert read.received_ms - read.sent_ms == difference_ms


def test_date_comes_from_the_first_line_without_a_time_stamp_header() -> None:
    body = b"07/17/2026 - 18:14:24.251 - World triggered\n"
    assert single_post(transcript(body, headers="")).received_ms == SENT_MS + 694


def test_receive_time_without_a_date_is_the_time_of_day() -> None:
    assert single_post(transcript(b"?", clock="00:00:01", headers="")).received_ms % DAY_MS == 1_000


@pytest.mark.parametrize(
    ("recording", "message"),
    [
        (b"[18:14:24] POST /log\nBODY:\n", "line 2: expected `HEADERS: name=value; …`"),
        (b"[18:14:24] POST /log\nHEADERS: a=b\none\n---\n", "line 3: expected `BODY:`"),
        (b"[18:14:24] POST /log\nHEADERS: a=b\nBODY:\none\n", "line 4: the body does not end with the line `---`"),
        (transcript(b"one\n") + b"\nstray\n", "line 8: expected `[HH:MM:SS.mmm] POST …`"),
        (b"L 01/19/2026 - 19:02:08: World triggered\n", "line 1: expected `[HH:MM:SS] POST …` or a JSON object"),
        (b"", "line 1: expected `[HH:MM:SS] POST …` or a JSON object"),
    ],
)
def test_error_in_a_transcript_names_its_line(recording: bytes, message: str) -> None:
    assert error_of(recording) == message


def test_empty_body_may_be_omitted() -> None:
    assert single_post(b"[18:14:24] POST /log\nHEADERS: Content-Length=0\nBODY:\n---").body == b""


# --- JSON lines -------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, MAX_TIME_MS - 1)), min_size=1))
def test_any_bytes_survive_json_lines(posts: list[tuple[bytes, int]]) -> None:
    recorded = [
        {"receivedAt": at, "headers": {"X-Game-Map": "de_nuke"}, "bodyBase64": base64.b64encode(body).decode()}
        for body, at in posts
    ]
    recording = b"\n".join(map(msgspec.json.encode, recorded))
    assert list(read_posts(recording)) == [LogPost(body=body, received_ms=at, game_map="de_nuke") for body, at in posts]


@pytest.mark.parametrize(
    "received_at",
    [str(SENT_MS), '"2026-07-17T18:14:24.267Z"', '"2026-07-17T20:14:24.267+02:00"', '"2026-07-17T18:14:24.267"'],
)
def test_receive_time_may_be_milliseconds_or_an_iso_time(received_at: str) -> None:
    recording = f'\n{{"receivedAt": {received_at}, "body": "één\\n"}}\n\n'.encode()
    assert single_post(recording) == LogPost(body="één\n".encode(), received_ms=SENT_MS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "truncated"),
        (b'{"receivedAt": 1}', "expected either `body` or `bodyBase64`"),
        (b'{"receivedAt": 1, "body": "", "bodyBase64": ""}', "expected either `body` or `bodyBase64`"),
        (b'{"receivedAt": 1, "bodyBase64": "?"}', "base64"),
        (b'{"receivedAt": "soon", "body": ""}', "isoformat"),
        (b'{"receivedAt": 1, "body": "", "bytes": 3}', "unknown field"),
        (b'{"body": ""}', "missing required field"),
        (b"[]", "Expected `object`"),
        (b'{"receivedAt": 1, "headers": ' + b"[" * 100_000, ""),
    ],
)
def test_error_in_json_lines_names_its_line(line: bytes, message: str) -> None:
    error = error_of(b'{"receivedAt": 1, "body": ""}\n' + line)
    assert error.startswith("line 2: ")
    assert message in error


# --- detecting the form -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first_bytes", "form"),
    [
        (b"[18:14:24.961] POST /log\nHEAD", RecordingForm.TRANSCRIPT),
        (b'\n {"receivedAt"', RecordingForm.JSON_LINES),
        (b"L 01/19/2026 - 19:02:08: Log file started", None),
        (b"07/17/2026 - 18:14:24.251 - rcon", None),
        (b"", None),
    ],
)
def test_form_is_detected_by_the_first_bytes(first_bytes: bytes, form: RecordingForm | None) -> None:
    assert detect_form(first_bytes) is form


@given(st.binary(max_size=80) | st.text(alphabet='[]{}"-:; \n0POSTHEADRBY', max_size=80).map(str.encode))
def test_other_bytes_raise_only_recording_errors(recording: bytes) -> None:
    with contextlib.suppress(RecordingError):
        list(read_posts(recording))


@pytest.mark.parametrize("at", [-1, MAX_TIME_MS, 10**18])
def test_number_outside_the_time_range_is_an_error(at: int) -> None:
    with pytest.raises(RecordingError, match="line 1: receivedAt is not a valid time"):
        list(read_posts(b'{"receivedAt": %d, "body": ""}' % at))
