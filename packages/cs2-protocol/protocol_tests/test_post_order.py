"""Tests of held posts: posts that arrive out of order are read in order, and lost ones delay the others only shortly."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.log_batches import Gap, LogCursor, LogNotice, LogPost, MapLoad, NewLines, Restarted
from cs2_protocol.post_order import HOLD_MS, MAX_HELD_BYTES, MAX_HELD_POSTS, HeldPosts, read_in_order
from protocol_tests.effort import examples

TIMES_MS = st.integers(0, HOLD_MS - 1)


def post(
    body: bytes,
    begin: int | None,
    *,
    at_ms: int = 0,
    sent_ms: int | None = None,
    token: str | None = "one",
    game_map: str = "de_inferno",
) -> LogPost:
    return LogPost(body=body, received_ms=at_ms, begin=begin, instance_token=token, game_map=game_map, sent_ms=sent_ms)


def lines_of(results: list[NewLines]) -> list[bytes]:
    return [line for one in results for line in one.lines]


def notices_of(results: list[NewLines]) -> list[LogNotice]:
    return [notice for one in results for notice in one.notices]


def read(*posts: LogPost) -> list[NewLines]:
    return list(read_in_order(posts))


class Reader:
    """Reads posts as they arrive, and stores its state between any two."""

    def __init__(self) -> None:
        self.cursor, self.held = LogCursor(), HeldPosts()

    def arrive(self, one: LogPost) -> list[bytes]:
        self.held.posts.append(one)
        return self.wait_until(one.received_ms)

    def wait_until(self, now_ms: int | None) -> list[bytes]:
        self.held = msgspec.msgpack.decode(msgspec.msgpack.encode(self.held), type=HeldPosts)
        lines: list[bytes] = []
        while (one := self.held.pop(self.cursor, now_ms)) is not None:
            lines += self.cursor.read(one).lines
        return lines


# --- laws -------------------------------------------------------------------------------------------------------------


@st.composite
def loads(draw: st.DrawFn) -> list[list[LogPost]]:
    """Draw the posts of some map loads in order, as a server sends them: numbered from 0 in each load."""
    sent_ms, before, drawn = 0, 0, []
    for load in range(draw(st.integers(1, 3))):
        log = b"".join(b"%d line %d\n" % (load, number) for number in range(draw(st.integers(1, 9))))
        # A post that starts where the load before it ended would seem to continue it.
        inner = {*draw(st.lists(st.integers(0, len(log)), max_size=5))} - {before}
        cuts = sorted({0, len(log), *inner})
        before, posts = len(log), []
        for begin, end in pairwise(cuts):
            sent_ms += draw(st.integers(1, 300))
            posts.append(post(log[begin:end], begin, sent_ms=sent_ms, game_map=f"map_{load % 2}"))
        drawn.append(posts)
    return drawn


@examples(30)
@given(loads(), st.data())
def test_posts_of_a_load_in_any_order_within_the_wait_give_the_same_lines(
    sent: list[list[LogPost]], data: st.DataObject
) -> None:
    """Also with repeats. Posts of different loads arrive in the order of their loads."""
    arrived: list[LogPost] = []
    for number, posts in enumerate(sent):
        repeats = data.draw(st.lists(st.sampled_from(posts), max_size=3))
        at_ms = [number * HOLD_MS + data.draw(TIMES_MS) for _ in (*posts, *repeats)]
        delayed = [
            msgspec.structs.replace(one, received_ms=ms) for one, ms in zip([*posts, *repeats], at_ms, strict=True)
        ]
        arrived += sorted(delayed, key=lambda one: one.received_ms)
    expected = read(*(one for posts in sent for one in posts))
    found = read(*arrived)
    assert lines_of(found) == lines_of(expected)
    assert not any(isinstance(notice, Gap) for notice in notices_of(found))


@examples(20)
@given(loads(), st.data())
def test_no_post_is_held_for_longer_than_the_wait(sent: list[list[LogPost]], data: st.DataObject) -> None:
    """Neither if posts are lost, nor if the clock is set back."""
    reader, arrived = Reader(), [one for posts in sent for one in posts]
    for one in data.draw(st.permutations(arrived)):
        at_ms = data.draw(st.integers(0, 20 * HOLD_MS))
        reader.arrive(msgspec.structs.replace(one, received_ms=at_ms))
        assert all(abs(at_ms - held.received_ms) < HOLD_MS for held in reader.held.posts)
    reader.wait_until(None)
    assert reader.held.posts == []


# --- examples ---------------------------------------------------------------------------------------------------------


def test_post_waits_for_the_one_before_it() -> None:
    reader = Reader()
    assert reader.arrive(post(b"1\n", 0)) == [b"1"]
    assert reader.arrive(post(b"3\n", 4, at_ms=10)) == []
    assert reader.arrive(post(b"2\n", 2, at_ms=20)) == [b"2", b"3"]


def test_post_is_read_after_a_gap_when_the_wait_is_over() -> None:
    reader = Reader()
    reader.arrive(post(b"1\n", 0))
    assert reader.arrive(post(b"3\n", 4, at_ms=10)) == []
    assert reader.held.until_ms == 10 + HOLD_MS
    assert reader.wait_until(9 + HOLD_MS) == []
    assert reader.wait_until(10 + HOLD_MS) == [b"3"]
    assert reader.arrive(post(b"2\n", 2, at_ms=2 * HOLD_MS)) == [], "too late"


def test_missing_post_counts_even_after_the_wait_if_the_others_were_not_read_yet() -> None:
    assert lines_of(read(post(b"1\n", 0), post(b"3\n", 4), post(b"2\n", 2, at_ms=9 * HOLD_MS))) == [b"1", b"2", b"3"]


def test_first_posts_of_a_server_may_arrive_out_of_order() -> None:
    assert lines_of(read(post(b"2\n", 2), post(b"1\n", 0))) == [b"1", b"2"]


def test_posts_without_offsets_do_not_wait() -> None:
    assert lines_of(read(post(b"2\n", None), post(b"1\n", None))) == [b"2", b"1"]


def test_post_of_the_next_map_waits_for_its_load() -> None:
    found = read(
        post(b"1\n", 0, sent_ms=1),
        post(b"3\n", 6, sent_ms=3, game_map="de_nuke"),
        post(b"load \n", 0, sent_ms=2, game_map="de_nuke"),
    )
    assert lines_of(found) == [b"1", b"load ", b"3"]
    assert notices_of(found) == [MapLoad(2, "de_nuke")]


def test_post_of_a_new_process_waits_for_its_start() -> None:
    found = read(post(b"1\n", 0), post(b"3\n", 2, sent_ms=3, token="two"), post(b"2\n", 0, sent_ms=2, token="two"))
    assert lines_of(found) == [b"1", b"2", b"3"]
    assert notices_of(found) == [Restarted("two")]


def test_held_posts_are_read_before_a_new_load() -> None:
    found = read(post(b"1\n", 0, sent_ms=1), post(b"3\n", 4, sent_ms=3), post(b"new\n", 0, sent_ms=4))
    assert lines_of(found) == [b"1", b"3", b"new"]
    assert notices_of(found) == [Gap(2), MapLoad(2, "de_inferno")]


def test_number_and_size_of_held_posts_are_limited() -> None:
    reader = Reader()
    for number in range(MAX_HELD_POSTS):
        assert reader.arrive(post(b"x\n", 10 + 2 * number)) == []
    assert len(reader.arrive(post(b"x\n", 10 + 2 * MAX_HELD_POSTS))) == MAX_HELD_POSTS + 1
    large = Reader()
    large.arrive(post(b"x" * (MAX_HELD_BYTES - 1) + b"\n", 10))
    assert len(large.arrive(post(b"y\n", 10 + MAX_HELD_BYTES))) == 2
