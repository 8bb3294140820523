"""Deadlines count observed time: resumes, outages and clocks that are set neither fire them nor hold them back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import Timers
from matchpod.core.views.result import build_result
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import CATCH_UP_MS, MAX_STEP_MS, MAX_WAIT_MS, Fold
from tests.unit.service.match_log.test_fold import JOIN_MS, entry, fold_all, new_fold, recorded
from tests.unit.simulator.played_match import START_MS

HOUR_MS = 3_600_000


def reason_of(effects: list[Effect]) -> CancelReason:
    (cancel,) = effects
    assert isinstance(cancel, CancelMatch)
    return cancel.reason


def quiet_posts(fold: Fold, *, until_ms: int, ahead_ms: int = 0) -> None:
    """Apply a post every ten seconds, as of a server without players, received by a clock that is ahead."""
    assert fold.last_ms is not None
    for at_ms in range(fold.last_ms + 10_000, until_ms + ahead_ms, 10_000):
        assert fold.apply(entry(EntryKind.LOG, at_ms, b"x\n")).effects == []


def test_deadline_fires_at_its_entry_and_at_no_other() -> None:
    fold = new_fold()
    due_ms = START_MS + JOIN_MS
    fold.apply(entry(EntryKind.CONFIGURING, START_MS))
    quiet_posts(fold, until_ms=due_ms)
    assert fold.apply(entry(EntryKind.DEADLINE, due_ms - 1)).effects == []
    for kind in (EntryKind.LOG, EntryKind.CONFIGURED, EntryKind.PRESENCE):
        assert fold.apply(entry(kind, due_ms + 1, b"{}")).effects == []
    assert reason_of(fold.apply(entry(EntryKind.DEADLINE, due_ms)).effects) == CancelReason.NO_PLAYERS_JOINED


def test_deadline_of_a_silent_server_is_not_late_if_its_match_is_driven() -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.CONFIGURED, START_MS))
    due_ms = START_MS + JOIN_MS
    while (at_ms := fold.observe_ms()) is not None and at_ms < due_ms:
        assert fold.apply(entry(EntryKind.OBSERVED, at_ms)).effects == []
    assert fold.due_ms() == due_ms
    assert reason_of(fold.apply(entry(EntryKind.DEADLINE, due_ms)).effects) == CancelReason.NO_PLAYERS_JOINED
    assert fold.observe_ms() is None, "no deadline is left"


def test_deadlines_wait_after_a_resume() -> None:
    fold = new_fold()
    back_ms = START_MS + JOIN_MS
    fold.apply(entry(EntryKind.CONFIGURING, START_MS))
    quiet_posts(fold, until_ms=back_ms)
    assert fold.apply(entry(EntryKind.RESUMED, back_ms)).effects == []
    assert fold.due_ms() == back_ms + CATCH_UP_MS
    assert fold.apply(entry(EntryKind.DEADLINE, back_ms + CATCH_UP_MS - 1)).effects == []
    assert fold.apply(entry(EntryKind.DEADLINE, back_ms + CATCH_UP_MS)).effects != []


def test_posts_repeated_after_a_resume_are_applied_before_the_deadline_fires() -> None:
    played = recorded()
    late_ms = JOIN_MS + 1
    fold = new_fold()
    fold.apply(entry(EntryKind.RESUMED, START_MS + late_ms))
    # The server repeats all posts that were not acknowledged.
    for one in played.entries:
        if one.received_ms > START_MS + JOIN_MS // 2:
            break
        fold.apply(msgspec.structs.replace(one, received_ms=START_MS + late_ms + 1_000))
    assert fold.match.phase is not MatchPhase.WARMUP
    assert fold.apply(entry(EntryKind.DEADLINE, START_MS + late_ms + CATCH_UP_MS)).effects == []


def test_repeated_resumes_cannot_hold_a_deadline_back_without_bound() -> None:
    fold = new_fold()
    bound_ms = START_MS + JOIN_MS + MAX_WAIT_MS
    for at_ms in range(START_MS, bound_ms, 5_000):
        assert fold.may_wait(at_ms)
        assert fold.apply(entry(EntryKind.RESUMED, at_ms)).effects == []
        assert fold.apply(entry(EntryKind.DEADLINE, at_ms + 4_999)).effects == []
    fold.apply(entry(EntryKind.RESUMED, bound_ms))
    assert not fold.may_wait(bound_ms)
    assert fold.due_ms() == bound_ms
    assert reason_of(fold.apply(entry(EntryKind.DEADLINE, bound_ms)).effects) == CancelReason.NO_PLAYERS_JOINED
    assert not fold.may_wait(START_MS), "no deadline is left"


# --- a clock that was set, or a long outage ---------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [(EntryKind.RESUMED, EntryKind.LOG), (EntryKind.LOG, EntryKind.RESUMED)])
@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS, 24 * HOUR_MS])
def test_clock_that_was_set_while_the_service_was_down_moves_no_deadline(jump_ms: int, kinds: Sequence[str]) -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.LOG, START_MS, b"x\n"))
    quiet_posts(fold, until_ms=START_MS + 100_000)
    before_ms = fold.last_ms
    assert before_ms is not None
    for kind in kinds:  # the first post may be stored before the match is resumed
        assert fold.apply(entry(kind, before_ms + jump_ms, b"x\n")).effects == []
    due_ms = fold.due_ms()
    assert due_ms is not None
    counted_ms = MAX_STEP_MS if jump_ms > 0 else 0
    assert due_ms == START_MS + JOIN_MS + jump_ms - counted_ms
    quiet_posts(fold, until_ms=START_MS + JOIN_MS, ahead_ms=jump_ms - counted_ms)
    assert fold.apply(entry(EntryKind.DEADLINE, due_ms - 1)).effects == []
    assert reason_of(fold.apply(entry(EntryKind.DEADLINE, due_ms)).effects) == CancelReason.NO_PLAYERS_JOINED


def test_clock_that_is_set_repeatedly_holds_no_deadline_back() -> None:
    fold = new_fold()
    at_ms = START_MS
    for number in range(20):
        at_ms += HOUR_MS if number % 2 else 15_000 - HOUR_MS
        fold.apply(entry(EntryKind.RESUMED, at_ms))
    due_ms = fold.due_ms()
    assert due_ms is not None
    assert due_ms <= at_ms + CATCH_UP_MS, "each time set forward counts as a minute, so the join time is over"


def test_outage_does_not_end_a_live_match_as_too_long() -> None:
    fold = new_fold()
    entries = recorded().entries
    half = len(entries) // 2
    fold_all(fold, entries[:half])
    assert fold.match.phase is MatchPhase.LIVE
    down_ms = 7 * HOUR_MS  # longer than a match may last
    rest = [msgspec.structs.replace(one, received_ms=one.received_ms + down_ms) for one in entries[half:]]
    fold.apply(entry(EntryKind.RESUMED, rest[0].received_ms))
    assert fold.apply(entry(EntryKind.DEADLINE, rest[0].received_ms + CATCH_UP_MS)).effects == []
    assert fold_all(fold, rest)[-1] == EndMatch()


def test_clock_that_was_set_changes_no_duration() -> None:
    entries = recorded().entries
    half = len(entries) // 2
    for jump_ms in (HOUR_MS, -HOUR_MS):
        fold = new_fold()
        fold_all(fold, entries[:half])
        rest = [msgspec.structs.replace(one, received_ms=one.received_ms + jump_ms) for one in entries[half:]]
        fold.apply(entry(EntryKind.RESUMED, rest[0].received_ms))
        fold_all(fold, rest)
        assert [one.duration_s for one in fold.match.maps] == [one.duration_s for one in recorded().reader.match.maps]
        assert build_result(fold.match) == build_result(recorded().reader.match)


def test_entries_stored_out_of_order_change_no_deadline() -> None:
    fold = new_fold()
    due_ms = fold.due_ms()
    for at_ms in (30_000, 1_000, 31_000, 5_000, 60_000):
        fold.apply(entry(EntryKind.LOG, START_MS + at_ms, b"x\n"))
    assert fold.due_ms() == due_ms


@pytest.mark.parametrize("start_ms", [JOIN_MS // 2 + 1, 10 * 60_000, HOUR_MS, -1, -HOUR_MS])
def test_players_get_the_full_time_to_join_if_the_start_took_long_or_the_clock_was_set(start_ms: int) -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.CONFIGURING, START_MS + start_ms))
    assert fold.due_ms() == START_MS + start_ms + JOIN_MS


def test_usual_start_of_a_server_counts_as_time_to_join() -> None:
    fold = new_fold()
    fold.apply(entry(EntryKind.CONFIGURING, START_MS + JOIN_MS // 2))
    assert fold.due_ms() == START_MS + JOIN_MS


def test_join_time_counts_from_the_allocation_if_the_clock_was_set_back_before_it() -> None:
    allocated_ms = START_MS - HOUR_MS
    assert new_fold(allocated_at_ms=allocated_ms).due_ms() == allocated_ms + JOIN_MS


def test_start_is_requested_again_once_the_log_has_caught_up_after_a_resume() -> None:
    fold = new_fold()
    asked_ms = next(one.received_ms for one in recorded().entries if StartPlay(1) in fold.apply(one).effects)
    assert fold.match.phase is MatchPhase.STARTING
    fold.apply(entry(EntryKind.RESUMED, asked_ms + 1_000))
    fold.apply(entry(EntryKind.RESUMED, asked_ms + 6_000))
    due_ms = asked_ms + 6_000 + CATCH_UP_MS
    assert fold.due_ms() == due_ms
    assert fold.apply(entry(EntryKind.DEADLINE, due_ms)).effects == [StartPlay(1)]
    assert fold.due_ms() == due_ms + round(Timers().ask_again_s * 1000)
