"""Properties of the ledger for random lists of events."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.stats.ledger import Ledger
from tests.effort import examples
from tests.unit.core.stats.event_builder import ANNA, BEN, TEAM1, TEAM2, XENA, YURI, EventBuilder, fold, game_count

PLAYERS = st.sampled_from([ANNA, BEN, XENA, YURI, "BOT:Ivan"])
WEAPONS = st.sampled_from(["ak47", "awp", "glock", "knife_t", "hegrenade", "inferno"])
NUMBERS = st.integers(0, 5)
# Few distinct times, so that events often coincide.
TIMES = st.integers(0, 20).map(lambda seconds: seconds * 700)


def event_of(kind: Any, *fields: Any) -> st.SearchStrategy[ev.Event]:
    return st.builds(kind, TIMES, *fields)


COMBAT: st.SearchStrategy[ev.Event] = st.one_of(
    event_of(
        ev.Damage, PLAYERS, PLAYERS, WEAPONS, st.just("head"), st.integers(0, 150), st.integers(0, 100), st.booleans()
    ),
    event_of(ev.Kill, PLAYERS, PLAYERS, WEAPONS, st.booleans(), st.booleans()),
    event_of(ev.Death, PLAYERS, st.sampled_from(["world", "bomb"])),
    event_of(ev.PlayerGone, PLAYERS),
    event_of(ev.Assist, PLAYERS, PLAYERS, st.booleans(), st.booleans()),
    event_of(ev.Blinded, PLAYERS, PLAYERS, st.floats(0, 6), st.booleans()),
    event_of(ev.GrenadeThrown, PLAYERS, st.sampled_from(list(ev.GrenadeKind))),
    event_of(ev.ShotsCounted, st.just(1), NUMBERS, st.dictionaries(PLAYERS, st.just((90, 30)), max_size=3)),
)
FLOW: st.SearchStrategy[ev.Event] = st.one_of(
    event_of(ev.MapLive, st.just("de_inferno"), st.just(0), st.just(Side.CT), st.none(), st.none(), NUMBERS),
    event_of(ev.RoundStarted, NUMBERS, st.just(TEAM1), st.just(TEAM2), st.just(Side.CT)),
    event_of(
        ev.RoundDecided,
        NUMBERS,
        st.sampled_from([Team.TEAM1, Team.TEAM2, None]),
        st.none(),
        st.just(RoundEndReason.UNKNOWN),
        st.just(0),
        st.just(0),
    ),
    event_of(ev.RoundRestored, NUMBERS, st.just(0), st.just(0)),
    event_of(ev.MapEnded, st.just("de_inferno"), st.just(0), st.just(0), st.booleans()),
    event_of(ev.LogGap, st.just(1)),
    event_of(ev.GameCounted, NUMBERS, st.just((game_count(ANNA, kills=2, mvps=1), game_count(XENA)))),
    event_of(ev.MvpNamed, NUMBERS, PLAYERS, st.integers(0, 5)),
)
EVENT_LISTS = st.lists(COMBAT | FLOW, max_size=40).map(lambda events: [*EventBuilder().live().start(1).events, *events])
FIGHTS = st.lists(COMBAT, max_size=25)


@examples(40)
@given(events=EVENT_LISTS, cut=st.integers(0, 42), is_free_for_all=st.booleans())
def test_ledger_round_trips_at_any_point(events: list[ev.Event], cut: int, is_free_for_all: bool) -> None:
    whole = fold(events, is_free_for_all=is_free_for_all)
    first = fold(events[:cut], is_free_for_all=is_free_for_all)
    resumed = msgspec.msgpack.decode(msgspec.msgpack.encode(first), type=Ledger)
    assert resumed == first
    for event in events[cut:]:
        resumed.apply(event)
    assert resumed == whole
    assert resumed.lines() == whole.lines()


@examples(30)
@given(events=EVENT_LISTS)
def test_reading_does_not_modify_the_ledger(events: list[ev.Event]) -> None:
    ledger = fold(events)
    before = msgspec.msgpack.encode(ledger)
    ledger.lines()
    ledger.live_counts()
    assert msgspec.msgpack.encode(ledger) == before


@examples(30)
@given(events=EVENT_LISTS)
def test_live_counts_agree_with_the_player_lines(events: list[ev.Event]) -> None:
    ledger = fold(events)
    counts = {player_id: (row.kills, row.deaths, row.assists) for player_id, row in ledger.live_counts().items()}
    assert counts == {line.player_id: (line.kills, line.deaths, line.all_assists) for line in ledger.lines()}


@examples(30)
@given(events=EVENT_LISTS)
def test_counters_are_not_negative_and_parts_do_not_exceed_totals(events: list[ev.Event]) -> None:
    for line in fold(events).lines():
        assert min(count for count in msgspec.structs.astuple(line) if isinstance(count, int)) >= 0
        assert line.headshots <= line.kills
        assert line.utility_damage <= line.damage
        assert line.kast_rounds <= line.rounds_played
        assert line.trade_kills <= line.kills
        assert sum(line.weapon_kills.values()) == line.kills


@examples(30)
@given(kept=FIGHTS, dropped=FIGHTS, replayed=FIGHTS)
def test_round_dropped_by_a_restore_leaves_no_trace(
    kept: list[ev.Event], dropped: list[ev.Event], replayed: list[ev.Event]
) -> None:
    def without_shots(events: list[ev.Event]) -> list[ev.Event]:
        # A late report of shots in round 1 counts, and dropping round 2 does not undo it.
        return [event for event in events if not isinstance(event, ev.ShotsCounted)]

    until_2 = [
        *EventBuilder().live().start(1).events,
        *without_shots(kept),
        *EventBuilder().decide(1).game_counts(2).events,
    ]
    again = [*EventBuilder().start(2).events, *without_shots(replayed), *EventBuilder().decide(2).end().events]
    dropped_2 = [
        *EventBuilder().start(2).events,
        *without_shots(dropped),
        *EventBuilder().decide(2).at(10**6).restore(1).events,
    ]
    assert fold([*until_2, *dropped_2, *again]).lines() == fold([*until_2, *again]).lines()


@examples(30)
@given(hits=st.lists(st.integers(1, 150), max_size=12))
def test_total_damage_equals_the_lost_health(hits: list[int]) -> None:
    builder, health = EventBuilder().live().start(1), 100
    for damage in hits:
        health = max(0, health - damage)
        builder.at(5000).hit(ANNA, XENA, damage, health)
    assert sum(line.damage for line in builder.ledger().lines()) == 100 - health
