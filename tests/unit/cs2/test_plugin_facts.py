"""A plugin's reports beside the log: each fact once, and the log first."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.events import RoundEndReason
from matchpod.core.model import Side, Team
from matchpod.cs2 import plugin_facts
from matchpod.cs2.matchzy import GoingLive, MapResult, PlayerReport, Report, RoundEnd, SeriesEnd
from matchpod.cs2.plugin_facts import CLAIM_PATIENCE_MS, PluginFacts

from .server_log import MAP, ServerLog, id64

RESULT = MapResult("27", 1, 13, 9, Team.TEAM1)
SERIES_END = SeriesEnd("27", 1, 0, Team.TEAM1)


def round_end(number: int = 1, mvps: int | None = 1, map_number: int = 1) -> RoundEnd:
    player = PlayerReport(player_id=id64(1), name="Ann", team=Team.TEAM1, mvps=mvps)
    return RoundEnd("27", map_number, number, Side.CT, RoundEndReason.CTS_WIN, 1, 0, (player,))


class Both:
    """A server with its plugin."""

    def __init__(self) -> None:
        self.log = ServerLog().goes_live()
        self.plugin = PluginFacts()

    def report(self, report: Report) -> list[ev.GameEvent]:
        return self.plugin.read(report, self.log.now, self.log.interpreter, map_number=1)

    def settle(self, after_ms: int = CLAIM_PATIENCE_MS) -> list[ev.GameEvent]:
        return self.plugin.settle(self.log.now + after_ms, self.log.interpreter)


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
    assert both.plugin.next_deadline_ms() is None


def test_a_claimed_end_waits_for_the_log_and_then_stands_alone() -> None:
    both = Both()
    assert both.report(RESULT) == []
    assert both.plugin.next_deadline_ms() == both.log.now + CLAIM_PATIENCE_MS
    assert both.settle(CLAIM_PATIENCE_MS - 1) == []
    assert both.settle() == [ev.MapEnded(both.log.now + CLAIM_PATIENCE_MS, MAP, 13, 9, is_complete=False)]
    assert both.settle() == []


def test_the_log_that_ends_the_map_itself_ends_it_alone() -> None:
    both = Both()
    both.report(RESULT)
    both.log.round_end("CT").game_over()
    assert len(both.log.all(ev.MapEnded)) == 1
    assert both.settle() == []


def test_a_log_that_was_heard_in_time_takes_the_claim_back() -> None:
    both = Both()
    both.report(RESULT)
    both.plugin.log_ended()
    assert both.plugin.next_deadline_ms() is None


def test_the_end_of_the_series_is_an_end_of_the_map_with_the_score_of_the_log() -> None:
    both = Both()
    both.log.plays("CT", "TERRORIST", "CT")
    assert both.report(SERIES_END) == []
    (ended,) = both.settle()
    assert isinstance(ended, ev.MapEnded)
    assert (ended.team1_score, ended.team2_score) == (2, 1)


def test_the_end_of_the_series_does_not_replace_the_score_of_the_map() -> None:
    both = Both()
    both.report(RESULT)
    both.report(SERIES_END)
    (ended,) = both.settle()
    assert isinstance(ended, ev.MapEnded)
    assert (ended.team1_score, ended.team2_score) == (13, 9)


def test_the_plugin_is_the_second_witness_of_a_game_over() -> None:
    both = Both()
    both.log.plays("CT").game_over(score=(13, 9))
    (ended,) = both.report(RESULT)
    assert isinstance(ended, ev.MapEnded)


def test_a_claim_about_a_map_that_is_not_live_is_nothing() -> None:
    both = Both()
    both.log.round_end("CT").game_over()
    both.report(RESULT)
    assert both.plugin.next_deadline_ms() is None


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_facts, "MAX_REPORTS_KEPT", 3)
    both = Both()
    for number in range(20):
        both.report(round_end(number))
    assert len(both.plugin.taken) == 3
