"""Times of a simulated game are shown in our time: in order, never in the future, and never changed later."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.match.game_times import MAX_STRETCHES, TOLERANCE_MS, GameTimes

START_MS = 1_790_000_000_000

posts = st.lists(st.tuples(st.integers(0, 60_000), st.integers(-3_000, 10_000)), min_size=1, max_size=40)
"""Posts, each as the time since the last one: by the clock of the game and by ours."""


def times_at(speed: float, posts: int, *, every_ms: int = 100) -> GameTimes:
    times = GameTimes()
    for number in range(posts):
        times.add_post(START_MS + round(number * every_ms * speed), START_MS + number * every_ms)
    return times


def test_times_are_unchanged_without_posts() -> None:
    assert GameTimes().ours(START_MS) == START_MS


def test_time_between_two_posts_is_interpolated() -> None:
    times = GameTimes()
    times.add_post(START_MS, START_MS)
    times.add_post(START_MS + 60_000, START_MS + 2_000)
    assert times.ours(START_MS + 30_000) == START_MS + 1_000


def test_time_outside_of_the_posts_is_that_of_the_first_or_last_post() -> None:
    times = GameTimes()
    times.add_post(START_MS, START_MS + 7)
    times.add_post(START_MS + 60_000, START_MS + 2_000)
    assert times.ours(START_MS - 1) == START_MS + 7
    assert times.ours(START_MS + 90_000) == START_MS + 2_000


def test_steady_speed_needs_few_stretches() -> None:
    times = times_at(30, 900)
    assert len(times.stretches) < 10
    for second in range(1, 89):
        assert 0 <= START_MS + second * 1000 - times.ours(START_MS + second * 30_000) <= TOLERANCE_MS + 100


def test_stretches_are_limited_and_times_stay_in_order() -> None:
    times = GameTimes()
    for number in range(MAX_STRETCHES + 500):
        times.add_post(START_MS + number * 3_000, START_MS + number * 1_000 + number % 2 * 900)
    assert len(times.stretches) == MAX_STRETCHES
    shown = [times.ours(START_MS + number * 1_500) for number in range(2 * MAX_STRETCHES + 1_000)]
    assert shown == sorted(shown)
    assert shown[-1] <= START_MS + (MAX_STRETCHES + 500) * 1_000


@given(posts)
def test_times_are_in_order_and_none_is_later_than_the_clock_has_shown(steps: list[tuple[int, int]]) -> None:
    times, game_ms, our_ms, latest_ms = GameTimes(), START_MS, START_MS, START_MS
    for game_step, our_step in steps:
        game_ms, our_ms = game_ms + game_step, our_ms + our_step
        latest_ms = max(latest_ms, our_ms)
        times.add_post(game_ms, our_ms)
        assert times.ours(game_ms) <= latest_ms
    shown = [times.ours(at_ms) for at_ms in range(START_MS - 1_000, game_ms + 1_000, 977)]
    assert shown == sorted(shown)


@given(posts)
def test_later_posts_do_not_change_earlier_times(steps: list[tuple[int, int]]) -> None:
    times, game_ms, our_ms, shown = GameTimes(), START_MS, START_MS, dict[int, int]()
    for game_step, our_step in steps:
        for at_ms in range(game_ms, game_ms + game_step, 7_001):
            shown.setdefault(at_ms, -1)
        game_ms, our_ms = game_ms + game_step, our_ms + our_step
        times.add_post(game_ms, our_ms)
        for at_ms, before in shown.items():
            assert before in (-1, times.ours(at_ms))
            shown[at_ms] = times.ours(at_ms)
