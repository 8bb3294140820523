"""How long the release of a server waits for its demos."""

from __future__ import annotations

import pytest

from matchpod.core.demos import (
    PATIENCE_MS,
    RENEW_MS,
    STALE_MS,
    UPLOAD_LIMIT_MS,
    DemoProgress,
    DemoState,
    is_stale,
    waits_until_ms,
)

RECORDING, UPLOADING = DemoState.RECORDING, DemoState.UPLOADING


@pytest.mark.parametrize("state", [DemoState.AVAILABLE, DemoState.MISSING])
def test_ended_demo_is_not_waited_for(state: DemoState) -> None:
    assert waits_until_ms([DemoProgress(state=state, due_ms=90, renewed_at_ms=90)], 10) is None


def test_recording_is_waited_for_until_its_upload_must_have_begun() -> None:
    assert waits_until_ms([DemoProgress(state=RECORDING, due_ms=90)], 10) == 90
    assert waits_until_ms([DemoProgress(state=RECORDING, due_ms=90)], 90) is None
    assert waits_until_ms([DemoProgress(state=RECORDING)], 10) is None
    assert waits_until_ms([DemoProgress(state=RECORDING, due_ms=due) for due in (50, 90, 5)], 10) == 90, "the latest"
    assert waits_until_ms([], 10) is None


def test_upload_is_waited_for_while_its_process_reports_it() -> None:
    demo = DemoProgress(state=UPLOADING, begun_at_ms=1_000, renewed_at_ms=5_000)
    assert waits_until_ms([demo], 6_000) == 5_000 + STALE_MS
    assert not is_stale(demo, 6_000)
    assert waits_until_ms([demo], 5_000 + STALE_MS) is None
    assert is_stale(demo, 5_000 + STALE_MS)


def test_upload_that_never_ends_is_waited_for_within_a_limit() -> None:
    end_ms = 1_000 + UPLOAD_LIMIT_MS + STALE_MS
    demo = DemoProgress(state=UPLOADING, begun_at_ms=1_000, renewed_at_ms=end_ms)
    assert waits_until_ms([demo], end_ms - 1) == end_ms
    assert waits_until_ms([demo], end_ms) is None


def test_upload_that_waits_for_the_database_is_not_stale_when_that_is_back() -> None:
    longest_outage_ms = PATIENCE_MS + RENEW_MS
    assert not is_stale(DemoProgress(state=UPLOADING, begun_at_ms=1, renewed_at_ms=1), 1 + longest_outage_ms)
