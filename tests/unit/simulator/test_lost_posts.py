"""Losing a post of a simulated match changes only rounds that are named, and its end is still a result."""

from __future__ import annotations

from functools import cache

import pytest

from cs2_protocol.game import Team
from cs2_protocol.log_batches import LogPost, read_post
from cs2_simulator.scenarios import Scenario
from matchpod.core.model import GameSettings, MatchType, SeriesFormat
from matchpod.cs2.match_reader import MatchReader
from tests.effort import some_of
from tests.lost_posts import Losses, Report, lose_posts, read_all
from tests.unit.simulator.interrupted_match import InterruptedMatch
from tests.unit.simulator.played_match import START_MS, mode_settings, rostered

SAMPLE = 8
"""Posts of each match that `make test` loses, besides those that matter most."""

AFTER_END_HOURS = 0.05
"""How long a match is recorded after its end: a server that restarts the map prints its score until then."""

_RESTORE, _COME_AND_GO, _LEAVE = Scenario.ROUND_RESTORE, Scenario.RAGE_QUIT_REJOIN, Scenario.LEAVER
_COMPETITIVE, _WINGMAN, _CASUAL = MatchType.COMPETITIVE, MatchType.WINGMAN, MatchType.CASUAL
_SERIES = rostered(_WINGMAN, 2, max_rounds=4, series_format=SeriesFormat.BO3, maps=("de_nuke", "de_vertigo"))

GAMES: tuple[tuple[GameSettings, Scenario], ...] = (
    (rostered(_COMPETITIVE, 5, max_rounds=4), _RESTORE),
    (mode_settings(_COMPETITIVE, max_rounds=4), _RESTORE),
    (rostered(_COMPETITIVE, 5, max_rounds=4), _COME_AND_GO),
    (mode_settings(_CASUAL, max_rounds=5), Scenario.IDLE_KICK),
    (rostered(_COMPETITIVE, 3, max_rounds=4), Scenario.PAUSES),
    (mode_settings(_COMPETITIVE, max_rounds=4), _LEAVE),
    (rostered(_WINGMAN, 2, max_rounds=6), _RESTORE),
    (mode_settings(MatchType.RETAKES, max_rounds=4), _COME_AND_GO),
    (rostered(_COMPETITIVE, 5, max_rounds=4), Scenario.IDLE_KICK),
    (mode_settings(_COMPETITIVE, max_rounds=4), Scenario.PAUSES),
    (rostered(_COMPETITIVE, 4, max_rounds=4), _LEAVE),
    (mode_settings(_COMPETITIVE, max_rounds=4), _COME_AND_GO),
    (rostered(_WINGMAN, 2, max_rounds=4), Scenario.IDLE_KICK),
    (mode_settings(MatchType.RETAKES, max_rounds=4), Scenario.IDLE_KICK),
    (rostered(_COMPETITIVE, 5, max_rounds=6), _RESTORE),
    (mode_settings(_CASUAL, max_rounds=5), _COME_AND_GO),
    (rostered(_WINGMAN, 2, max_rounds=4), Scenario.PAUSES),
    (mode_settings(_COMPETITIVE, max_rounds=4), Scenario.IDLE_KICK),
    (_SERIES, Scenario.FULL_MATCH),
    (mode_settings(_CASUAL, max_rounds=5), Scenario.WARMUP_BOTS),
)
"""Twenty matches with restores, leavers and pauses."""


@cache
def record(game: int) -> tuple[LogPost | Report, ...]:
    settings, scenario = GAMES[game]
    played = InterruptedMatch(settings, scenario=scenario, seed=game + 7)
    assert played.play()
    played.run_until(lambda: False, hours=AFTER_END_HOURS)
    return tuple(
        Report(at_ms, body) if headers is None else read_post(headers, body, received_ms=at_ms)
        for at_ms, headers, body in played.received
    )


def lose(game: int, count: int | None = None) -> Losses:
    """Lose posts of a match; only some of them, and those of restores, leavers and the end, if `count` is given.

    Every second match has reports of the plugin, two of three have a console that lists the players.
    """
    received = [item for item in record(game) if game % 2 or isinstance(item, LogPost)]
    posts = [index for index, item in enumerate(received) if isinstance(item, LogPost)]
    words = (b"Match_Reloaded", b"disconnected (reason", b"Game Over", b"Match_Start")
    chosen = [index for index in posts if any(word in received[index].body for word in words)]
    lost = set(posts) if count is None else {*some_of(chosen, min(len(chosen), count)), *some_of(posts, count)}
    losses = lose_posts(lambda: MatchReader.create(GAMES[game][0], START_MS), received, lost, has_console=game % 3 > 0)
    assert losses.faults == []
    return losses


@pytest.mark.parametrize("game", some_of(range(len(GAMES)), 4))
def test_lost_post_changes_only_named_rounds(game: int) -> None:
    assert lose(game, count=SAMPLE).named > 0


@pytest.mark.soak
@pytest.mark.parametrize("game", range(len(GAMES)))
def test_each_lost_post_changes_only_named_rounds(game: int) -> None:
    losses = lose(game)
    assert 0 < losses.named >= 3 * losses.equal


# --- the one post that matters ------------------------------------------------------------------------------------


def read_without(game: int, word: bytes) -> list[tuple[MatchReader, MatchReader]]:
    """Read a match without reports, whole and without each post that has this word."""
    posts = [item for item in record(game) if isinstance(item, LogPost)]
    found = [index for index, post in enumerate(posts) if word in post.body]
    assert found
    return [(read(game, posts), read(game, posts[:index] + posts[index + 1 :])) for index in found]


def read(game: int, posts: list[LogPost]) -> MatchReader:
    return read_all(MatchReader.create(GAMES[game][0], START_MS), posts)


RESTORED = [game for game, (_, scenario) in enumerate(GAMES) if scenario is _RESTORE]


@pytest.mark.parametrize("game", some_of(RESTORED, 2))
def test_rounds_that_are_played_again_after_a_lost_restore_are_right_and_named(game: int) -> None:
    for whole, lossy in read_without(game, b"Match_Reloaded"):
        ((expected,), (played,)) = whole.match.maps, lossy.match.maps
        wins = [record.winner for record in played.ledger.rounds]
        assert (wins.count(Team.TEAM1), wins.count(Team.TEAM2)) == (played.team1_score, played.team2_score)
        assert (played.team1_score, played.team2_score, played.winner) == (
            expected.team1_score, expected.team2_score, expected.winner,
        )  # fmt: skip
        assert played.missing_rounds
        lines = [{line.player_id: line.kills for line in one.ledger.lines()} for one in (expected, played)]
        assert lines[0] == lines[1], "all rounds that count were played after the restore or before the loss"


@pytest.mark.parametrize("game", some_of(range(len(GAMES)), 4))
def test_match_whose_end_is_lost_ends_with_a_result(game: int) -> None:
    for whole, lossy in read_without(game, b"Game Over"):
        for expected, played in zip(whole.match.maps, lossy.match.maps, strict=True):
            assert played.is_finished
            assert played.winner in (None, expected.winner)
            is_open = played.winner is None
            assert is_open or (played.team1_score, played.team2_score) == (expected.team1_score, expected.team2_score)
        assert lossy.match.is_log_complete is False
        assert lossy.match.outcome is not None
        if len(whole.match.maps) == 1:  # the winner of a series may depend on the map, and is not guessed
            assert lossy.match.outcome.is_finished
