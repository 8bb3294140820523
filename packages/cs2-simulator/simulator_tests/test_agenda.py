"""Tests of the simulated clock and its tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.agenda import Agenda, ScheduledTask, Script

START_MS = 1_768_849_200_000


def _agenda() -> tuple[Agenda, list[str]]:
    return Agenda(START_MS), []


def test_task_without_wait_runs_later_in_the_same_tick() -> None:
    agenda, calls = _agenda()

    def first() -> None:
        agenda.call_in(0, lambda: calls.append(f"second at {agenda.tick}"))
        calls.append(f"first at {agenda.tick}")

    agenda.call_in(1000, first)
    agenda.run_until(START_MS + 1000)
    assert calls == ["first at 64", "second at 64"]


def test_script_runs_its_first_step_immediately_and_then_waits() -> None:
    agenda, calls = _agenda()

    def script() -> Script[None]:
        calls.append("begin")
        yield 1000
        calls.append(f"end at {agenda.tick}")

    task = agenda.start(script())
    assert calls == ["begin"]
    agenda.run_until(START_MS + 5000)
    assert calls == ["begin", "end at 64"]
    assert task.is_over


def test_cancelled_script_is_closed_while_it_waits() -> None:
    agenda, calls = _agenda()

    def script() -> Script[None]:
        try:
            yield 1000
            calls.append("never")
        finally:
            calls.append("closed")

    task = agenda.start(script())
    task.cancel()
    task.cancel()
    agenda.run_until(START_MS + 5000)
    assert calls == ["closed"]


def test_script_can_cancel_itself() -> None:
    agenda, calls = _agenda()
    running: list[ScheduledTask] = []

    def script() -> Script[None]:
        yield 1000
        running[0].cancel()
        calls.append("after cancel")
        yield 1000
        calls.append("never")

    running.append(agenda.start(script()))
    agenda.run_until(START_MS + 9000)
    assert calls == ["after cancel"]
    assert agenda.next_due_ms() is None


def test_cancelled_task_does_not_run() -> None:
    agenda, calls = _agenda()
    agenda.call_in(10, lambda: calls.append("x")).cancel()
    assert agenda.next_due_ms() is None
    assert not agenda.run_next()
    assert calls == []


def test_clear_cancels_all_tasks() -> None:
    agenda, calls = _agenda()
    agenda.call_in(10, lambda: calls.append("x"))
    agenda.clear()
    agenda.run_until(START_MS + 1000)
    assert calls == []


def test_hold_stops_the_clock_after_the_current_tick_until_the_next_run() -> None:
    agenda, calls = _agenda()
    agenda.call_in(100, agenda.hold)
    agenda.call_in(100, lambda: calls.append("the same tick"))
    agenda.call_in(200, lambda: calls.append("later"))
    agenda.run_until(START_MS + 1000)
    assert calls == ["the same tick"]
    assert agenda.tick == -(-100 * 64 // 1000)
    agenda.run_until(START_MS + 1000)
    assert calls == ["the same tick", "later"]
    assert agenda.tick == 64


@given(st.lists(st.integers(0, 10_000), max_size=30), st.lists(st.integers(0, 4000), max_size=10))
def test_tasks_run_at_their_due_tick_regardless_of_how_time_advances(waits: list[int], steps: list[int]) -> None:
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
