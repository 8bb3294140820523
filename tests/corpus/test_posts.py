"""Tests that a real match does not depend on how its bytes were split into posts, repeated and resent."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cs2_protocol.log_batches import LogPost
from matchpod.core.events import MapEnded
from matchpod.core.views.result import build_result, live_match
from matchpod.cs2.match_reader import MatchReader
from tests.corpus.real_logs import COMPETITIVE, CS2_MATCHES, INFERNO
from tests.effort import examples

RECEIVED_MS = 1_768_900_000_000


def encoded_match(reader: MatchReader) -> bytes:
    """Encode everything that a caller can see of the match, and its internal state."""
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


@cache
def match_from_one_post(data: bytes) -> bytes:
    return encoded_match(read_posts([post(data, 0, len(data))]))


def test_reader_stored_after_every_post_gives_the_same_match(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    cuts = [*range(0, len(data), 16_384), len(data)]
    posts = [post(data, begin, end) for begin, end in pairwise(cuts)]
    assert encoded_match(read_posts(posts, is_stored_between=True)) == match_from_one_post(data)


@settings(examples(5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_splitting_repeating_and_overlapping_posts_gives_the_same_match(corpus: Path, data: st.DataObject) -> None:
    log = (corpus / INFERNO).read_bytes()
    ends = sorted(data.draw(st.lists(st.integers(1, len(log) - 1), min_size=3, max_size=40), "cuts"))
    posts, sent = [], 0
    for end in [*ends, len(log)]:
        begin = data.draw(st.integers(max(0, sent - 5000), sent), "begin")
        posts += [post(log, begin, end)] * data.draw(st.integers(1, 2), "times")
        sent = end
    assert encoded_match(read_posts(posts)) == match_from_one_post(log)


@settings(examples(3), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.sampled_from([900, 4096]))
def test_posts_that_arrive_out_of_order_give_the_same_match(corpus: Path, random: Random, size: int) -> None:
    data = (corpus / INFERNO).read_bytes()
    posts = [post(data, begin, end) for begin, end in pairwise([*range(0, len(data), size), len(data)])]
    arrived: list[LogPost] = []
    while posts:  # groups of posts that are forwarded concurrently
        group = posts[: random.randint(1, 40)]
        posts = posts[len(group) :]
        arrived += random.sample(group, len(group))
    assert encoded_match(read_posts(arrived)) == match_from_one_post(data)


def test_file_and_post_of_the_same_bytes_give_the_same_result(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    by_file = MatchReader.create(COMPETITIVE, 0)
    by_file.read_file(data.split(b"\n"))
    by_post = read_posts([post(data, 0, len(data))])
    assert msgspec.json.encode(build_result(by_file.match)) == msgspec.json.encode(build_result(by_post.match))


def test_lost_bytes_make_the_map_incomplete_but_keep_the_score_correct(corpus: Path) -> None:
    data = (corpus / INFERNO).read_bytes()
    middle = len(data) // 2
    reader = read_posts([post(data, 0, middle), post(data, middle + 30_000, len(data))])
    played = reader.match.current_map
    assert not played.ledger.is_complete
    assert (played.team1_score, played.team2_score) == (13, 2)


def test_no_map_ends_in_a_round_that_could_not_end_it(corpus: Path) -> None:
    ends = sure = 0
    for name in CS2_MATCHES:
        reader, begin, data = MatchReader.create(COMPETITIVE, RECEIVED_MS), 0, (corpus / name).read_bytes()
        for line in data.splitlines(keepends=True):
            could_end = reader.may_map_end
            sure += not could_end
            events = reader.read_post(post(data, begin, begin + len(line))).events
            begin += len(line)
            ended = any(isinstance(event, MapEnded) for event in events)
            assert could_end or not ended, line
            ends += ended
    assert ends
    assert sure > 1_000, "most lines are those of rounds that end nothing"
