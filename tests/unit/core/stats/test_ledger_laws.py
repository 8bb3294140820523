"""Laws of the fold, over made-up tapes."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core import events as ev
from matchpod.core.model import Side, Team
from matchpod.core.stats.ledger import Ledger
from tests.effort import examples
from tests.unit.core.stats.rounds import ANNA, BEN, TEAM1, TEAM2, XENA, YURI, Tape, fold, game_count

PLAYERS = st.sampled_from([ANNA, BEN, XENA, YURI, "BOT:Ivan"])
WEAPONS = st.sampled_from(["ak47", "awp", "glock", "knife_t", "hegrenade", "inferno"])
NUMBERS = st.integers(0, 5)
# Few moments, so that things often happen at the same time.
MOMENTS = st.integers(0, 20).map(lambda seconds: seconds * 700)


def happening(kind: Any, *fields: Any) -> st.SearchStrategy[ev.Event]:
    return st.builds(kind, MOMENTS, *fields)


COMBAT: st.SearchStrategy[ev.Event] = st.one_of(
    happening(
        ev.Damage, PLAYERS, PLAYERS, WEAPONS, st.just("head"), st.integers(0, 150), st.integers(0, 100), st.booleans()
    ),
    happening(ev.Kill, PLAYERS, PLAYERS, WEAPONS, st.booleans(), st.booleans()),
    happening(ev.Death, PLAYERS, st.sampled_from(["world", "bomb"])),
    happening(ev.PlayerGone, PLAYERS),
    happening(ev.Assist, PLAYERS, PLAYERS, st.booleans(), st.booleans()),
    happening(ev.Blinded, PLAYERS, PLAYERS, st.floats(0, 6), st.booleans()),
    happening(ev.GrenadeThrown, PLAYERS, st.sampled_from(list(ev.GrenadeKind))),
    happening(ev.ShotsCounted, PLAYERS, st.integers(0, 90), st.integers(0, 30)),
)
FLOW: st.SearchStrategy[ev.Event] = st.one_of(
    happening(ev.MapLive, st.just("de_inferno"), st.just(0), st.just(Side.CT), st.none(), st.none(), NUMBERS),
    happening(ev.RoundStarted, NUMBERS, st.just(TEAM1), st.just(TEAM2), st.just(Side.CT)),
    happening(
        ev.RoundDecided,
        NUMBERS,
        st.sampled_from([Team.TEAM1, Team.TEAM2, None]),
        st.none(),
        st.just(ev.RoundEndReason.UNKNOWN),
        st.just(0),
        st.just(0),
    ),
    happening(ev.RoundRestored, NUMBERS, st.just(0), st.just(0)),
    happening(ev.MapEnded, st.just("de_inferno"), st.just(0), st.just(0), st.booleans()),
    happening(ev.LogGap, st.just(1)),
    happening(ev.GameCounted, NUMBERS, st.just((game_count(ANNA, kills=2, mvps=1), game_count(XENA)))),
    happening(ev.MvpNamed, NUMBERS, PLAYERS, st.integers(0, 5)),
)
TAPES = st.lists(COMBAT | FLOW, max_size=40).map(lambda events: [*Tape().live().start(1).events, *events])
FIGHTS = st.lists(COMBAT, max_size=25)


@examples(150)
@given(events=TAPES, cut=st.integers(0, 42), is_free_for_all=st.booleans())
def test_writing_and_reading_at_any_point_changes_nothing(
    events: list[ev.Event], cut: int, is_free_for_all: bool
) -> None:
    whole = fold(events, is_free_for_all=is_free_for_all)
    first = fold(events[:cut], is_free_for_all=is_free_for_all)
    resumed = msgspec.msgpack.decode(msgspec.msgpack.encode(first), type=Ledger)
    assert resumed == first
    for event in events[cut:]:
        resumed.apply(event)
    assert resumed == whole
    assert resumed.lines() == whole.lines()


@examples(60)
@given(events=TAPES)
def test_reading_changes_nothing(events: list[ev.Event]) -> None:
    ledger = fold(events)
    before = msgspec.msgpack.encode(ledger)
    ledger.lines()
    ledger.live_counts()
    assert msgspec.msgpack.encode(ledger) == before


@examples(60)
@given(events=TAPES)
def test_live_counts_agree_with_the_lines(events: list[ev.Event]) -> None:
    ledger = fold(events)
    counts = {player_id: (row.kills, row.deaths, row.assists) for player_id, row in ledger.live_counts().items()}
    assert counts == {line.player_id: (line.kills, line.deaths, line.all_assists) for line in ledger.lines()}


@examples(100)
@given(events=TAPES)
def test_no_number_is_below_zero_and_parts_are_no_more_than_the_whole(events: list[ev.Event]) -> None:
    for line in fold(events).lines():
        assert min(count for count in msgspec.structs.astuple(line) if isinstance(count, int)) >= 0
        assert line.headshots <= line.kills
        assert line.utility_damage <= line.damage
        assert line.kast_rounds <= line.rounds_played
        assert line.trade_kills <= line.kills
        assert sum(line.weapon_kills.values()) == line.kills


@examples(60)
@given(kept=FIGHTS, dropped=FIGHTS, replayed=FIGHTS)
def test_a_restored_round_leaves_no_trace(
    kept: list[ev.Event], dropped: list[ev.Event], replayed: list[ev.Event]
) -> None:
    def without_shots(events: list[ev.Event]) -> list[ev.Event]:
        # A plugin's totals run on through a restore, so a dropped report still moves the next one.
        return [event for event in events if not isinstance(event, ev.ShotsCounted)]

    until_2 = [*Tape().live().start(1).events, *without_shots(kept), *Tape().decide(1).game_counts(2).events]
    again = [*Tape().start(2).events, *without_shots(replayed), *Tape().decide(2).end().events]
    dropped_2 = [*Tape().start(2).events, *without_shots(dropped), *Tape().decide(2).at(10**6).restore(1).events]
    assert fold([*until_2, *dropped_2, *again]).lines() == fold([*until_2, *again]).lines()


@examples(60)
@given(hits=st.lists(st.integers(1, 150), max_size=12))
def test_nobody_loses_more_health_than_he_has(hits: list[int]) -> None:
    tape, health = Tape().live().start(1), 100
    for damage in hits:
        health = max(0, health - damage)
        tape.at(5000).hit(ANNA, XENA, damage, health)
    assert sum(line.damage for line in tape.ledger().lines()) == 100 - health
