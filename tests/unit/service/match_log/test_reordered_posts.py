"""Posts that arrive out of order within a second give the same match as in order."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest

from cs2_protocol.post_order import HOLD_MS
from matchpod.core.views.result import build_result
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import CATCH_UP_MS, OBSERVE_MS, Fold
from matchpod.storage.raw_log import RawEntry
from tests.effort import seeds
from tests.unit.service.match_log.test_fold import JOIN_MS, recorded, row_of
from tests.unit.simulator.played_match import START_MS

MAX_DELAY_MS = 1_000


def shuffle(random: Random, entries: Sequence[RawEntry], *, speed: float = 1.0) -> list[RawEntry]:
    """Delay each log post but the first by up to MAX_DELAY_MS, as a proxy does that forwards posts concurrently."""
    arrivals: list[tuple[int, RawEntry]] = []
    for number, entry in enumerate(entries):
        delay_ms = random.randrange(MAX_DELAY_MS) if entry.kind == EntryKind.LOG and number else 0
        arrivals.append((START_MS + round((entry.received_ms - START_MS) / speed) + delay_ms, entry))
    arrivals.sort(key=lambda arrival: arrival[0])
    return [
        msgspec.structs.replace(entry, seq=seq, received_ms=at_ms) for seq, (at_ms, entry) in enumerate(arrivals, 1)
    ]


def apply_all(
    entries: Sequence[RawEntry], *, speed: float = 1.0, is_stored_between: bool = False, is_finished: bool = True
) -> Fold:
    fold = Fold.begin(row_of(recorded().settings), speed)
    for entry in entries:
        fold.apply(entry)
        if is_stored_between:
            fold = Fold.load(fold.dump())
    if is_finished:
        fold.finish()
    return fold


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(3))
@pytest.mark.parametrize("speed", [1.0, 10.0, 30.0])
def test_posts_in_any_order_within_a_second_give_the_same_match(seed: int, speed: float) -> None:
    played = recorded()
    entries = shuffle(Random(seed), played.entries, speed=speed)
    assert [one.body for one in entries] != [one.body for one in played.entries]
    fold = apply_all(entries, speed=speed)
    assert build_result(fold.match) == build_result(played.reader.match)
    assert all(one.ledger.is_complete for one in fold.match.maps)


def test_match_may_be_stored_while_posts_are_held() -> None:
    entries = shuffle(Random(1), recorded().entries)[:120]
    assert any(apply_all(entries[:count], is_finished=False).reader.held.posts for count in range(1, 120, 10))
    assert apply_all(entries, is_stored_between=True) == apply_all(entries)


def log_entry(text: str, begin: int, at_ms: int) -> RawEntry:
    headers = msgspec.json.encode({"x-logbytes-beginoffset": str(begin)})
    body = f"01/19/2026 - 19:00:00.000 - {text}\n".encode()
    return RawEntry(server_id="srv_1", seq=1, kind=EntryKind.LOG, received_ms=at_ms, headers=headers, body=body)


def marker(kind: EntryKind, at_ms: int) -> RawEntry:
    return RawEntry(server_id="srv_1", seq=1, kind=kind, received_ms=at_ms, headers=b"{}", body=b"")


def holding(at_ms: int) -> Fold:
    """A match of which one post waits for another since `at_ms`."""
    fold = Fold.begin(row_of(recorded().settings), 1.0)
    for begun_ms in range(START_MS, at_ms, OBSERVE_MS):
        fold.apply(marker(EntryKind.OBSERVED, begun_ms))
    fold.apply(log_entry("Match unpaused", 1000, at_ms))
    assert fold.line_counts == (0, 0)
    return fold


def test_post_after_a_lost_one_is_read_at_a_deadline() -> None:
    fold = holding(START_MS)
    assert fold.due_ms() == START_MS + HOLD_MS
    fold.apply(marker(EntryKind.DEADLINE, START_MS + HOLD_MS - 1))
    assert fold.line_counts == (0, 0)
    fold.apply(marker(EntryKind.DEADLINE, START_MS + HOLD_MS))
    assert (fold.line_counts, fold.due_ms()) == ((1, 0), START_MS + JOIN_MS)


def test_wait_for_posts_is_longer_after_a_resume() -> None:
    fold = holding(START_MS)
    fold.apply(marker(EntryKind.RESUMED, START_MS + 100))
    assert fold.due_ms() == START_MS + 100 + CATCH_UP_MS


def test_timeout_waits_for_posts_that_were_received_before_it() -> None:
    fold = holding(START_MS + JOIN_MS - 100)
    fold.apply(marker(EntryKind.DEADLINE, START_MS + JOIN_MS + 1))
    assert not fold.is_over
    assert fold.due_ms() == START_MS + JOIN_MS - 100 + HOLD_MS
    fold.apply(marker(EntryKind.DEADLINE, START_MS + JOIN_MS - 100 + HOLD_MS))
    assert (fold.line_counts, fold.is_over) == ((1, 0), True)


def test_timeout_does_not_wait_for_posts_that_were_received_after_it() -> None:
    fold = holding(START_MS + JOIN_MS + 10)
    assert fold.due_ms() == START_MS + JOIN_MS
    fold.apply(marker(EntryKind.DEADLINE, START_MS + JOIN_MS + 20))
    assert fold.is_over


def test_held_posts_are_read_when_the_server_sends_nothing_more() -> None:
    fold = holding(START_MS)
    fold.finish()
    assert fold.line_counts == (1, 0)
