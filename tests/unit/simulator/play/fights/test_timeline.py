"""Scripts side by side."""

from __future__ import annotations

from matchpod.simulator.agenda import Agenda, Script
from matchpod.simulator.play.fights.timeline import Timeline


def note(notes: list[str], word: str, *waits_ms: int) -> Script[None]:
    for wait_ms in waits_ms:
        notes.append(word)
        yield wait_ms


def test_scripts_take_turns_by_time() -> None:
    agenda, notes = Agenda(0), list[str]()
    timeline = Timeline(agenda)
    timeline.start(note(notes, "slow", 300, 300))
    timeline.start(note(notes, "fast", 100, 100, 100), 50)
    agenda.start(timeline.play(lambda: False))
    agenda.run_until(5000)
    assert notes == ["slow", "fast", "fast", "fast", "slow"]


def test_nothing_happens_once_it_is_over() -> None:
    agenda, notes = Agenda(0), list[str]()
    timeline = Timeline(agenda)
    timeline.start(note(notes, "tick", *[100] * 50))
    agenda.start(timeline.play(lambda: len(notes) >= 3))
    agenda.run_until(60_000)
    assert len(notes) == 3


def test_steps_of_one_tick_keep_the_order_in_which_they_were_started() -> None:
    agenda, notes = Agenda(0), list[str]()
    timeline = Timeline(agenda)
    for word in "abc":
        timeline.start(note(notes, word, 0))
    agenda.start(timeline.play(lambda: False))
    assert notes == ["a", "b", "c"]


def test_order_is_the_same_from_whatever_tick_on() -> None:
    def order_from(tick: int) -> list[str]:
        agenda, notes = Agenda(0), list[str]()
        agenda.run_until(tick * 1000 // 64 + 1)
        timeline = Timeline(agenda)
        for word, waits_ms in (("a", (203, 203, 101)), ("b", (90, 312, 104, 1)), ("c", (33, 33, 33, 303, 102))):
            timeline.start(note(notes, word, *waits_ms))
        agenda.start(timeline.play(lambda: False))
        agenda.run_until(60_000)
        return notes

    assert all(order_from(tick) == order_from(0) for tick in range(1, 9))
