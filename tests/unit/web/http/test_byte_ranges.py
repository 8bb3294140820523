"""Which part of a file a Range header asks for."""

from __future__ import annotations

import pytest

from matchpod.web.http.byte_ranges import UnsatisfiableRangeError, read_range


@pytest.mark.parametrize(
    ("header", "part"),
    [
        *(("bytes=0-0", (0, 1)), ("bytes=2-5", (2, 4)), ("bytes=7-", (7, 3)), ("bytes= 2-99", (2, 8))),
        *(("bytes=-3", (7, 3)), ("bytes=-99", (0, 10))),
    ],
)
def test_part_is_within_the_file(header: str, part: tuple[int, int]) -> None:
    assert read_range(header, 10) == part


@pytest.mark.parametrize("header", [None, "", "bytes=-", "bytes=5-2", "bytes=1-2,4-5", "items=0-1", "bytes=a-b"])
def test_whole_file_is_wanted_without_a_valid_range(header: str | None) -> None:
    assert read_range(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=10-20", 10), ("bytes=-0", 10), ("bytes=0-", 0)]
)
def test_part_after_the_end_cannot_be_satisfied(header: str, size: int) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        read_range(header, size)
