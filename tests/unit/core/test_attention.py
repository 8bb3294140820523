"""Which matches need attention, and why."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core.attention import Situation, attention_of
from matchpod.core.progress import PublicPhase

NOW_MS = 1_000_000
QUIET = Situation(now_ms=NOW_MS, phase=PublicPhase.LIVE, heard_ms=NOW_MS - 1_000)


def texts(**changes: object) -> list[str]:
    return [reason.text for reason in attention_of(msgspec.structs.replace(QUIET, **changes))]


@pytest.mark.parametrize("phase", PublicPhase)
def test_match_without_problems_needs_none(phase: PublicPhase) -> None:
    assert texts(phase=phase) == []


@pytest.mark.parametrize(
    ("left_ms", "missing", "expected"),
    [
        (121_000, 2, []),
        (120_999, 2, ["2 players missing, 2:00 left"]),
        (41_500, 1, ["1 player missing, 41 s left"]),
        (-5_000, 1, ["1 player missing, 0 s left"]),
        (41_500, 0, []),
    ],
)
def test_incomplete_roster_needs_it_when_the_time_to_join_ends(left_ms: int, missing: int, expected: list[str]) -> None:
    changes = {"phase": PublicPhase.WAITING_FOR_PLAYERS, "missing": missing, "joined_until_ms": NOW_MS + left_ms}
    assert texts(**changes) == expected


@pytest.mark.parametrize(
    ("phase", "silent_ms", "expected"),
    [
        (PublicPhase.LIVE, 14_999, []),
        (PublicPhase.LIVE, 15_000, ["nothing heard for 15 s"]),
        (PublicPhase.WAITING_FOR_PLAYERS, 75_000, ["nothing heard for 1:15"]),
        (PublicPhase.ALLOCATING, 75_000, []),
        (PublicPhase.ENDED, 75_000, []),
    ],
)
def test_silent_server_needs_it(phase: PublicPhase, silent_ms: int, expected: list[str]) -> None:
    assert texts(phase=phase, heard_ms=NOW_MS - silent_ms) == expected


def test_missing_player_needs_it_during_a_live_map_only() -> None:
    assert texts(missing=1) == ["1 player gone during a live map"]
    assert texts(missing=1, phase=PublicPhase.BETWEEN_MAPS) == []


def test_long_pause_needs_it() -> None:
    assert texts(phase=PublicPhase.PAUSED, paused_since_ms=NOW_MS - 299_999) == []
    assert texts(phase=PublicPhase.PAUSED, paused_since_ms=NOW_MS - 300_000) == ["paused for 5:00"]
    assert texts(phase=PublicPhase.LIVE, paused_since_ms=NOW_MS - 300_000) == []


def test_match_without_a_server_needs_it_after_a_minute_or_a_second_try() -> None:
    waiting = {"phase": PublicPhase.ALLOCATING, "heard_ms": None}
    assert texts(**waiting, pending_since_ms=NOW_MS - 59_999) == []
    assert texts(**waiting, pending_since_ms=NOW_MS - 61_000) == ["waiting for a free server for 1:01"]
    assert texts(**waiting, tries=1) == ["try 2 of starting a server"]
    assert texts(tries=1) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"calls": 1}, "a player asked for an admin"),
        ({"calls": 3}, "a player asked for an admin, 3 times"),
        ({"is_callback_given_up": True, "phase": PublicPhase.ENDED}, "callback given up"),
        ({"lost_rounds": 1}, "log of 1 round is incomplete"),
        ({"lost_rounds": 2}, "log of 2 rounds is incomplete"),
        ({"leads": 1}, "1 anti-cheat lead"),
        ({"leads": 2}, "2 anti-cheat leads"),
    ],
)
def test_other_reasons(changes: dict[str, object], expected: str) -> None:
    assert texts(**changes) == [expected]


def test_most_urgent_reason_comes_first() -> None:
    found = attention_of(msgspec.structs.replace(QUIET, leads=1, calls=1, is_callback_given_up=True))
    assert [reason.kind for reason in found] == ["call", "callback", "leads"]
