"""Hundreds of events reach receivers that fail, hang or are slow, and delay nothing else.

`tests/bench/webhooks.py` does the same with thousands.
"""

from __future__ import annotations

from statistics import median

from matchpod.ports import Database
from tests.bench.webhooks import flood
from tests.contract import databases

harness = databases.sqlite_harness

EVENTS = 100
LATE_S = 5.0
"""Far longer than a callback takes on a busy machine, and shorter than it would wait for receivers that hang."""


async def test_all_events_arrive_in_an_order_that_can_be_restored_and_delay_no_callback(db: Database) -> None:
    report = await flood(db, EVENTS)
    assert set(report.missing.values()) == {0}
    assert report.unordered == 0
    assert median(report.flooded.callbacks) < LATE_S
    assert median(report.flooded.of_other) < LATE_S
