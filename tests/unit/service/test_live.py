"""Entries reach whoever follows a match in the order of their numbers, or not at all; the database has them all."""

from __future__ import annotations

import json

from matchpod.core.model import MatchType
from matchpod.service.folding import LOG, Fold
from matchpod.service.live import MAX_INBOX, LiveMatch, LiveMatches
from matchpod.storage.raw_log import RawEntry
from tests.unit.service.test_folding import PLAYERS, recorded, row_of
from tests.unit.simulator.played_match import START_MS


def entry(seq: int, server_id: str = "srv_1") -> RawEntry:
    return RawEntry(server_id=server_id, seq=seq, kind=LOG, received_ms=START_MS, headers=b"{}", body=b"")


def followed(seq: int = 0) -> LiveMatch:
    return LiveMatch("srv_1", Fold.begin(row_of(recorded().settings), 1.0), seq)


def drained(live: LiveMatch) -> list[int]:
    """The numbers that a runner takes now."""
    taken = []
    while (at_hand := live.take()) is not None:
        live.read(at_hand.seq)
        taken.append(at_hand.seq)
    return taken


def test_entries_are_taken_in_order() -> None:
    live = followed()
    assert live.take() is None
    for seq in (1, 2, 3):
        live.offer(entry(seq))
    assert live.is_behind
    assert drained(live) == [1, 2, 3]
    assert not live.is_behind


def test_an_entry_after_a_hole_is_not_taken() -> None:
    live = followed()
    live.offer(entry(1))
    live.offer(entry(3))
    assert drained(live) == [1]
    assert live.is_behind
    live.read(2)  # from the database
    assert drained(live) == [3]
    assert not live.is_behind


def test_entries_that_were_read_from_the_database_are_dropped() -> None:
    live = followed()
    for seq in (1, 2, 3, 4):
        live.offer(entry(seq))
    live.read(3)
    assert drained(live) == [4]


def test_entries_of_before_this_process_are_dropped() -> None:
    live = followed(seq=7)
    live.offer(entry(7))
    assert not live.is_behind
    live.offer(entry(8))
    assert drained(live) == [8]


def test_entries_that_come_out_of_order_do_not_block_for_ever() -> None:
    live = followed()
    live.offer(entry(2))
    live.offer(entry(1))
    assert drained(live) == []
    assert live.is_behind
    live.read(1)
    live.read(2)
    assert drained(live) == []
    live.offer(entry(3))
    assert drained(live) == [3]


def test_what_does_not_fit_is_known_to_be_missing() -> None:
    live = followed()
    for seq in range(1, MAX_INBOX + 3):
        live.offer(entry(seq))
    assert drained(live) == list(range(1, MAX_INBOX + 1))
    assert live.is_behind
    live.read(MAX_INBOX + 2)
    assert not live.is_behind


def test_an_entry_wakes_whoever_follows_its_match_and_nobody_else() -> None:
    matches, live = LiveMatches(), followed()
    matches.add(live)
    matches.offer(entry(1, "srv_2"))
    assert not live.woken.is_set()
    assert live.take() is None
    matches.offer(entry(1))
    assert live.woken.is_set()
    assert live.take() == entry(1)


def test_a_match_taken_over_within_the_process_is_not_removed_by_who_followed_it_before() -> None:
    matches, before, after = LiveMatches(), followed(), followed()
    matches.add(before)
    matches.add(after)
    matches.remove(before)
    assert matches.get("srv_1") is after
    matches.remove(after)
    matches.remove(after)
    assert matches.get("srv_1") is None


def test_the_view_is_made_anew_when_something_was_read_or_time_passed() -> None:
    live = followed()
    first = live.view()
    assert live.view() is first
    assert json.loads(first)["matchType"] == MatchType.WINGMAN
    assert json.loads(first)["score"] == {"team1": 0, "team2": 0}
    live.changed()
    assert live.view() == first
    assert live.view() is not first
    for one in recorded().entries:
        live.fold.take(one)
        live.read(one.seq)
    last = json.loads(live.view())
    assert sum(last["score"].values()) > 0
    assert {player["steamId"] for player in last["players"]} == set(PLAYERS)
