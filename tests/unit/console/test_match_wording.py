"""Words for the state and the end of a match."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.console import match_wording
from matchpod.console.match_wording import standing, tone
from matchpod.core.effects import CancelReason
from matchpod.core.progress import PublicPhase
from matchpod.core.server_status import ServerStatus
from matchpod.service.history.match_lists import MatchItem

MATCH = MatchItem(
    server_id="srv_1",
    external_match_id=None,
    region="sandbox",
    status=ServerStatus.RUNNING,
    phase=PublicPhase.LIVE,
    game_mode="competitive",
    team1="a",
    team2="b",
    maps=(),
    created_at="2026-01-01T00:00:00.000Z",
    ended_at=None,
    reason=None,
    error=None,
    missing_count=0,
    played_s=None,
)


def test_every_value_has_words() -> None:
    assert set(match_wording.STATUSES) == set(ServerStatus)
    assert set(match_wording.PHASES) == set(PublicPhase)
    assert set(match_wording.REASONS) == set(CancelReason)


@pytest.mark.parametrize(
    ("fields", "words", "drawn"),
    [
        ({}, "live", "good"),
        ({"phase": PublicPhase.ALLOCATING, "status": ServerStatus.PENDING}, "waiting for a free server", ""),
        ({"phase": PublicPhase.ENDED, "status": ServerStatus.STOPPED}, "finished", ""),
        (
            {"phase": PublicPhase.ENDED, "status": ServerStatus.FAILED, "reason": CancelReason.NO_CAPACITY},
            "failed: no free server",
            "bad",
        ),
        (
            {"status": ServerStatus.STOPPED, "reason": CancelReason.INCOMPLETE_ROSTER, "missing_count": 1},
            "canceled: 1 player was missing",
            "",
        ),
        (
            {"status": ServerStatus.STOPPED, "reason": CancelReason.INCOMPLETE_ROSTER, "missing_count": 2},
            "canceled: 2 players were missing",
            "",
        ),
    ],
)
def test_standing_says_where_a_match_is(fields: dict[str, object], words: str, drawn: str) -> None:
    match = msgspec.structs.replace(MATCH, **fields)
    assert (standing(match), tone(match)) == (words, drawn)
