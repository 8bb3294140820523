"""Read recorded log posts, from a text transcript or from JSON lines.

A transcript is the output of common log receivers. Per post: `[HH:MM:SS.mmm] POST /path`, `HEADERS: k=v; k=v`, `BODY:`,
the body, `---`. Its times are read as UTC; their date is taken from the post. A JSON line is `{"receivedAt": 0,
"headers": {}, "body": ""}`, with `bodyBase64` instead of `body` if the bytes are not UTF-8. While invalid input of a
server is ignored, an invalid recording raises an error with the line number.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from cs2_protocol.log_batches import LogPost, read_post
from cs2_protocol.log_clock import parse_stamp

MAX_TIME_MS = 253_402_300_800_000
"""Exclusive upper limit of times in milliseconds: the start of the year 10000, which a Python datetime cannot
represent."""

_DAY_MS = 86_400_000
_STAMP_CHARS = 25

_OPENING = re.compile(rb"\[(\d\d:\d\d:\d\d(?:\.\d{1,3})?)\] POST \S+\r?\n")
_HEADERS = re.compile(rb"HEADERS: ?([^\r\n]*)\r?\n")
_BODY = re.compile(rb"BODY:\r?\n")
_CLOSING = re.compile(rb"\r?\n---[ \t]*(?=\r?\n|\Z)")
# End of a body of unknown length. Since the body may contain `---` lines, a post or the end of the file must follow.
_LAST_CLOSING = re.compile(rb"\r?\n---[ \t]*(?=\r?\n\s*\[\d\d:\d\d:\d\d|\s*\Z)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_NAMED = re.compile(r"([A-Za-z0-9-]+)=(.*)", re.DOTALL)


class RecordingError(ValueError):
    """A recording is invalid; the message has the line number."""


class RecordingForm(StrEnum):
    """The format of a recording."""

    TRANSCRIPT = "transcript"
    JSON_LINES = "json_lines"


class _RecordedPost(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    received_at: int | str
    headers: dict[str, str] = {}
    body: str | None = None
    body_base64: str | None = None


def detect_form(first_bytes: bytes) -> RecordingForm | None:
    """Detect the format of a recording from its first bytes; None if it has neither format, such as a log file."""
    start = first_bytes.lstrip()
    if _OPENING.match(start):
        return RecordingForm.TRANSCRIPT
    return RecordingForm.JSON_LINES if start.startswith(b"{") else None


def read_posts(recording: bytes) -> Iterator[LogPost]:
    """Yield the posts of a recording in order; raise RecordingError at the first invalid one."""
    form = detect_form(recording)
    if form is RecordingForm.TRANSCRIPT:
        return _read_transcript(recording)
    if form is RecordingForm.JSON_LINES:
        return _read_json_lines(recording)
    raise RecordingError("line 1: expected `[HH:MM:SS] POST …` or a JSON object")


def _read_transcript(recording: bytes) -> Iterator[LogPost]:
    at = _skip_blank(recording, 0)
    while at < len(recording):
        opening = _expect(_OPENING, recording, at, "`[HH:MM:SS.mmm] POST …`")
        named = _expect(_HEADERS, recording, opening.end(), "`HEADERS: name=value; …`")
        headers = _split_headers(named[1].decode("utf-8", "replace"))
        start = _expect(_BODY, recording, named.end(), "`BODY:`").end()
        length = _length(headers)
        closing = _find_closing(recording, start, length)
        body = _fit_length(recording[start : closing.start()], length)
        yield read_post(headers, body, received_ms=_received_ms(opening[1].decode(), headers, body))
        at = _skip_blank(recording, closing.end())


def _find_closing(recording: bytes, start: int, length: int | None) -> re.Match[bytes]:
    """Find the end of a body by its length, else by the first `---` line just before a post or the end of the file."""
    exact = None if length is None else _CLOSING.match(recording, start + length)
    # The line end before `---` is not part of the body. For an empty body, it may be the line end after `BODY:`.
    closing = exact or _LAST_CLOSING.search(recording, start - 1)
    if closing is None:
        raise RecordingError(f"line {_line_of(recording, start)}: the body does not end with the line `---`")
    return closing


def _fit_length(body: bytes, length: int | None) -> bytes:
    """Restore the last line end of a body, which editors may have changed, so that the body has its original length."""
    if length is None:
        return body
    if len(body) == length - 1:
        return body + b"\n"
    return body[:length] if not body[length:].strip() else body


def _length(headers: dict[str, str]) -> int | None:
    """Return the length of a body from its Content-Length header, else from its offsets; None if unknown."""
    if _LENGTH.fullmatch(headers.get("content-length", "")):
        return int(headers["content-length"])
    offsets = read_post(headers, b"", received_ms=0)
    if offsets.begin is None or offsets.end is None:
        return None
    return max(0, offsets.end - offsets.begin)


def _split_headers(text: str) -> dict[str, str]:
    """Split `name=value; …` into a dict with names in lower case.

    A part without a name is appended to the value before it.
    """
    headers: dict[str, str] = {}
    last = ""
    for part in text.split("; "):
        named = _NAMED.fullmatch(part)
        if named:
            last = named[1].lower()
            headers[last] = named[2]
        elif last:
            headers[last] += f"; {part}"
    return headers


def _received_ms(clock: str, headers: dict[str, str], body: bytes) -> int:
    """Return the transcript's time of day as a full time, on the day that is closest to the server's own time."""
    time_of_day = parse_stamp(f"01/01/1970 - {clock[:8]}.{clock[9:].ljust(3, '0')}") or 0
    sent_ms = parse_stamp(headers.get("x-timestamp", ""))
    if sent_ms is None:
        sent_ms = parse_stamp(body[:_STAMP_CHARS].decode("utf-8", "replace")) or 0
    day = sent_ms // _DAY_MS
    return min((time_of_day + (day + step) * _DAY_MS for step in (0, -1, 1)), key=lambda ms: abs(ms - sent_ms))


def _read_json_lines(recording: bytes) -> Iterator[LogPost]:
    for number, line in enumerate(recording.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            recorded = msgspec.json.decode(line, type=_RecordedPost)
            yield read_post(recorded.headers, _recorded_body(recorded), received_ms=_recorded_ms(recorded.received_at))
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as exc:
            raise RecordingError(f"line {number}: {exc}") from exc


def _recorded_body(recorded: _RecordedPost) -> bytes:
    if (recorded.body is None) == (recorded.body_base64 is None):
        raise ValueError("expected either `body` or `bodyBase64`")
    if recorded.body_base64 is not None:
        return b64decode(recorded.body_base64, validate=True)
    return (recorded.body or "").encode()


def _recorded_ms(received_at: int | str) -> int:
    """Return milliseconds since the epoch from a number or an ISO 8601 time. A time without a zone is UTC."""
    if isinstance(received_at, int):
        if not 0 <= received_at < MAX_TIME_MS:
            raise ValueError("receivedAt is not a valid time in milliseconds")
        return received_at
    at = datetime.fromisoformat(received_at)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _expect(pattern: re.Pattern[bytes], recording: bytes, at: int, what: str) -> re.Match[bytes]:
    found = pattern.match(recording, at)
    if found is None:
        raise RecordingError(f"line {_line_of(recording, at)}: expected {what}")
    return found


def _skip_blank(recording: bytes, at: int) -> int:
    while at < len(recording) and recording[at : at + 1].isspace():
        at += 1
    return at


def _line_of(recording: bytes, at: int) -> int:
    return recording.count(b"\n", 0, at) + 1
