"""Test that the same seed plays the same match, regardless of when commands and queries were sent."""

from __future__ import annotations

from random import Random

import pytest

from matchpod.core.effects import Effect, StartPlay
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from matchpod.cs2 import match_commands
from tests.effort import sized
from tests.unit.simulator.played_match import PlayedMatch, mode_settings, rostered

SEED = 3
QUERIES = ("status", "status_json", "echo hello", "mp_maxrounds", "get5_status", "logaddress_list_http")


class DelayedMatch(PlayedMatch):
    """A match whose commands are randomly delayed and mixed with queries; the start is requested three times."""

    def __init__(self, settings: GameSettings, rng: Random) -> None:
        super().__init__(settings, seed=SEED)
        self._rng = rng
        self._starts: list[int] = []

    def execute(self, *texts: str) -> None:
        rng = self._rng
        for text in texts:
            self.machine.agenda.run_until(self.now_ms + rng.choice((0, 1, 7, 15, 16, 40, 333, 1200)))
            if rng.random() < 0.3:
                super().execute(rng.choice(QUERIES))
            super().execute(text)

    def step(self) -> None:
        super().step()
        if self._starts and self._starts[0] <= self.now_ms:
            self._starts.pop(0)
            self.apply_settings()
            self.execute(*match_commands.start_commands(self.settings))
        elif self._rng.random() < 0.002:
            self.execute("status")

    def _perform(self, effects: list[Effect]) -> None:
        super()._perform([effect for effect in effects if not isinstance(effect, StartPlay)])
        if any(isinstance(effect, StartPlay) for effect in effects):
            first_ms = self.now_ms + self._rng.choice((0, 5_000, 200_000))
            self._starts = [first_ms, first_ms + 1700, first_ms + 2900]


def live_lines(played: PlayedMatch) -> list[list[str]]:
    """Return the lines of each map from its last start to its end, without times and console commands."""
    maps: list[list[str]] = []
    lines: list[str] = []
    for raw in played.log_lines():
        text = raw.decode(errors="replace").partition(" - ")[2].partition(" - ")[2]
        if text.startswith('World triggered "Match_Start"'):
            lines = []
        if not text.startswith("rcon from "):
            lines.append(text)
        if text.startswith("Game Over"):
            maps.append(lines)
    return maps


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(rostered(MatchType.COMPETITIVE, 5, max_rounds=6), id="plugin"),
        pytest.param(mode_settings(MatchType.COMPETITIVE, max_rounds=6), id="no roster"),
        pytest.param(rostered(MatchType.WINGMAN, 2, max_rounds=6), id="wingman"),
        pytest.param(mode_settings(MatchType.DEATHMATCH, dm_round_minutes=2.0), id="deathmatch"),
        pytest.param(
            rostered(MatchType.DEATHMATCH, 3, dm_round_minutes=2.0), id="listed deathmatch", marks=pytest.mark.soak
        ),
        pytest.param(mode_settings(MatchType.CASUAL, max_rounds=5, maps=("cs_office",)), id="hostages"),
        pytest.param(
            rostered(MatchType.COMPETITIVE, 5, max_rounds=2, series_format=SeriesFormat.BO3, maps=("de_nuke",) * 3),
            id="series",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_match_does_not_depend_on_when_commands_are_sent(settings: GameSettings) -> None:
    plain = PlayedMatch(settings, seed=SEED)
    assert plain.play()
    expected = live_lines(plain)
    assert expected
    for number in range(sized(1, 3)):
        delayed = DelayedMatch(settings, Random(number))
        assert delayed.play()
        assert live_lines(delayed) == expected
        assert delayed.bookkeeper.books == plain.bookkeeper.books
