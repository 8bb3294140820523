"""Which matches need attention, and why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core.views.attention import Attention, Signals, Situation, Urgency, attention_of
from matchpod.core.views.progress import PublicPhase
from tests.unit.core.match_driver import ANN

NOW_MS = 1_000_000
QUIET = Situation(now_ms=NOW_MS, phase=PublicPhase.LIVE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paused for", "paused"),
        ("2 players missing, time left", "2 players missing"),
        ("a player asked for an admin,", "a player asked for an admin"),
        ("log gap: 1 round incomplete", "log gap: 1 round incomplete"),
    ],
)
def test_a_text_without_its_counter_is_whole(text: str, words: str) -> None:
    assert Attention(urgency=Urgency.NOW, kind="x", text=text).words == words


def texts(**changes: Any) -> list[str]:
    return [reason.text for reason in attention_of(msgspec.structs.replace(QUIET, **changes))]


def chat(text: str) -> ev.ChatMessage:
    return ev.ChatMessage(NOW_MS, ANN, "Ann", is_team_only=False, text=text)


def test_match_without_problems_needs_none() -> None:
    for phase in PublicPhase:
        assert texts(phase=phase) == []


@pytest.mark.parametrize(
    ("left_ms", "missing", "expected"),
    [
        (120_001, 2, []),
        (120_000, 2, ["2 players missing, time left"]),
        (41_500, 1, ["1 player missing, time left"]),
        (-5_000, 1, ["1 player missing, time left"]),
        (41_500, 0, []),
    ],
)
def test_incomplete_roster_needs_it_when_the_time_to_join_ends(left_ms: int, missing: int, expected: list[str]) -> None:
    until_ms = NOW_MS + left_ms
    for phase in (PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.BETWEEN_MAPS):
        assert texts(phase=phase, missing=missing, join_until_ms=until_ms) == expected


def test_player_who_is_still_loading_needs_it_when_the_time_to_join_ends() -> None:
    for left_ms, expected in [(120_001, []), (120_000, ["a player is still loading, time left"])]:
        changes = {"phase": PublicPhase.WAITING_FOR_PLAYERS, "is_loading": True, "join_until_ms": NOW_MS + left_ms}
        assert texts(**changes) == expected


def test_silent_server_needs_it() -> None:
    for phase, expected in [
        (PublicPhase.LIVE, ["nothing heard for"]),
        (PublicPhase.WAITING_FOR_PLAYERS, ["nothing heard for"]),
        (PublicPhase.ALLOCATING, []),
        (PublicPhase.ENDED, []),
    ]:
        assert texts(phase=phase, silent_ms=NOW_MS - 20_000) == expected


def test_time_that_runs_is_apart_from_the_text() -> None:
    (reason,) = attention_of(msgspec.structs.replace(QUIET, silent_ms=NOW_MS - 20_000))
    assert (reason.since_ms, reason.until_ms) == (NOW_MS - 20_000, None)


@pytest.mark.parametrize(
    ("away_ms", "expected"),
    [
        ([19_999], []),
        ([20_000], ["1 player gone for"]),
        ([1, 60_000], ["1 player gone for"]),
        ([25_000, 60_000], ["2 players gone for"]),
    ],
)
def test_player_who_left_a_live_map_has_twenty_seconds_to_return(away_ms: list[int], expected: list[str]) -> None:
    left_ms = tuple(NOW_MS - one for one in away_ms)
    assert texts(missing=len(left_ms), left_ms=left_ms) == expected
    assert texts(missing=len(left_ms), left_ms=left_ms, phase=PublicPhase.BETWEEN_MAPS) == []


def test_first_player_who_left_is_the_one_whose_time_runs() -> None:
    away = msgspec.structs.replace(QUIET, missing=2, left_ms=(NOW_MS - 25_000, NOW_MS - 60_000))
    assert [reason.since_ms for reason in attention_of(away)] == [NOW_MS - 60_000]


def test_player_who_never_joined_a_live_map_needs_it_at_once() -> None:
    assert texts(missing=1) == ["1 player missing on a live map"]
    assert texts(missing=2, left_ms=(NOW_MS,)) == ["1 player missing on a live map"]


def test_long_pause_needs_it() -> None:
    assert texts(phase=PublicPhase.PAUSED, paused_ms=NOW_MS - 299_999) == []
    assert texts(phase=PublicPhase.PAUSED, paused_ms=NOW_MS - 300_000) == ["paused for"]
    assert texts(phase=PublicPhase.LIVE, paused_ms=NOW_MS - 300_000) == []


def test_match_without_a_server_needs_it_after_a_minute_or_a_second_try() -> None:
    waiting = {"phase": PublicPhase.ALLOCATING}
    assert texts(**waiting, pending_ms=NOW_MS - 59_999) == []
    assert texts(**waiting, pending_ms=NOW_MS - 60_000) == ["waiting for a free server for"]
    assert texts(**waiting, tries=1) == ["try 2 of starting a server"]
    assert texts(tries=1) == []


def test_call_for_an_admin_needs_it_for_ten_minutes() -> None:
    assert texts(called_ms=NOW_MS - 599_999) == ["a player asked for an admin,"]
    assert texts(called_ms=NOW_MS - 600_000) == []
    assert texts(called_ms=NOW_MS, phase=PublicPhase.ENDED) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"is_callback_given_up": True, "phase": PublicPhase.ENDED}, "callback given up"),
        ({"lost_rounds": 1}, "log gap: 1 round incomplete"),
        ({"lost_rounds": 2}, "log gap: 2 rounds incomplete"),
        ({"detections": 1}, "1 anti-cheat lead"),
        ({"detections": 2}, "2 anti-cheat leads"),
    ],
)
def test_other_reasons(changes: dict[str, object], expected: str) -> None:
    assert texts(**changes) == [expected]


def test_most_urgent_reason_comes_first() -> None:
    found = attention_of(msgspec.structs.replace(QUIET, detections=1, called_ms=NOW_MS, is_callback_given_up=True))
    assert [reason.kind for reason in found] == ["call", "callback", "leads"]


def test_timeout_is_no_pause_to_attend_to() -> None:
    signals = Signals()
    signals.update([ev.Paused(NOW_MS, by="TimeOutTs")], 5)
    assert signals.paused_ms is None
    signals.update([ev.Paused(NOW_MS, by="Ann"), ev.Unpaused(NOW_MS, by="TimeOutTs")], 9)
    assert signals.paused_ms == 9


def test_pause_ends_with_its_map() -> None:
    signals = Signals()
    signals.update([ev.Paused(NOW_MS, by="Ann")], 5)
    signals.update([ev.MapEnded(NOW_MS, "de_nuke", 13, 5)], 6)
    signals.update([ev.Paused(NOW_MS, by="Ann")], 9)
    assert signals.paused_ms == 9


@pytest.mark.parametrize(
    ("text", "is_call"),
    [("!admin", True), ("please !ADMIN now", True), ("!administrator", False), ("admin", False), ("x!admin", False)],
)
def test_word_in_the_chat_calls_an_admin(text: str, is_call: bool) -> None:
    signals = Signals()
    signals.update([chat(text)], 7)
    assert signals.called_ms == (7 if is_call else None)
    assert bool(signals.call) is is_call


def test_words_of_a_call_are_shown_with_who_wrote_them_until_the_next_one() -> None:
    signals = Signals()
    signals.update([chat("!admin please\u2028come"), chat("thanks")], 7)
    assert signals.call.endswith(": !admin please\N{REPLACEMENT CHARACTER}come")
    (reason,) = attention_of(msgspec.structs.replace(QUIET, called_ms=NOW_MS, call=signals.call))
    assert reason.quote == signals.call
    assert reason.words == f"a player asked for an admin: {signals.call}"
    signals.update([chat("x" * 300 + " !admin")], 8)
    assert len(signals.call) <= 256
