"""Test that a client that crashes whenever it loads does not stop the time to join of a match."""

from __future__ import annotations

from functools import partial

import pytest

from cs2_simulator.scenarios import Scenario
from matchpod.core.effects import CancelReason
from matchpod.core.match.match import MatchPhase
from matchpod.core.match.timers import Timers, to_ms
from matchpod.core.model import GameSettings, MatchType
from matchpod.core.views.progress import WaitingFor, next_deadline
from tests.effort import seeds
from tests.unit.simulator.interrupted_match import InterruptedMatch
from tests.unit.simulator.played_match import PlayedMatch, mode_settings, rostered

JOIN_MS, LOAD_MS = to_ms(Timers().join_s), to_ms(Timers().client_load_s)
MODES = (
    rostered(MatchType.WINGMAN, 2, max_rounds=4),
    mode_settings(MatchType.DEATHMATCH, players=rostered(MatchType.WINGMAN, 2).roster),
)


def _breaks(played: PlayedMatch) -> bool:
    presence = played.reader.match.presence
    return not presence.missing() and bool(presence.absent())


def _is_reached(played: PlayedMatch, at_ms: int) -> bool:
    return played.now_ms >= at_ms


def _is_over(played: PlayedMatch) -> bool:
    assert played.reader.match.phase in (MatchPhase.WARMUP, MatchPhase.OVER)
    shown = next_deadline(played.reader.match)
    assert played.reader.match.outcome is not None or (shown is not None and shown[1] is WaitingFor.PLAYERS_TO_JOIN)
    return played.reader.match.outcome is not None


def _check_outcome(played: PlayedMatch, broken_ms: int, *, late_ms: int) -> None:
    outcome = played.reader.match.outcome
    assert outcome is not None
    assert (outcome.reason, outcome.missing_players) == (CancelReason.INCOMPLETE_ROSTER, ())
    assert outcome.connected_players == played.settings.roster
    assert len(outcome.absent_players) == 1
    assert 0 <= outcome.at_ms - (broken_ms + JOIN_MS) <= late_ms


@pytest.mark.law
@pytest.mark.parametrize("settings", MODES, ids=lambda settings: settings.match_type)
@pytest.mark.parametrize("seed", seeds(2))
def test_match_is_canceled_when_the_time_to_join_has_passed_since_the_first_crash(
    settings: GameSettings, seed: int
) -> None:
    played = PlayedMatch(settings, scenario=Scenario.LOADING_CRASH, seed=seed)
    played.configure()
    assert played.run_until(lambda: _breaks(played), hours=1)
    broken_ms = played.now_ms
    assert played.run_until(lambda: _is_over(played), hours=1)
    _check_outcome(played, broken_ms, late_ms=LOAD_MS)


def test_match_is_canceled_although_the_service_is_replaced_meanwhile() -> None:
    played = InterruptedMatch(MODES[0], scenario=Scenario.LOADING_CRASH, seed=1)
    played.configure()
    assert played.run_until(lambda: _breaks(played), hours=1)
    broken_ms = played.now_ms
    for down_s in (30, 120, 280):
        assert played.run_until(partial(_is_reached, played, broken_ms + down_s * 1000))
        played.go_down_until(partial(_is_reached, played, broken_ms + (down_s + 15) * 1000))
        assert not _is_over(played)

    def is_over() -> bool:
        names = {player.person.player_id: player.person.name for player in played.machine.arena.players}
        played.reader.read_presence(names, played.now_ms)
        return _is_over(played)

    assert played.run_until(is_over, hours=1)
    _check_outcome(played, broken_ms, late_ms=2 * LOAD_MS)
