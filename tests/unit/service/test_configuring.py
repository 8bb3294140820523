"""Rounds played while a server is being configured do not count; players who connect meanwhile do."""

from __future__ import annotations

import pytest

from matchpod.core.effects import StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.views.timeline_items import TimelineItem
from matchpod.service.match_log.entries import EntryKind
from matchpod.service.match_log.fold import Fold
from tests.unit.service.history.sample_log import first_round, log_post, players_join
from tests.unit.service.match_log.test_fold import PLAYERS, entry, fold_all, row_of
from tests.unit.simulator.played_match import START_MS, mode_settings

MAP_END = ["Game Over: competitive  de_nuke score 1:0 after 1 min", 'World triggered "Round_Start"']


def match() -> GameSettings:
    teams = {"team1": TeamRoster("Reds", PLAYERS[:2]), "team2": TeamRoster("Blues", PLAYERS[2:])}
    return mode_settings(MatchType.WINGMAN, maps=("de_nuke",), max_rounds=4, **teams)


def fold_of(*posts: tuple[str, list[str]]) -> tuple[Fold, list[object]]:
    """The match after these entries, a second apart, and its effects."""
    fold = Fold.begin(row_of(match()), 1.0)
    entries = [
        entry(kind, START_MS + 1_000 * number, log_post(*lines) if lines else b"")
        for number, (kind, lines) in enumerate(posts, 1)
    ]
    return fold, list(fold_all(fold, entries))


def timeline(fold: Fold) -> list[TimelineItem]:
    return [item.item for item in fold.drain_timeline()]


def test_rounds_during_configuration_do_not_count() -> None:
    fold, effects = fold_of(
        (EntryKind.CONFIGURING, []),
        (EntryKind.LOG, players_join()),
        (EntryKind.LOG, first_round()),
        (EntryKind.LOG, MAP_END),
        (EntryKind.CONFIGURED, []),
    )
    found = fold.match
    assert (found.phase, found.current_map.team1_score, found.current_map.started_at_ms) == (
        MatchPhase.STARTING,
        0,
        None,
    )
    assert list(found.presence.connected) == list(PLAYERS)
    assert effects == [StartPlay(1)]
    assert {type(item).__name__ for item in timeline(fold)} == {"PlayerConnectedItem"}


@pytest.mark.parametrize("late", [[], [(EntryKind.CONFIGURED, [])]], ids=["once", "twice"])
def test_rounds_after_configuration_count(late: list[tuple[str, list[str]]]) -> None:
    configured = [
        (EntryKind.CONFIGURING, []),
        (EntryKind.LOG, players_join()),
        (EntryKind.LOG, first_round()),
        (EntryKind.CONFIGURED, []),
    ]
    fold, _ = fold_of(*configured, (EntryKind.LOG, first_round()), *late)
    found = fold.match
    assert (found.phase, found.current_map.team1_score) == (MatchPhase.LIVE, 1)


def test_game_still_reported_after_configuration_does_not_count() -> None:
    """A restart takes a second; until then the old game goes on."""
    status = ['MatchStatus: Score: 3:1 on map "de_nuke" RoundsPlayed: 4', 'World triggered "Round_Start"']
    fold, _ = fold_of(
        (EntryKind.CONFIGURING, []),
        (EntryKind.LOG, players_join()),
        (EntryKind.CONFIGURED, []),
        (EntryKind.LOG, status),
        (EntryKind.LOG, MAP_END),
    )
    assert fold.match.phase is MatchPhase.STARTING
    fold.apply(entry(EntryKind.LOG, START_MS + 9_000, log_post(*first_round())))
    assert (fold.match.phase, fold.match.current_map.team1_score) == (MatchPhase.LIVE, 1)
