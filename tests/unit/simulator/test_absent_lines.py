"""Lines of players who are not on the server change nothing in simulated matches."""

from __future__ import annotations

import msgspec
import pytest

from cs2_simulator.play.door import BY_USER
from cs2_simulator.play.flow.game import GamePhase
from cs2_simulator.scenarios import Scenario
from matchpod.core.views.result import build_result
from matchpod.core.views.rounds import build_rounds
from matchpod.cs2.match_reader import MatchReader
from tests.absent_lines import count_leavers, with_absent_lines, without_absent_lines
from tests.effort import seeds
from tests.unit.simulator.played_match import START_MS, PlayedMatch
from tests.unit.simulator.test_agreement import VARIANTS

SEEDS = 4
"""Number of matches in `make test`; `make soak` plays five times as many."""

_LEAVING = (Scenario.IDLE_KICK, Scenario.RAGE_QUIT_REJOIN, Scenario.WARMUP_BOTS, Scenario.SPECTATOR)
_GAMES = sorted(VARIANTS, key=lambda variant: variant[1] not in _LEAVING)
"""The variants of the agreement test, those in which players or bots leave first."""


def _read(played: PlayedMatch, lines: list[bytes]) -> MatchReader:
    reader = MatchReader.create(played.settings, START_MS)
    reader.read_file(lines)
    return reader


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_lines_of_absent_players_change_nothing(seed: int) -> None:
    settings, scenario = _GAMES[(seed - 1) % len(_GAMES)]
    played = PlayedMatch(settings, scenario=scenario, seed=seed)
    assert played.play()
    played.run_until(lambda: False, hours=0.05)  # players leave after the end
    lines = played.log_lines()
    extended = with_absent_lines(lines)
    assert len(extended) > len(lines) + count_leavers(lines)
    bare, whole, full = (_read(played, log).match for log in (without_absent_lines(lines), lines, extended))
    for match in (bare, full):
        for one, other in zip(match.maps, whole.maps, strict=True):
            assert build_rounds(match, one) == build_rounds(whole, other)
        assert build_result(match) == build_result(whole)
        assert match.presence == whole.presence
        assert msgspec.to_builtins(match) == msgspec.to_builtins(whole)


def test_match_ends_when_all_players_have_left_one_by_one() -> None:
    settings = next(settings for settings, scenario in VARIANTS if scenario is Scenario.IDLE_KICK)
    played = PlayedMatch(settings, scenario=Scenario.ONE_SIDED, seed=3)
    machine, match = played.machine, played.reader.match
    played.configure()
    assert played.run_until(lambda: machine.game.phase is GamePhase.LIVE)
    for number in range(1, 11):
        machine.door.leave(machine.arena.players[-number % 2], BY_USER)
        if number % 2 == 0:  # a round begins with those who are left
            start = machine.agenda.now_ms
            played.run_until(lambda: machine.agenda.now_ms > start + 60_000, hours=0.1)  # noqa: B023
    assert played.run_until(lambda: match.outcome is not None)
    assert match.outcome is not None
    assert match.outcome.reason == "all_players_left"
    assert match.presence.connected == {}
    assert sum(b"<STEAM_ID_PENDING>" in line and b"left buyzone with [ ]" in line for line in played.log_lines()) == 10
