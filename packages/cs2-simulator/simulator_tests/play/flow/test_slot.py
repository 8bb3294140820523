"""Test that a slot holds one task at a time."""

from __future__ import annotations

from cs2_simulator.agenda import Agenda, Script
from cs2_simulator.play.flow.slot import TaskSlot


def test_new_task_cancels_the_old_one() -> None:
    agenda, calls = Agenda(0), list[str]()
    slot = TaskSlot(agenda)
    slot.call_in(1000, lambda: calls.append("old"))
    slot.call_in(2000, lambda: calls.append("new"))
    agenda.run_until(3000)
    assert calls == ["new"]


def test_waking_a_task_ends_its_wait() -> None:
    agenda, calls = Agenda(0), list[int]()
    slot = TaskSlot(agenda)
    slot.wake()

    def script() -> Script[None]:
        for _ in range(3):
            calls.append(agenda.now_ms)
            yield 1000

    slot.start(script())
    agenda.run_until(500)
    slot.wake()
    agenda.run_until(5000)
    assert calls == [0, 500, 1500]
    assert agenda.next_due_ms() is None


def test_slot_is_active_until_its_task_is_done() -> None:
    agenda = Agenda(0)
    slot = TaskSlot(agenda)
    assert not slot.is_active
    slot.call_in(1000, lambda: None)
    assert slot.is_active
    agenda.run_until(1000)
    assert not slot.is_active


def test_script_starts_later_in_the_tick_and_may_replace_itself() -> None:
    agenda, calls = Agenda(0), list[str]()
    slot = TaskSlot(agenda)

    def first() -> Script[None]:
        calls.append("first")
        slot.run(second())
        yield 0
        calls.append("never")

    def second() -> Script[None]:
        calls.append("second")
        yield 1000
        calls.append("later")

    slot.run(first())
    assert calls == []
    agenda.run_until(2000)
    assert calls == ["first", "second", "later"]


def test_started_script_runs_its_first_step_at_once() -> None:
    agenda, calls = Agenda(0), list[str]()

    def script() -> Script[None]:
        calls.append("now")
        yield 1000
        calls.append("then")

    slot = TaskSlot(agenda)
    slot.start(script())
    assert calls == ["now"]
    slot.cancel()
    agenda.run_until(2000)
    assert calls == ["now"]
