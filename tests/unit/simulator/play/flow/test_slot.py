"""One plan at a time."""

from __future__ import annotations

from matchpod.simulator.agenda import Agenda, Script
from matchpod.simulator.play.flow.slot import Slot


def test_new_plan_calls_the_old_one_off() -> None:
    agenda, seen = Agenda(0), list[str]()
    slot = Slot(agenda)
    slot.call_in(1000, lambda: seen.append("old"))
    slot.call_in(2000, lambda: seen.append("new"))
    agenda.run_until(3000)
    assert seen == ["new"]


def test_slot_is_taken_until_its_plan_has_happened() -> None:
    agenda = Agenda(0)
    slot = Slot(agenda)
    assert not slot.is_taken
    slot.call_in(1000, lambda: None)
    assert slot.is_taken
    agenda.run_until(1000)
    assert not slot.is_taken


def test_script_begins_later_in_the_tick_and_may_put_another_in_its_place() -> None:
    agenda, seen = Agenda(0), list[str]()
    slot = Slot(agenda)

    def first() -> Script[None]:
        seen.append("first")
        slot.run(second())
        yield 0
        seen.append("never")

    def second() -> Script[None]:
        seen.append("second")
        yield 1000
        seen.append("later")

    slot.run(first())
    assert seen == []
    agenda.run_until(2000)
    assert seen == ["first", "second", "later"]


def test_started_script_takes_its_first_step_at_once() -> None:
    agenda, seen = Agenda(0), list[str]()

    def script() -> Script[None]:
        seen.append("now")
        yield 1000
        seen.append("then")

    slot = Slot(agenda)
    slot.start(script())
    assert seen == ["now"]
    slot.cancel()
    agenda.run_until(2000)
    assert seen == ["now"]
