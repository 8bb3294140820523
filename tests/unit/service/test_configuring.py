"""What a server plays while it is set up does not count; who comes to it meanwhile does."""

from __future__ import annotations

import pytest

from matchpod.core.effects import StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import GameSettings, MatchType, TeamRoster
from matchpod.core.timeline_items import TimelineItem
from matchpod.service.folding import CONFIGURED, CONFIGURING, LOG, Fold
from tests.unit.service.history.spoken_lines import coming, first_round, logged
from tests.unit.service.test_folding import PLAYERS, entry, fold_all, row_of
from tests.unit.simulator.played_match import START_MS, mode_settings

MAP_END = ["Game Over: competitive  de_nuke score 1:0 after 1 min", 'World triggered "Round_Start"']


def match() -> GameSettings:
    teams = {"team1": TeamRoster("Reds", PLAYERS[:2]), "team2": TeamRoster("Blues", PLAYERS[2:])}
    return mode_settings(MatchType.WINGMAN, maps=("de_nuke",), max_rounds=4, **teams)


def fold_of(*said: tuple[str, list[str]]) -> tuple[Fold, list[object]]:
    """The match after these entries, a second apart, and its effects."""
    fold = Fold.begin(row_of(match()), 1.0)
    entries = [
        entry(kind, START_MS + 1_000 * number, logged(*lines) if lines else b"")
        for number, (kind, lines) in enumerate(said, 1)
    ]
    return fold, list(fold_all(fold, entries))


def told(fold: Fold) -> list[TimelineItem]:
    return [item.item for item in fold.reader.timeline.take()]


def test_play_during_the_set_up_is_another_game() -> None:
    fold, effects = fold_of((CONFIGURING, []), (LOG, coming()), (LOG, first_round()), (LOG, MAP_END), (CONFIGURED, []))
    found = fold.reader.match
    assert (found.phase, found.current_map.team1_score, found.current_map.started_at_ms) == (Phase.STARTING, 0, None)
    assert list(found.presence.connected) == list(PLAYERS)
    assert effects == [StartPlay(1)]
    assert {type(item).__name__ for item in told(fold)} == {"PlayerConnectedItem"}


@pytest.mark.parametrize("late", [[], [(CONFIGURED, [])]], ids=["once", "twice"])
def test_play_after_the_set_up_counts(late: list[tuple[str, list[str]]]) -> None:
    configured = [(CONFIGURING, []), (LOG, coming()), (LOG, first_round()), (CONFIGURED, [])]
    fold, _ = fold_of(*configured, (LOG, first_round()), *late)
    found = fold.reader.match
    assert (found.phase, found.current_map.team1_score) == (Phase.LIVE, 1)


def test_a_log_from_before_set_ups_were_noted_counts_from_its_start() -> None:
    fold, _ = fold_of((LOG, coming()), (LOG, first_round()))
    assert (fold.reader.match.phase, fold.reader.match.current_map.team1_score) == (Phase.LIVE, 1)


def test_a_snapshot_during_the_set_up_changes_nothing() -> None:
    fold, _ = fold_of((CONFIGURING, []), (LOG, coming()))
    again = Fold.from_bytes(fold.to_bytes())
    again.take(entry(LOG, START_MS + 5_000, logged(*first_round())))
    assert again.reader.match.phase is Phase.STARTING


def test_a_game_of_the_set_up_that_is_still_told_of_is_not_joined() -> None:
    """Beginning anew takes a second; until then the old game goes on."""
    status = ['MatchStatus: Score: 3:1 on map "de_nuke" RoundsPlayed: 4', 'World triggered "Round_Start"']
    fold, _ = fold_of((CONFIGURING, []), (LOG, coming()), (CONFIGURED, []), (LOG, status), (LOG, MAP_END))
    assert fold.reader.match.phase is Phase.STARTING
    fold.take(entry(LOG, START_MS + 9_000, logged(*first_round())))
    assert (fold.reader.match.phase, fold.reader.match.current_map.team1_score) == (Phase.LIVE, 1)
