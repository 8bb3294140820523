"""Test that the statistics of a replayed simulated match equal the simulator's own counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from cs2_protocol.game import Team
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.scenarios import Scenario
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.model import CvarSetting, DmSubMode, GameSettings, MatchType, SeriesFormat
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.stats.player_round import PlayerRound
from matchpod.cs2.match_reader import MatchReader
from matchpod.replay import open_recording, replay
from tests.effort import seeds
from tests.unit.simulator.played_match import PlayedMatch, coached, mode_settings, rostered

SEEDS = 9
"""Number of matches: `make test` plays a third of VARIANTS, a round of `make soak` most of them, with random seeds."""

_COUNTERS = tuple(name for name in PlayerRound.__struct_fields__ if name != "assists")


VARIANTS: tuple[tuple[GameSettings, Scenario], ...] = (
    (mode_settings(MatchType.COMPETITIVE), Scenario.FULL_MATCH),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=4), Scenario.OVERTIME),
    (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=2.0), Scenario.FULL_MATCH),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=6), Scenario.ROUND_RESTORE),
    (rostered(MatchType.WINGMAN, 2), Scenario.FULL_MATCH),
    (mode_settings(MatchType.CASUAL, maps=("cs_office",)), Scenario.FULL_MATCH),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=10), Scenario.TIE),
    (mode_settings(MatchType.RETAKES), Scenario.RAGE_QUIT_REJOIN),
    (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=3.0, dm_sub_mode=DmSubMode.TEAM), Scenario.RAGE_QUIT_REJOIN),
    (rostered(MatchType.WINGMAN, 2, max_rounds=8), Scenario.ROUND_RESTORE),
    (mode_settings(MatchType.CUSTOM, max_rounds=9), Scenario.SPOOFER),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=8), Scenario.RAGE_QUIT_REJOIN),
    (rostered(MatchType.COMPETITIVE, 5), Scenario.SPOOFER),
    (rostered(MatchType.WINGMAN, 1, max_rounds=6), Scenario.OVERTIME),
    (rostered(MatchType.COMPETITIVE, 3, max_rounds=8), Scenario.PAUSES),
    (mode_settings(MatchType.COMPETITIVE, max_rounds=8), Scenario.CHEATER),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=6), Scenario.STRANGER),
    (
        rostered(
            MatchType.COMPETITIVE,
            5,
            max_rounds=6,
            series_format=SeriesFormat.BO3,
            maps=("de_nuke", "de_mirage", "de_ancient"),
        ),
        Scenario.FULL_MATCH,
    ),
    (coached(MatchType.COMPETITIVE, 5, max_rounds=8), Scenario.PAUSES),
    (coached(MatchType.COMPETITIVE, 2, max_rounds=6), Scenario.OVERTIME),
    (mode_settings(MatchType.CASUAL), Scenario.ONE_SIDED),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=24), Scenario.LATE_JOIN),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=8), Scenario.IDLE_KICK),
    (mode_settings(MatchType.CASUAL, max_rounds=9), Scenario.IDLE_KICK),
    (rostered(MatchType.WINGMAN, 2, max_rounds=8), Scenario.IDLE_KICK),
    (mode_settings(MatchType.DEATHMATCH, dm_round_minutes=4.0), Scenario.IDLE_KICK),
    (mode_settings(MatchType.COMPETITIVE, max_rounds=8), Scenario.SPECTATOR),
    (mode_settings(MatchType.COMPETITIVE, max_rounds=8), Scenario.PAUSES),
    (rostered(MatchType.COMPETITIVE, 5, max_rounds=6), Scenario.WARMUP_BOTS),
    (mode_settings(MatchType.RETAKES, max_rounds=8), Scenario.WARMUP_BOTS),
    (
        mode_settings(MatchType.CUSTOM, max_rounds=12, custom_cvars=(CvarSetting("bot_quota", "12"),)),
        Scenario.IDLE_KICK,
    ),
)


def _differences(lines: Sequence[PlayerLine], book: Sequence[Tally], *, has_teams: bool) -> list[str]:
    reported = {line.player_id: line for line in lines}
    counted = {tally.player_id: tally for tally in book}
    faults = [f"{player_id} is missing on one side" for player_id in reported.keys() ^ counted.keys()]
    for player_id in reported.keys() & counted.keys():
        line, tally = reported[player_id], counted[player_id]
        pairs = {name: (getattr(line, name), getattr(tally, name)) for name in _COUNTERS}
        pairs["assists"] = (line.all_assists, tally.assists)
        pairs["weapon_kills"] = (line.weapon_kills, tally.weapon_kills)
        if has_teams:
            pairs["team"] = (line.team, {0: None, 1: Team.TEAM1, 2: Team.TEAM2}[tally.team])
        faults += [
            f"{player_id} {name}: {ours} and {theirs}" for name, (ours, theirs) in pairs.items() if ours != theirs
        ]
    return faults


def _check_maps(reader: MatchReader, played: PlayedMatch) -> None:
    keeper, settings = played.bookkeeper, played.settings
    finished: list[PlayedMap] = [one for one in reader.match.maps if one.is_finished]
    assert len(finished) == len(keeper.books) > 0
    for one, book, score in zip(finished, keeper.books, keeper.scores, strict=True):
        has_teams = settings.match_type is not MatchType.DEATHMATCH
        assert _differences(one.ledger.lines(), book, has_teams=has_teams) == []
        assert one.ledger.discrepancies == []
        assert one.ledger.is_complete
        if has_teams:
            assert (one.team1_score, one.team2_score) == score


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(SEEDS))
def test_replayed_statistics_equal_the_simulators_own_counts(seed: int, tmp_path: Path) -> None:
    settings, scenario = VARIANTS[seed % len(VARIANTS)]
    played = PlayedMatch(settings, scenario=scenario, seed=seed)
    assert played.play()
    _check_maps(played.reader, played)
    file = played.record(tmp_path / "match.jsonl")
    _check_maps(replay([open_recording(file)]), played)
    assert played.reader.lines_unknown == 0


def _has_played(standing: Standing, rounds: int) -> bool:
    return standing.phase is GamePhase.LIVE and standing.rounds_played >= rounds


@pytest.mark.law
@pytest.mark.parametrize("seed", seeds(3))
def test_statistics_agree_when_an_admin_restores_rounds_at_any_moment(seed: int) -> None:
    rng = Random(seed)
    settings = (coached if seed % 2 else rostered)(MatchType.COMPETITIVE, rng.choice((1, 2, 5)), max_rounds=8)
    played = PlayedMatch(settings, seed=seed)
    played.configure()
    standing = played.machine.game.standing
    for _ in range(rng.randint(1, 4)):
        until = standing.rounds_played + rng.randint(0, 3)
        played.run_until(partial(_has_played, standing, until))
        played.wait(rng.randint(0, 90))
        played.execute(*rng.choice(((), ("css_forcepause",))), f"css_restore {rng.randint(0, standing.rounds_played)}")
        played.wait(rng.randint(1, 20))
        played.execute("css_forceunpause")
    assert played.run_until(lambda: played.reader.match.outcome is not None)
    _check_maps(played.reader, played)
