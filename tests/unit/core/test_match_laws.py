"""Properties of a match for random sequences of events."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side
from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, CancelReason, Effect, EndMatch
from matchpod.core.match.match import TRANSITIONS, Match, MatchPhase
from matchpod.core.model import GameSettings, SeriesFormat
from tests.unit.core.match_driver import ANN, BEN, EVE, MAPS, START_MS, deathmatch, duel, open_match

Step = tuple[int, Callable[[Match, int], list[Effect]]]
"""Milliseconds to wait, and the action to perform then."""

players = st.sampled_from([ANN, BEN, EVE, "BOT:Han"])
maps = st.sampled_from(MAPS[:3])
scores = st.integers(0, 16)
sides = st.sampled_from([Side.CT, Side.T, None])
at = st.just(START_MS)
events: st.SearchStrategy[ev.GameEvent] = st.one_of(
    st.builds(ev.PlayerConnected, at, players, st.just("x"), st.integers(0, 9)),
    st.builds(ev.PlayerEntered, at, players, st.just("x"), st.integers(0, 9)),
    st.builds(ev.PlayerJoinedSide, at, players, st.just("x"), sides, st.none()),
    st.builds(ev.PlayerDisconnected, at, players, st.just("x"), st.just("gone"), st.booleans()),
    st.builds(ev.MapLoading, at, maps),
    st.builds(ev.MapLive, at, maps, at, st.sampled_from(Side)),
    st.builds(ev.MapEnded, at, maps, scores, scores),
    st.builds(ev.RoundRestored, at, st.integers(0, 20), scores, scores),
    st.builds(ev.RoundStarted, at, st.integers(1, 30), st.just((ANN,)), st.just((BEN,)), st.sampled_from(Side)),
    st.builds(ev.Kill, at, players, players, st.just("ak47"), st.booleans()),
    st.builds(ev.CheatSuspected, at, players, st.just("Aimbot"), st.just("why")),
    st.builds(ev.ServerRestarted, at),
    st.builds(ev.LogGap, at, st.just(100)),
)
sequences: st.SearchStrategy[tuple[ev.GameEvent, ...]] = st.sampled_from(
    [
        tuple(ev.PlayerJoinedSide(START_MS, player, "x", Side.CT, None) for player in (ANN, BEN)),
        (ev.MapLive(START_MS, MAPS[0], START_MS, Side.CT),),
        (ev.MapLive(START_MS, MAPS[0], START_MS, Side.CT), ev.MapEnded(START_MS, MAPS[0], 13, 7)),
        (ev.MapLive(START_MS, MAPS[0], START_MS, Side.CT), ev.MapEnded(START_MS, MAPS[0], 7, 13)),
        tuple(ev.PlayerDisconnected(START_MS, player, "x", "gone", False) for player in (ANN, BEN)),
    ]
)
"""Event sequences that single events in random order rarely produce."""


def apply_events(*batch: ev.GameEvent) -> Callable[[Match, int], list[Effect]]:
    return lambda match, now_ms: [effect for event in batch for effect in match.apply(event, now_ms)]


event_steps = events.map(apply_events) | sequences.map(lambda sequence: apply_events(*sequence))
ticks = st.just(lambda match, now_ms: match.tick(now_ms))
cancels = st.just(lambda match, now_ms: match.cancel(CancelReason.CANCELED_BY_USER, now_ms))
waits = st.sampled_from([0, 1_000, 20_000, 60_000, 200_000])
steps = st.lists(st.tuples(waits, st.one_of(event_steps, ticks)), max_size=20)
endings = st.lists(st.tuples(waits, st.one_of(event_steps, ticks, cancels)), max_size=5)
match_settings = st.sampled_from([duel(), duel(SeriesFormat.BO3), deathmatch(ANN, BEN), open_match()])


def played(settings: GameSettings, actions: list[Step]) -> tuple[Match, int]:
    """Return a match after these steps, and the time then."""
    match, now_ms = Match.create(settings, START_MS), START_MS
    for wait_ms, step in actions:
        now_ms += wait_ms
        step(match, now_ms)
    return match, now_ms


def ends(effects: list[Effect]) -> int:
    return sum(isinstance(effect, EndMatch | CancelMatch) for effect in effects)


@given(match_settings, steps, endings)
def test_match_ends_at_most_once_and_does_not_change_afterwards(
    settings: GameSettings, before: list[Step], after: list[Step]
) -> None:
    match, now_ms, ended = Match.create(settings, START_MS), START_MS, 0
    for wait_ms, step in before + after:
        now_ms += wait_ms
        was_over, snapshot = match.phase is MatchPhase.OVER, msgspec.msgpack.encode(match)
        effects = step(match, now_ms)
        ended += ends(effects)
        assert ended == (match.phase is MatchPhase.OVER) == (match.outcome is not None)
        if was_over:
            assert effects == []
            assert msgspec.msgpack.encode(match) == snapshot


@given(match_settings, st.lists(events.map(lambda event: (event,)) | sequences, max_size=20), st.booleans())
def test_every_phase_change_is_in_the_table(
    settings: GameSettings, batches: list[tuple[ev.GameEvent, ...]], is_canceled: bool
) -> None:
    known = {(phase, target) for (phase, _), target in TRANSITIONS.items()}
    match, phases = Match.create(settings, START_MS), [MatchPhase.WARMUP]
    for event in itertools.chain(*batches):
        match.apply(event, START_MS)
        phases.append(match.phase)
    if is_canceled:
        match.cancel(CancelReason.CANCELED_BY_USER, START_MS)
        phases.append(match.phase)
    assert all(before is after or (before, after) in known for before, after in itertools.pairwise(phases))


@given(match_settings, steps, steps)
def test_match_restored_from_a_snapshot_continues_identically(
    settings: GameSettings, before: list[Step], after: list[Step]
) -> None:
    match, now_ms = played(settings, before)
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(match), type=Match)
    assert restored == match
    for wait_ms, step in after:
        now_ms += wait_ms
        assert step(restored, now_ms) == step(match, now_ms)
    assert restored == match


@given(match_settings, steps)
def test_tick_has_effects_at_the_deadline_and_none_before(settings: GameSettings, actions: list[Step]) -> None:
    match, now_ms = played(settings, actions)
    deadline_ms = match.next_deadline_ms()
    if deadline_ms is None:
        return
    assert match.tick(deadline_ms - 1) == []
    assert match.tick(max(deadline_ms, now_ms)) != []


@given(match_settings, steps)
def test_match_ends_by_its_timeouts_alone(settings: GameSettings, actions: list[Step]) -> None:
    match, now_ms = played(settings, actions)
    while (deadline_ms := match.next_deadline_ms()) is not None:
        now_ms = max(now_ms, deadline_ms)
        match.tick(now_ms)
    assert match.phase is MatchPhase.OVER
