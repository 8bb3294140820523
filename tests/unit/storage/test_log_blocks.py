"""Blocks of log entries unpack to the same bytes, whatever a server sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.storage import log_blocks
from matchpod.storage.log_blocks import LogColumns

NUMBERS = st.sampled_from([b"0", b"7", b"007", b"00", b"-1", b"123456", b"9" * 18, b"9" * 19, b"", b"1.5", b"\xd9\xa1"])
HEADERS = st.one_of(
    st.binary(max_size=20),
    st.builds(lambda a, b: b'{"x-begin":"%s","x-end":"%s"}' % (a, b), NUMBERS, NUMBERS),
    st.builds(lambda a: b'{"x":"%s"}' % a, NUMBERS),
)
ENTRY = st.tuples(
    st.sampled_from(["log", "report"]),
    st.integers(0, 2**50),
    HEADERS,
    st.binary(max_size=30),
    st.sampled_from(["", "0a1b2c3d4e5f"]),
)


@given(st.integers(1, 2**40), st.lists(ENTRY, min_size=1, max_size=12))
def test_block_unpacks_to_the_same_entries(first_seq: int, entries: list[tuple[str, int, bytes, bytes, str]]) -> None:
    kinds, received_ms, headers, bodies, attempts = (list(column) for column in zip(*entries, strict=True))
    columns = LogColumns(
        first_seq=first_seq, kinds=kinds, received_ms=received_ms, headers=headers, bodies=bodies, attempts=attempts
    )
    assert log_blocks.unpack(log_blocks.pack(columns)) == columns


def test_headers_of_posts_cost_a_few_bytes_each() -> None:
    count = 500
    headers = [
        b'{"x-logbytes-beginoffset":"%d","x-logbytes-endoffset":"%d","x-tick-start":"%d","x-game-map":"de_inferno",'
        b'"content-length":"430","user-agent":"Valve/Steam HTTP Client 1.0 (730)"}'
        % (at * 430, at * 430 + 430, at * 70)
        for at in range(count)
    ]
    columns = LogColumns(
        first_seq=1, kinds=["log"] * count, received_ms=[at * 1100 for at in range(count)], headers=headers,
        bodies=[b"x" * 430] * count, attempts=["0a1b2c3d4e5f"] * count,
    )  # fmt: skip
    assert len(log_blocks.pack(columns)) < 2 * count
