"""The end of a server's log, as shown on the page of a failed match."""

from __future__ import annotations

from matchpod.service.reading.match_details import MAX_LAST_BYTES, MAX_LAST_LINES, last_lines


def test_last_lines_of_all_posts_are_shown_in_order() -> None:
    posts = [b"".join(b"line %d\n" % number for number in range(at, at + 30)) for at in (0, 30)]
    assert last_lines(posts) == tuple(f"line {number}" for number in range(60 - MAX_LAST_LINES, 60))
    assert last_lines([]) == ()


def test_size_is_bounded_and_no_line_is_cut_at_its_beginning() -> None:
    post = b"".join(b"%03d %s\n" % (number, b"x" * 996) for number in range(20))
    shown = last_lines([post])
    assert shown[0].startswith("012 ")
    assert sum(len(line) + 1 for line in shown) <= MAX_LAST_BYTES
    assert len(last_lines([b"y" * 50_000])[0]) <= MAX_LAST_BYTES + 1  # one endless line


def test_bytes_that_are_no_text_are_harmless() -> None:
    assert last_lines([b"a\x00b\xff\x1b[31m \xe2\x80\xae\r\n\n"]) == ("a b\ufffd [31m  ",)
