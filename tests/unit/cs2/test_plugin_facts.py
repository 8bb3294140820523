"""A plugin's reports beside the log: each fact once, and the log first."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.events import RoundEndReason
from matchpod.core.model import Side, Team
from matchpod.cs2 import plugin_facts
from matchpod.cs2.map_flow import PATIENCE_MS
from matchpod.cs2.matchzy import GoingLive, MapResult, PlayerReport, Report, RoundEnd, SeriesEnd
from matchpod.cs2.plugin_facts import PluginFacts

from .server_log import MAP, ServerLog, id64

RESULT = MapResult("27", 1, 13, 9, Team.TEAM1)
SERIES_END = SeriesEnd("27", 1, 0, Team.TEAM1)


def round_end(number: int = 1, mvps: int | None = 1, map_number: int = 1, score: tuple[int, int] = (1, 0)) -> RoundEnd:
    player = PlayerReport(player_id=id64(1), name="Ann", team=Team.TEAM1, mvps=mvps)
    return RoundEnd("27", map_number, number, Side.CT, RoundEndReason.CTS_WIN, *score, (player,))


class Both:
    """A server with its plugin."""

    def __init__(self) -> None:
        self.log = ServerLog().goes_live()
        self.flow = self.log.interpreter.flow
        self.plugin = PluginFacts()

    def report(self, report: Report) -> list[ev.GameEvent]:
        return self.plugin.read(report, self.log.now, self.flow, map_number=1)

    def settle(self, after_ms: int = PATIENCE_MS) -> list[ev.GameEvent]:
        out: list[ev.GameEvent] = []
        self.flow.settle(self.log.now + after_ms, out)
        return out


def ended(events: list[ev.GameEvent]) -> tuple[int, int]:
    (event,) = events
    assert isinstance(event, ev.MapEnded)
    return event.team1_score, event.team2_score


def test_the_plugin_names_the_mvp() -> None:
    both = Both()
    assert both.report(round_end()) == [ev.MvpNamed(both.log.now, 1, id64(1), 1)]


def test_a_report_that_comes_twice_is_taken_once() -> None:
    both = Both()
    both.report(round_end())
    assert both.report(round_end()) == []


def test_reports_of_another_map_and_without_a_number_add_nothing() -> None:
    both = Both()
    assert both.report(round_end(map_number=2)) == []
    assert both.report(round_end(2, mvps=None)) == []
    assert both.report(MapResult("27", 2, 13, 9, Team.TEAM1)) == []
    assert both.report(GoingLive("27", 1)) == []
    assert both.flow.next_deadline_ms() is None


def test_a_claimed_end_waits_for_the_log_and_then_stands_alone() -> None:
    both = Both()
    assert both.report(RESULT) == []
    assert both.flow.next_deadline_ms() == both.log.now + PATIENCE_MS
    assert both.settle(PATIENCE_MS - 1) == []
    assert both.settle() == [ev.MapEnded(both.log.now, MAP, 13, 9, is_complete=False)]
    assert both.settle() == []


def test_the_log_that_ends_the_map_itself_ends_it_alone() -> None:
    both = Both()
    both.report(MapResult("27", 1, 1, 0, Team.TEAM1))
    both.log.round_end("CT").game_over()
    assert len(both.log.all(ev.MapEnded)) == 1
    assert both.settle() == []


def test_a_claim_that_the_log_contradicts_by_playing_on_is_forgotten() -> None:
    both = Both()
    both.report(RESULT)
    both.log.plays("CT")
    assert both.settle() == []


def test_the_next_map_is_a_second_witness_of_a_claimed_end() -> None:
    both = Both()
    both.report(RESULT)
    both.log.load("de_dust2")
    assert [type(event) for event in both.log.events[-2:]] == [ev.MapEnded, ev.MapLoading]


def test_a_claim_that_comes_after_the_next_map_ends_the_last_one() -> None:
    both = Both()
    both.log.plays("CT").load("de_dust2")
    assert ended(both.report(RESULT)) == (13, 9)
    assert both.report(SERIES_END) == []


def test_the_end_of_the_series_is_an_end_of_the_map_with_the_score_of_the_log() -> None:
    both = Both()
    both.log.plays("CT", "TERRORIST", "CT")
    assert both.report(SERIES_END) == []
    assert ended(both.settle()) == (2, 1)


@pytest.mark.parametrize("sides", [("TERRORIST",), ("CT", "TERRORIST")])
def test_the_end_of_the_series_with_another_winner_than_the_score_of_the_log_ends_nothing(
    sides: tuple[str, ...],
) -> None:
    both = Both()
    both.log.plays(*sides)
    both.report(SERIES_END)
    assert both.settle() == []


def test_the_end_of_the_series_does_not_replace_the_score_of_the_map() -> None:
    both = Both()
    both.report(RESULT)
    both.report(SERIES_END)
    assert ended(both.settle()) == (13, 9)


def test_the_plugin_is_the_second_witness_of_a_game_over() -> None:
    both = Both()
    both.log.plays("CT").game_over(score=(13, 9))
    assert ended(both.report(RESULT)) == (13, 9)


def test_the_plugin_turns_a_score_round_that_the_log_left_open() -> None:
    both = Both()
    both.log.game_over(score=(9, 13))
    assert ended(both.report(RESULT)) == (13, 9)


def test_a_surrender_stays_with_the_side_that_surrendered_when_the_plugin_turns_the_score() -> None:
    both = Both()
    both.log.plays("CT").round_end("TERRORIST", "CTs_Surrender").game_over(score=(9, 13))
    (event,) = both.report(RESULT)
    assert isinstance(event, ev.MapEnded)
    assert event.winner is Team.TEAM1


def test_the_plugin_does_not_change_the_numbers_of_the_log() -> None:
    both = Both()
    both.log.plays("CT").game_over(score=(8, 2))
    assert ended(both.report(RESULT)) == (8, 2)


def test_the_score_of_a_single_round_turns_nothing() -> None:
    # A late report may be about an attempt at the round that a restore took back.
    both = Both()
    both.log.plays("CT")
    assert not any(isinstance(event, ev.SidesSwapped) for event in both.report(round_end(1, score=(0, 1))))


def test_a_claim_about_a_map_that_is_over_is_nothing() -> None:
    both = Both()
    both.log.round_end("CT").game_over()
    both.report(RESULT)
    assert both.flow.next_deadline_ms() is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_facts, "MAX_REPORTS_KEPT", 3)
    both = Both()
    for number in range(20):
        both.report(round_end(number))
    assert len(both.plugin.taken) == 3


def test_the_winner_of_a_series_is_not_the_winner_of_a_map_with_others_missing() -> None:
    both = Both()
    both.log.plays("CT", "TERRORIST", "CT")
    both.plugin.read(SeriesEnd("27", 2, 1, Team.TEAM1), both.log.now, both.flow, map_number=1, maps_won=1)
    assert both.settle() == []


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (GoingLive("27", 2), [ev.LiveReported(5, 2)]),
        (round_end(map_number=3), [ev.LiveReported(5, 3)]),
        (RESULT, [ev.ResultReported(5, 1, 13, 9)]),
        (SeriesEnd("27", 1, 2, Team.TEAM2), [ev.SeriesReported(5, 1, 2)]),
        (SeriesEnd("27", 1, 0, Team.TEAM2), []),
        (SeriesEnd("27", 1, 1, None), []),
    ],
)
def test_what_the_plugin_says_of_the_series_is_passed_on(report: Report, words: list[ev.GameEvent]) -> None:
    assert plugin_facts.series_words(report, 5) == words
