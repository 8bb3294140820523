"""A runner dequeues entries in the order of their numbers; missing ones are in the database."""

from __future__ import annotations

import json

from matchpod.core.model import MatchType
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from matchpod.service.match_log.live import MAX_INBOX, LocalMatch, LocalMatches, LogRewoundError
from matchpod.storage.raw_log import RawEntry
from tests.unit.service.match_log.test_fold import PLAYERS, recorded, row_of
from tests.unit.simulator.played_match import START_MS


def entry(seq: int, server_id: str = "srv_1", received_ms: int = START_MS) -> RawEntry:
    return RawEntry(server_id=server_id, seq=seq, kind=EntryKind.LOG, received_ms=received_ms, headers=b"{}", body=b"")


def local_match(seq: int = 0) -> LocalMatch:
    return LocalMatch("srv_1", Fold.begin(row_of(recorded().settings), 1.0), seq)


def drain(live: LocalMatch) -> list[int]:
    """Dequeue all available entries and mark them as applied; return their numbers."""
    numbers = []
    while (one := live.dequeue()) is not None:
        live.applied(one)
        numbers.append(one.seq)
    return numbers


def test_entry_after_a_gap_is_not_dequeued() -> None:
    live = local_match()
    live.enqueue(entry(1))
    live.enqueue(entry(3))
    assert drain(live) == [1]
    assert live.is_behind
    live.applied(entry(2))  # read from the database
    assert drain(live) == [3]
    assert not live.is_behind


def test_entries_that_were_read_from_the_database_are_dropped() -> None:
    live = local_match()
    for seq in (1, 2, 3, 4):
        live.enqueue(entry(seq))
    live.applied(entry(3))
    assert drain(live) == [4]


def test_entries_that_are_already_applied_are_dropped() -> None:
    live = local_match(seq=7)
    live.enqueue(entry(7))
    assert not live.is_behind
    live.enqueue(entry(8))
    assert drain(live) == [8]


def test_entries_out_of_order_do_not_block_forever() -> None:
    live = local_match()
    live.enqueue(entry(2))
    live.enqueue(entry(1))
    assert drain(live) == []
    assert live.is_behind
    live.applied(entry(1))
    live.applied(entry(2))
    assert drain(live) == []
    live.enqueue(entry(3))
    assert drain(live) == [3]


def test_match_is_behind_if_entries_do_not_fit_into_the_inbox() -> None:
    live = local_match()
    for seq in range(1, MAX_INBOX + 3):
        live.enqueue(entry(seq))
    assert drain(live) == list(range(1, MAX_INBOX + 1))
    assert live.is_behind
    live.applied(entry(MAX_INBOX + 2))
    assert not live.is_behind


# --- a log that is shorter than what was applied: a failover to a standby that lacked the last entries ---------------


def applied_to(seq: int) -> LocalMatch:
    live = local_match()
    for number in range(1, seq + 1):
        live.applied(entry(number))
    live.newest_seq = seq
    return live


def test_entry_that_was_read_from_the_database_first_is_no_rewound_log() -> None:
    live = applied_to(5)
    live.enqueue(entry(5))
    assert live.dequeue() is None
    assert live.error is None


def test_another_entry_under_an_applied_number_means_that_the_log_was_rewound() -> None:
    live = applied_to(5)
    live.enqueue(entry(5, received_ms=START_MS + 1))
    assert live.dequeue() is None
    assert isinstance(live.error, LogRewoundError)
    assert live.woken.is_set()


def test_database_with_fewer_entries_than_were_applied_before_it_was_asked_was_rewound() -> None:
    live = applied_to(5)
    live.compare(4, 0, applied_seq=4)
    assert live.error is None, "one was applied while the database was asked"
    live.compare(4, 0, applied_seq=5)
    assert isinstance(live.error, LogRewoundError)


def test_number_that_another_process_announces_again_is_read_again() -> None:
    live = applied_to(5)
    assert live.begin_reading() == 5, "with the last applied entry"
    live.announce(5)
    assert live.is_behind
    assert live.woken.is_set()
    live.begin_reading()
    assert not live.is_behind
    assert local_match(5).begin_reading() == 6, "a snapshot does not say when its last entry was received"


def test_entry_wakes_only_the_runner_of_its_match() -> None:
    matches, live = LocalMatches(), local_match()
    matches.add(live)
    matches.publish(entry(1, "srv_2"))
    assert not live.woken.is_set()
    assert live.dequeue() is None
    matches.publish(entry(1))
    assert live.woken.is_set()
    assert live.dequeue() == entry(1)


def test_match_is_not_removed_by_its_previous_runner() -> None:
    matches, before, after = LocalMatches(), local_match(), local_match()
    matches.add(before)
    matches.add(after)
    matches.remove(before)
    assert matches.get("srv_1") is after
    matches.remove(after)
    matches.remove(after)
    assert matches.get("srv_1") is None


def test_state_is_built_once_per_entry() -> None:
    live = local_match()
    first = live.state()
    assert live.state() is first
    assert json.loads(first.match)["matchType"] == MatchType.WINGMAN
    assert json.loads(first.match)["score"] == {"team1": 0, "team2": 0}
    live.applied(entry(live.seq))
    assert live.state() == first
    assert live.state() is not first
    for one in recorded().entries:
        live.fold.apply(one)
        live.applied(one)
    last = json.loads(live.state().match)
    assert sum(last["score"].values()) > 0
    assert {player["steamId"] for player in last["players"]} == set(PLAYERS)
