"""Tests of splitting large log posts: small pieces, cut where lines end, that read like the post."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_batches import LogCursor, NewLines, read_post
from cs2_protocol.log_pieces import MAX_PIECE_BYTES, split_post
from protocol_tests.effort import examples

LINE = b"L 03/14/2026 - 20:03:20: rcon from x\n"

bodies = st.lists(
    st.sampled_from([LINE, b"no time stamp\n", b"\n", b"x" * 5_000, b"y" * 20_000 + b"\n"]), max_size=40
).map(b"".join)


def read(posts: list[tuple[dict[str, str], bytes]]) -> tuple[list[bytes], LogCursor]:
    cursor = LogCursor()
    results: list[NewLines] = [cursor.read(read_post(headers, body, received_ms=0)) for headers, body in posts]
    return [line for result in results for line in result.lines], cursor


def test_small_post_is_one_piece_with_the_same_headers() -> None:
    headers = {"x-logbytes-beginoffset": "5", "x-logbytes-endoffset": "99"}
    assert list(split_post(headers, LINE)) == [(headers, LINE)]


def test_piece_ends_before_a_line_with_a_time_stamp() -> None:
    body = LINE * 1_000 + b"a command\nwith line breaks\n" * 10 + LINE * 1_000
    for _, piece in split_post({}, body):
        assert piece.startswith(b"L ")
        assert piece.endswith(b"\n")


def test_piece_without_a_line_end_is_cut_at_the_limit() -> None:
    sizes = [len(piece) for _, piece in split_post({}, b"x" * (2 * MAX_PIECE_BYTES + 1))]
    assert sizes == [MAX_PIECE_BYTES, MAX_PIECE_BYTES, 1]


@given(body=bodies, begin=st.sampled_from([None, "0", " 7 ", "x", "9" * 16]))
@examples(50)
def test_pieces_read_like_the_post(body: bytes, begin: str | None) -> None:
    headers = {"x-game-map": "de_nuke"} | ({} if begin is None else {"x-logbytes-beginoffset": begin})
    pieces = [(dict(piece_headers), piece) for piece_headers, piece in split_post(headers, body)]
    assert b"".join(piece for _, piece in pieces) == body
    assert all(len(piece) <= MAX_PIECE_BYTES for _, piece in pieces)
    lines, cursor = read(pieces)
    expected, whole = read([(headers, body)])
    assert lines == expected
    assert cursor.end == whole.end
