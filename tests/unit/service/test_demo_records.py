"""Which servers are kept for demos once their match has ended."""

from __future__ import annotations

import pytest

from matchpod.core.effects import CancelReason
from matchpod.service.runner.demo_records import is_kept
from tests.server_rows import server_row


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (None, True),
        (CancelReason.NO_PLAYERS_JOINED, True),
        (CancelReason.CANCELED_BY_USER, False),
        (CancelReason.CANCELED_BY_OPERATOR, False),
        (CancelReason.SERVER_LOST, False),
    ],
)
def test_server_is_kept_unless_it_failed_or_its_match_was_canceled_by_hand(
    *, reason: CancelReason | None, kept: bool
) -> None:
    row = server_row(reason=reason, running_at_ms=1, settings=b'{"record_demo":true}')
    assert is_kept(row) is kept
