"""A real match, however its bytes were cut, repeated and resent, is one and the same match."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matchpod.core.result import build_result, live_match
from matchpod.cs2.log_batches import LogPost
from matchpod.cs2.match_reader import MatchReader
from tests.effort import examples

from .reading import COMPETITIVE, INFERNO

RECEIVED_MS = 1_768_900_000_000


def outcome(reader: MatchReader) -> bytes:
    """Everything a caller could see of the match, and the state behind it."""
    shown = [build_result(reader.match), live_match(reader.match), reader.match, reader.interpreter]
    return msgspec.json.encode(shown)


def post(data: bytes, begin: int, end: int) -> LogPost:
    return LogPost(
        body=data[begin:end], received_ms=RECEIVED_MS, begin=begin, end=end, instance_token="7be6ded70c65df71"
    )


def read_posts(posts: list[LogPost], *, is_stored_between: bool = False) -> MatchReader:
    reader = MatchReader.create(COMPETITIVE, RECEIVED_MS)
    for one in posts:
        reader.read_post(one)
        if is_stored_between:
            reader = msgspec.msgpack.decode(msgspec.msgpack.encode(reader), type=MatchReader)
    return reader


def whole(data: bytes) -> bytes:
    return outcome(read_posts([post(data, 0, len(data))]))


def test_posts_of_any_size_give_the_same_match(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    expected = whole(data)
    for size in (900, 4096, 65_536):
        cuts = [*range(0, len(data), size), len(data)]
        posts = [post(data, begin, end) for begin, end in pairwise(cuts)]
        assert outcome(read_posts(posts)) == expected


def test_a_reader_stored_after_every_post_gives_the_same_match(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    cuts = [*range(0, len(data), 16_384), len(data)]
    posts = [post(data, begin, end) for begin, end in pairwise(cuts)]
    assert outcome(read_posts(posts, is_stored_between=True)) == whole(data)


@settings(examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_cutting_repeating_and_overlapping_gives_the_same_match(corpus: Path, data: st.DataObject) -> None:
    log = (corpus / INFERNO).read_bytes()
    ends = sorted(data.draw(st.lists(st.integers(1, len(log) - 1), min_size=3, max_size=40), "cuts"))
    posts, told = [], 0
    for end in [*ends, len(log)]:
        begin = data.draw(st.integers(max(0, told - 5000), told), "begin")
        posts += [post(log, begin, end)] * data.draw(st.integers(1, 2), "times")
        told = end
    assert outcome(read_posts(posts)) == whole(log)


def test_the_same_bytes_by_file_and_by_post_give_the_same_numbers(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    by_file = MatchReader.create(COMPETITIVE, 0)
    by_file.read_file(data.split(b"\n"))
    by_post = read_posts([post(data, 0, len(data))])
    assert msgspec.json.encode(build_result(by_file.match)) == msgspec.json.encode(build_result(by_post.match))


def test_lost_bytes_make_the_map_incomplete_but_the_score_right(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    middle = len(data) // 2
    reader = read_posts([post(data, 0, middle), post(data, middle + 30_000, len(data))])
    played = reader.match.current_map
    assert not played.ledger.is_complete
    assert (played.team1_score, played.team2_score) == (13, 2)
