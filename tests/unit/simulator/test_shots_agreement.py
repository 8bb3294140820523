"""Test that the shots of every map of a simulated match equal the simulator's own counts."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest

from cs2_simulator.scenarios import Scenario
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from matchpod.core.views.result import build_result
from tests.effort import seeds, sized
from tests.unit.simulator.played_match import COUNT_SHOTS, SHOTS_URL, PlayedMatch, mode_settings, rostered

MAPS = ("de_nuke", "de_mirage", "de_ancient", "de_vertigo", "de_inferno")
NO_ROSTER = 0


def series(match_type: MatchType, size: int, series_format: SeriesFormat, *, rounds: int = 4) -> GameSettings:
    changes = {"series_format": series_format, "maps": MAPS, "max_rounds": rounds}
    return mode_settings(match_type, **changes) if size == NO_ROSTER else rostered(match_type, size, **changes)


VARIANTS: tuple[tuple[GameSettings, Scenario], ...] = (
    (series(MatchType.WINGMAN, 2, SeriesFormat.BO3), Scenario.FULL_MATCH),
    (series(MatchType.WINGMAN, 2, SeriesFormat.BO5), Scenario.OVERTIME),
    (series(MatchType.WINGMAN, 2, SeriesFormat.BO3, rounds=2), Scenario.TIE),
    (series(MatchType.COMPETITIVE, 5, SeriesFormat.BO3), Scenario.ROUND_RESTORE),
    (series(MatchType.WINGMAN, NO_ROSTER, SeriesFormat.BO3, rounds=2), Scenario.TIE),
    (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=1.0), Scenario.FULL_MATCH),
    (mode_settings(MatchType.CASUAL, max_rounds=4), Scenario.FULL_MATCH),
    (series(MatchType.COMPETITIVE, NO_ROSTER, SeriesFormat.BO3, rounds=2), Scenario.TIE),
    (series(MatchType.COMPETITIVE, 5, SeriesFormat.BO5), Scenario.FULL_MATCH),
    (series(MatchType.COMPETITIVE, 5, SeriesFormat.BO3), Scenario.OVERTIME),
    (series(MatchType.COMPETITIVE, 5, SeriesFormat.BO3), Scenario.TIE),
    (series(MatchType.COMPETITIVE, NO_ROSTER, SeriesFormat.BO3), Scenario.FULL_MATCH),
    (series(MatchType.COMPETITIVE, 5, SeriesFormat.BO3), Scenario.FULL_MATCH),
)
QUICK = 5
"""The number of variants that `make test` plays, without the first; `make soak` plays all."""


class EarlyCounter(PlayedMatch):
    """Its counter of shots is on the next map as soon as a map is over: the mistake that a real plugin could make."""

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        report = json.loads(body)
        if url == SHOTS_URL and report.pop("final", False):
            report["mapNumber"] += 1
            body = json.dumps(report).encode()
        super().send_report(url, headers, body)


def check(played: PlayedMatch) -> None:
    assert played.play()
    reader, books = played.reader, played.bookkeeper.books
    assert played.run_until(lambda: not reader.shots.awaits_last_round(reader.match.current_map), hours=0.1)
    maps = reader.match.maps
    assert len(maps) == len(books)
    for one, book in zip(maps, books, strict=True):
        reported = {line.player_id: (line.shots_fired, line.shots_hit) for line in one.ledger.lines()}
        assert reported == {tally.player_id: (tally.shots_fired, tally.shots_hit) for tally in book}
    if played.settings.match_type.has_series:
        overall = json.loads(msgspec.json.encode(build_result(reader.match)))["overall"]
        fired = sum(tally.shots_fired for book in books for tally in book)
        assert sum(player["extraStats"]["shotsFired"] for player in overall) == fired > 0


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(QUICK))
def test_shots_of_every_map_equal_the_simulators_own_counts(seed: int) -> None:
    settings, scenario = VARIANTS[seed % len(VARIANTS)]
    played = PlayedMatch(settings, scenario=scenario, seed=seed, extra=(COUNT_SHOTS,))
    check(played)
    assert played.reader.shots.misplaced == 0
    last = [report.map_number for report in played.shots_reports if report.final]
    assert last == [one.number for one in played.reader.match.maps]


@pytest.mark.parametrize("seed", range(sized(1, 4)))
def test_shots_agree_although_the_counter_names_the_next_map_after_the_last_round(seed: int) -> None:
    settings, scenario = VARIANTS[seed]
    played = EarlyCounter(settings, scenario=scenario, seed=seed, extra=(COUNT_SHOTS,))
    check(played)
    assert played.reader.shots.misplaced == 0
