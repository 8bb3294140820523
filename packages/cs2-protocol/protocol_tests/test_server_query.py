"""Tests of the query of a game."""

from __future__ import annotations

import pytest

from cs2_protocol.server_query import INFO_REQUEST, REPLY_HEAD, is_answer


@pytest.mark.parametrize(
    ("datagram", "is_ours"),
    [
        (REPLY_HEAD + b"A\x01\x02\x03\x04", True),
        (REPLY_HEAD + b"I\x11name\0", True),
        (INFO_REQUEST, False),
        (b"\xfe\xff\xff\xffI", False),
        (b"HTTP/1.1 400", False),
        (REPLY_HEAD, False),
        (b"", False),
    ],
)
def test_game_is_recognized_by_its_answer(datagram: bytes, is_ours: bool) -> None:
    assert is_answer(datagram) is is_ours
