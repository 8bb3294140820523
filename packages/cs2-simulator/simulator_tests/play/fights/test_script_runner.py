"""Test concurrent scripts."""

from __future__ import annotations

from cs2_simulator.agenda import Agenda, Script
from cs2_simulator.play.fights.script_runner import ScriptRunner


def record(steps: list[str], name: str, *waits_ms: int) -> Script[None]:
    for wait_ms in waits_ms:
        steps.append(name)
        yield wait_ms


def test_scripts_run_in_order_of_time() -> None:
    agenda, steps = Agenda(0), list[str]()
    runner = ScriptRunner(agenda)
    runner.start(record(steps, "slow", 300, 300))
    runner.start(record(steps, "fast", 100, 100, 100), 50)
    agenda.start(runner.play(lambda: False))
    agenda.run_until(5000)
    assert steps == ["slow", "fast", "fast", "fast", "slow"]


def test_scripts_stop_once_the_end_condition_is_met() -> None:
    agenda, steps = Agenda(0), list[str]()
    runner = ScriptRunner(agenda)
    runner.start(record(steps, "tick", *[100] * 50))
    agenda.start(runner.play(lambda: len(steps) >= 3))
    agenda.run_until(60_000)
    assert len(steps) == 3


def test_scripts_due_in_the_same_tick_run_in_start_order() -> None:
    agenda, steps = Agenda(0), list[str]()
    runner = ScriptRunner(agenda)
    for name in "abc":
        runner.start(record(steps, name, 0))
    agenda.start(runner.play(lambda: False))
    assert steps == ["a", "b", "c"]


def test_order_of_scripts_does_not_depend_on_the_start_tick() -> None:
    def order_from(tick: int) -> list[str]:
        agenda, steps = Agenda(0), list[str]()
        agenda.run_until(tick * 1000 // 64 + 1)
        runner = ScriptRunner(agenda)
        for name, waits_ms in (("a", (203, 203, 101)), ("b", (90, 312, 104, 1)), ("c", (33, 33, 33, 303, 102))):
            runner.start(record(steps, name, *waits_ms))
        agenda.start(runner.play(lambda: False))
        agenda.run_until(60_000)
        return steps

    assert all(order_from(tick) == order_from(0) for tick in range(1, 9))
