"""Advance an agenda step by step."""

from __future__ import annotations

from cs2_simulator.agenda import Agenda


def run_next(agenda: Agenda) -> bool:
    """Run the next tick that has a task; return False if no task is scheduled."""
    due_ms = agenda.next_due_ms()
    if due_ms is None:
        return False
    agenda.run_until(due_ms + 1)  # `next_due_ms` is rounded down
    return True
