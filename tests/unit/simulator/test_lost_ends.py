"""Test that a series has its real winner or none, never a wrong one, if lines or reports of it are lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_simulator.play.flow.game import GamePhase
from matchpod.core.match.series import maps_won
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, Winner
from tests.effort import examples, seeds
from tests.unit.simulator.interrupted_match import InterruptedMatch, read_without
from tests.unit.simulator.played_match import rostered

POOLS = (
    ("de_nuke", "de_mirage", "de_ancient"),
    ("de_nuke", "de_mirage", "de_nuke"),
    ("de_nuke", "de_nuke", "de_nuke"),
)
LONGEST_S = 2400
"""Latest start or end of an outage: about the duration of three maps of four rounds."""


def _series(maps: tuple[str, ...]) -> GameSettings:
    return rostered(MatchType.WINGMAN, 2, max_rounds=4, series_format=SeriesFormat.BO3, maps=maps)


def _reached(played: InterruptedMatch, at_ms: int) -> Callable[[], bool]:
    return lambda: played.now_ms >= at_ms or played.reader.match.outcome is not None


def _winners(played: InterruptedMatch) -> list[Winner]:
    return [Winner.of(*score) for score in played.bookkeeper.scores]


def _check_result(played: InterruptedMatch) -> None:
    match, winners = played.reader.match, _winners(played)
    assert match.outcome is not None
    if not match.outcome.is_finished:
        return
    assert match.winner is Winner.of(*maps_won(winners))
    if len(set(played.settings.maps)) < len(played.settings.maps):
        return  # only plugin reports distinguish maps of the same name, and they may be lost in the outage
    for one in match.maps:
        assert one.winner in (None, winners[one.number - 1])


@given(
    seed=st.integers(1, 10_000),
    maps=st.sampled_from(POOLS),
    cuts=st.lists(st.integers(0, LONGEST_S * 1000), min_size=2, max_size=4).map(sorted),
)
@examples(4)
def test_winner_is_correct_or_unknown_after_any_outage_of_the_service(
    seed: int, maps: tuple[str, ...], cuts: list[int]
) -> None:
    played = InterruptedMatch(_series(maps), seed=seed)
    played.configure()
    began_ms = played.now_ms
    for left_ms, back_ms in zip(cuts[::2], cuts[1::2], strict=False):
        played.run_until(_reached(played, began_ms + left_ms))
        if played.reader.match.outcome is None:
            played.go_down_until(_reached(played, began_ms + back_ms))
    assert played.run_until(lambda: played.reader.match.outcome is not None)
    _check_result(played)


@pytest.mark.parametrize("maps", POOLS)
@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(1))
def test_series_result_includes_a_map_that_ended_during_an_outage(seed: int, maps: tuple[str, ...]) -> None:
    played = InterruptedMatch(_series(maps), seed=seed)
    played.configure()
    assert played.run_until(lambda: sum(played.reader.interpreter.flow.scores[-1]) > 0)
    played.go_down_until(lambda: bool(played.bookkeeper.scores) and played.machine.game.phase is GamePhase.LIVE)
    assert played.run_until(lambda: played.reader.match.outcome is not None)
    match, winners = played.reader.match, _winners(played)
    assert (match.winner, match.series_score) == (Winner.of(*maps_won(winners)), maps_won(winners))
    assert [one.winner for one in match.maps] == winners
    assert [one.name for one in match.maps] == list(maps[: len(winners)])


@given(data=st.data())
@examples(3)
def test_series_score_is_taken_from_the_plugin_if_whole_maps_are_lost(data: st.DataObject) -> None:
    game = _series(POOLS[0])
    played = InterruptedMatch(game, seed=data.draw(st.integers(1, 10_000)))
    assert played.play()
    over_ms = played.now_ms
    played.run_until(lambda: played.now_ms > over_ms + 5000)  # the plugin reports the end of the series last
    lost_maps = data.draw(st.sets(st.sampled_from(POOLS[0][1:]), min_size=1))
    lost = {
        number
        for number, (_, headers, body) in enumerate(played.received)
        if (headers or {}).get("X-Game-Map") in lost_maps or (headers is None and b"series_end" not in body)
    }
    match, winners = read_without(game, played.received, lost).match, _winners(played)
    assert match.outcome is not None
    if match.outcome.is_finished:
        assert (match.winner, match.series_score) == (Winner.of(*maps_won(winners)), maps_won(winners))
