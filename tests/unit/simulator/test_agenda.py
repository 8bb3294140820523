"""Time in ticks and everything that waits for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from matchpod.simulator.agenda import Agenda, Planned, Script

START_MS = 1_768_849_200_000


def _agenda() -> tuple[Agenda, list[str]]:
    return Agenda(START_MS), []


def test_plans_happen_in_the_order_of_their_times() -> None:
    agenda, seen = _agenda()
    agenda.call_in(2000, lambda: seen.append("late"))
    agenda.call_in(1000, lambda: seen.append("early"))
    agenda.run_until(START_MS + 2000)
    assert seen == ["early", "late"]


def test_plans_of_one_tick_happen_in_the_order_they_were_made() -> None:
    agenda, seen = _agenda()
    for name in "abc":
        agenda.call_in(500, lambda name=name: seen.append(name))  # type: ignore[misc]
    agenda.run_until(START_MS + 500)
    assert seen == ["a", "b", "c"]


def test_nothing_happens_before_its_time() -> None:
    agenda, seen = _agenda()
    agenda.call_in(1000, lambda: seen.append("x"))
    agenda.run_until(START_MS + 999)
    assert seen == []
    assert agenda.now_ms == START_MS + 984  # the 63rd tick of the second


def test_a_wait_is_rounded_up_to_a_whole_tick() -> None:
    agenda, _ = _agenda()
    agenda.call_in(1, lambda: None)
    assert agenda.next_due_ms() == START_MS + 15


def test_a_plan_for_now_happens_in_this_tick_after_those_before_it() -> None:
    agenda, seen = _agenda()

    def first() -> None:
        agenda.call_in(0, lambda: seen.append(f"second at {agenda.tick}"))
        seen.append(f"first at {agenda.tick}")

    agenda.call_in(1000, first)
    agenda.run_until(START_MS + 1000)
    assert seen == ["first at 64", "second at 64"]


def test_a_script_runs_its_first_step_at_once_and_waits_where_it_yields() -> None:
    agenda, seen = _agenda()

    def script() -> Script[None]:
        seen.append("begin")
        yield 1000
        seen.append(f"end at {agenda.tick}")

    planned = agenda.start(script())
    assert seen == ["begin"]
    agenda.run_until(START_MS + 5000)
    assert seen == ["begin", "end at 64"]
    assert planned.is_over


def test_a_script_that_is_called_off_stops_where_it_waits() -> None:
    agenda, seen = _agenda()

    def script() -> Script[None]:
        try:
            yield 1000
            seen.append("never")
        finally:
            seen.append("closed")

    planned = agenda.start(script())
    planned.cancel()
    planned.cancel()
    agenda.run_until(START_MS + 5000)
    assert seen == ["closed"]


def test_a_script_may_call_itself_off() -> None:
    agenda, seen = _agenda()
    running: list[Planned] = []

    def script() -> Script[None]:
        yield 1000
        running[0].cancel()
        seen.append("said after")
        yield 1000
        seen.append("never")

    running.append(agenda.start(script()))
    agenda.run_until(START_MS + 9000)
    assert seen == ["said after"]
    assert agenda.next_due_ms() is None


def test_a_plan_that_is_called_off_does_not_happen() -> None:
    agenda, seen = _agenda()
    agenda.call_in(10, lambda: seen.append("x")).cancel()
    assert agenda.next_due_ms() is None
    assert not agenda.run_next()
    assert seen == []


def test_clearing_calls_everything_off() -> None:
    agenda, seen = _agenda()
    agenda.call_in(10, lambda: seen.append("x"))
    agenda.clear()
    agenda.run_until(START_MS + 1000)
    assert seen == []


def test_running_the_next_tick_takes_no_more_than_one() -> None:
    agenda, seen = _agenda()
    agenda.call_in(100, lambda: seen.append("a"))
    agenda.call_in(200, lambda: seen.append("b"))
    assert agenda.run_next()
    assert seen == ["a"]


def test_time_that_is_held_stands_still_after_the_tick_until_it_is_moved_again() -> None:
    agenda, seen = _agenda()
    agenda.call_in(100, agenda.hold)
    agenda.call_in(100, lambda: seen.append("the same tick"))
    agenda.call_in(200, lambda: seen.append("later"))
    agenda.run_until(START_MS + 1000)
    assert seen == ["the same tick"]
    assert agenda.tick == -(-100 * 64 // 1000)
    agenda.run_until(START_MS + 1000)
    assert seen == ["the same tick", "later"]
    assert agenda.tick == 64


def test_time_never_goes_back() -> None:
    agenda, _ = _agenda()
    agenda.run_until(START_MS + 1000)
    agenda.run_until(START_MS)
    assert agenda.now_ms == START_MS + 1000


@given(st.lists(st.integers(0, 10_000), max_size=30), st.lists(st.integers(0, 4000), max_size=10))
def test_however_time_is_cut_everything_happens_at_its_own_tick(waits: list[int], steps: list[int]) -> None:
    agenda, _ = _agenda()
    at: list[tuple[int, int]] = []
    for wait_ms in waits:
        agenda.call_in(wait_ms, lambda wait_ms=wait_ms: at.append((wait_ms, agenda.tick)))  # type: ignore[misc]
    now_ms = START_MS
    for step in steps:
        now_ms += step
        agenda.run_until(now_ms)
    agenda.run_until(START_MS + 20_000)
    assert sorted(waits) == sorted(wait_ms for wait_ms, _ in at)
    assert [tick for _, tick in at] == sorted(tick for _, tick in at)
    assert all(tick == -(-wait_ms * 64 // 1000) for wait_ms, tick in at)
