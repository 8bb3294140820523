"""Test that the MVPs of a player are right or unknown, never wrong, if lines or reports of the match are lost."""

from __future__ import annotations

from random import Random

import pytest

from cs2_protocol.game import PlayerId
from cs2_simulator.scenarios import Scenario
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from matchpod.core.views.result import build_result
from matchpod.core.views.result_shapes import SeriesResult
from matchpod.cs2.match_reader import MatchReader
from tests.effort import seeds, sized
from tests.unit.simulator.interrupted_match import InterruptedMatch, read_without
from tests.unit.simulator.played_match import PLAYERS, rostered

CASES = sized(1, 10)
"""Outages tried per match, in three forms each."""


def _settings(**changes: object) -> GameSettings:
    return rostered(MatchType.COMPETITIVE, 3, max_rounds=6, **changes)


_SERIES = {"series_format": SeriesFormat.BO3, "maps": ("de_nuke", "de_mirage", "de_ancient")}
VARIANTS = (
    (_settings(), Scenario.FULL_MATCH),
    (_settings(), Scenario.RAGE_QUIT_REJOIN),
    (_settings(**_SERIES), Scenario.FULL_MATCH),
    (_settings(), Scenario.ROUND_RESTORE),
)


def _played(seed: int) -> InterruptedMatch:
    settings, scenario = VARIANTS[seed % len(VARIANTS)]
    played = InterruptedMatch(settings, seed=seed, scenario=scenario)
    assert played.play()
    over_ms = played.now_ms
    played.run_until(lambda: played.now_ms > over_ms + 5000)  # the plugin's last reports
    return played


def _real_mvps(played: InterruptedMatch) -> list[dict[PlayerId, int]]:
    return [{tally.player_id: tally.mvps for tally in book} for book in played.bookkeeper.books]


def _wrong(reader: MatchReader, played: InterruptedMatch) -> list[str]:
    """The published numbers that are wrong and not marked incomplete."""
    result, books = build_result(reader.match), _real_mvps(played)
    assert isinstance(result, SeriesResult)
    if reader.match.outcome is None or not reader.match.outcome.is_finished:
        return []  # canceled: the maps after the loss were not played, as far as anyone knows
    shown = [(books[one.map_number - 1], one.players, f"map {one.map_number}") for one in result.maps]
    total = {player_id: sum(book.get(player_id, 0) for book in books) for player_id in PLAYERS}
    return [
        f"{where}: {player.name} has {player.mvps} instead of {real[player.steam_id]}"
        for real, players, where in (*shown, (total, result.overall, "overall"))
        for player in players
        if player.mvps_complete and player.mvps != real[player.steam_id]
    ]


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(len(VARIANTS)))
def test_mvps_are_right_or_unknown_after_any_loss(seed: int) -> None:
    played, random = _played(seed), Random(seed)
    count = len(played.received)
    reports = {number for number, (_, headers, _) in enumerate(played.received) if headers is None}
    assert _wrong(played.reader, played) == []
    losses = [reports]
    for _ in range(CASES):
        start = random.randrange(count)
        outage = set(range(start, min(count, start + random.randrange(1, 1 + count // 4))))
        losses += [outage, {*outage, *reports}, set(random.sample(range(count), random.randrange(1, 8)))]
    for lost in losses:
        assert _wrong(read_without(played.settings, played.received, lost), played) == [], sorted(lost)


def test_only_the_winners_of_the_last_round_lack_mvps_if_its_report_is_lost() -> None:
    played = _played(4)
    (real,) = _real_mvps(played)
    last = max(number for number, (_, _, body) in enumerate(played.received) if b'"event":"round_end"' in body)
    (one,) = read_without(played.settings, played.received, {last}).match.maps
    winner, (final,) = one.ledger.rounds[-1].winner, (one.ledger.rounds[-1],)
    won = {1: final.team1, 2: final.team2}[1 if winner == "team1" else 2]
    assert {line.player_id for line in one.ledger.lines() if not line.are_mvps_complete} == set(won)
    assert all(line.mvps == real[line.player_id] for line in one.ledger.lines() if line.player_id not in won)
