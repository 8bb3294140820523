"""Tests of plugin reports: each fact is applied once, and the log has priority."""

from __future__ import annotations

import pytest

from cs2_protocol.game import RoundEndReason, Side, Team
from cs2_protocol.matchzy import GoingLive, MapResult, PlayerReport, Report, RoundEndReport, SeriesEnd
from matchpod.core import events as ev
from matchpod.cs2 import plugin_facts
from matchpod.cs2.map_flow import CONFIRM_TIMEOUT_MS
from matchpod.cs2.plugin_facts import PluginFacts
from tests.unit.cs2.server_log import MAP, ServerLog, id64

RESULT = MapResult("27", 1, 13, 9, Team.TEAM1)
SERIES_END = SeriesEnd("27", 1, 0, Team.TEAM1)


def round_end(
    number: int = 1, mvps: int | None = 1, map_number: int = 1, score: tuple[int, int] = (1, 0)
) -> RoundEndReport:
    stats = {} if mvps is None else {"mvp": mvps}
    player = PlayerReport(player_id=id64(1), name="Ann", team=Team.TEAM1, stats=stats)
    return RoundEndReport("27", map_number, number, Side.CT, RoundEndReason.CTS_WIN, *score, (player,))


class LogAndPlugin:
    def __init__(self) -> None:
        self.log = ServerLog().go_live()
        self.flow = self.log.interpreter.flow
        self.plugin = PluginFacts()

    def report(self, report: Report) -> list[ev.GameEvent]:
        return self.plugin.read(report, self.log.now, self.flow, map_number=1)

    def accept_end(self, after_ms: int = CONFIRM_TIMEOUT_MS) -> list[ev.GameEvent]:
        out: list[ev.GameEvent] = []
        self.flow.accept_unconfirmed_end(self.log.now + after_ms, out)
        return out


def ended(events: list[ev.GameEvent]) -> tuple[int, int]:
    (event,) = events
    assert isinstance(event, ev.MapEnded)
    return event.team1_score, event.team2_score


def test_mvp_is_read_from_the_plugin() -> None:
    server = LogAndPlugin()
    assert server.report(round_end()) == [ev.MvpNamed(server.log.now, 1, id64(1), 1)]


def test_repeated_report_is_applied_once() -> None:
    server = LogAndPlugin()
    server.report(round_end())
    assert server.report(round_end()) == []


def test_reports_of_another_map_or_without_mvp_add_nothing() -> None:
    server = LogAndPlugin()
    assert server.report(round_end(map_number=2)) == []
    assert server.report(round_end(2, mvps=None)) == []
    assert server.report(MapResult("27", 2, 13, 9, Team.TEAM1)) == []
    assert server.report(GoingLive("27", 1)) == []
    assert server.flow.next_deadline_ms() is None


def test_end_reported_by_the_plugin_alone_is_accepted_after_a_timeout() -> None:
    server = LogAndPlugin()
    assert server.report(RESULT) == []
    assert server.flow.next_deadline_ms() == server.log.now + CONFIRM_TIMEOUT_MS
    assert server.accept_end(CONFIRM_TIMEOUT_MS - 1) == []
    assert server.accept_end() == [ev.MapEnded(server.log.now, MAP, 13, 9, is_complete=False)]
    assert server.accept_end() == []


def test_map_ended_by_the_log_is_not_ended_again() -> None:
    server = LogAndPlugin()
    server.report(MapResult("27", 1, 1, 0, Team.TEAM1))
    server.log.round_end("CT").game_over()
    assert len(server.log.all(ev.MapEnded)) == 1
    assert server.accept_end() == []


def test_end_report_contradicted_by_further_rounds_is_dropped() -> None:
    server = LogAndPlugin()
    server.report(RESULT)
    server.log.play("CT")
    assert server.accept_end() == []


def test_next_map_confirms_an_end_report() -> None:
    server = LogAndPlugin()
    server.report(RESULT)
    server.log.load("de_dust2")
    assert [type(event) for event in server.log.events[-2:]] == [ev.MapEnded, ev.MapLoading]


def test_end_report_after_the_next_map_load_ends_the_previous_map() -> None:
    server = LogAndPlugin()
    server.log.play("CT").load("de_dust2")
    assert ended(server.report(RESULT)) == (13, 9)
    assert server.report(SERIES_END) == []


def test_series_end_ends_the_map_with_the_score_of_the_log() -> None:
    server = LogAndPlugin()
    server.log.play("CT", "TERRORIST", "CT")
    assert server.report(SERIES_END) == []
    assert ended(server.accept_end()) == (2, 1)


@pytest.mark.parametrize("sides", [("TERRORIST",), ("CT", "TERRORIST")])
def test_series_end_that_contradicts_the_score_of_the_log_is_ignored(
    sides: tuple[str, ...],
) -> None:
    server = LogAndPlugin()
    server.log.play(*sides)
    server.report(SERIES_END)
    assert server.accept_end() == []


def test_series_end_does_not_replace_the_map_result() -> None:
    server = LogAndPlugin()
    server.report(RESULT)
    server.report(SERIES_END)
    assert ended(server.accept_end()) == (13, 9)


def test_plugin_confirms_game_over() -> None:
    server = LogAndPlugin()
    server.log.play("CT").game_over(score=(13, 9))
    assert ended(server.report(RESULT)) == (13, 9)


def test_plugin_swaps_a_score_with_unknown_sides() -> None:
    server = LogAndPlugin()
    server.log.game_over(score=(9, 13))
    assert ended(server.report(RESULT)) == (13, 9)


def test_surrender_stays_with_its_side_when_the_plugin_swaps_the_score() -> None:
    server = LogAndPlugin()
    server.log.play("CT").round_end("TERRORIST", "CTs_Surrender").game_over(score=(9, 13))
    (event,) = server.report(RESULT)
    assert isinstance(event, ev.MapEnded)
    assert event.winner is Team.TEAM1


def test_plugin_does_not_change_the_score_of_the_log() -> None:
    server = LogAndPlugin()
    server.log.play("CT").game_over(score=(8, 2))
    assert ended(server.report(RESULT)) == (8, 2)


def test_score_of_a_single_round_does_not_swap_sides() -> None:
    # A late report may be about an attempt at the round that a restore has undone.
    server = LogAndPlugin()
    server.log.play("CT")
    assert not any(isinstance(event, ev.SidesSwapped) for event in server.report(round_end(1, score=(0, 1))))


def test_end_report_of_an_ended_map_is_ignored() -> None:
    server = LogAndPlugin()
    server.log.round_end("CT").game_over()
    server.report(RESULT)
    assert server.flow.next_deadline_ms() is None


def test_number_of_stored_keys_is_bounded() -> None:
    server = LogAndPlugin()
    server.plugin.applied.update(dict.fromkeys(map(str, range(plugin_facts.MAX_REPORTS_KEPT - 1))))
    for number in range(3):
        server.report(round_end(number))
    assert len(server.plugin.applied) == plugin_facts.MAX_REPORTS_KEPT
    assert next(iter(server.plugin.applied)) == "2", "the oldest are forgotten"


def test_series_winner_is_not_the_map_winner_if_other_maps_are_missing() -> None:
    server = LogAndPlugin()
    server.log.play("CT", "TERRORIST", "CT")
    server.plugin.read(SeriesEnd("27", 2, 1, Team.TEAM1), server.log.now, server.flow, map_number=1, maps_won=1)
    assert server.accept_end() == []


@pytest.mark.parametrize(
    ("report", "events"),
    [
        (GoingLive("27", 2), [ev.LiveReported(5, 2)]),
        (round_end(map_number=3), [ev.LiveReported(5, 3)]),
        (RESULT, [ev.ResultReported(5, 1, 13, 9)]),
        (SeriesEnd("27", 1, 2, Team.TEAM2), [ev.SeriesReported(5, 1, 2)]),
        (SeriesEnd("27", 1, 0, Team.TEAM2), []),
        (SeriesEnd("27", 1, 1, None), []),
    ],
)
def test_series_reports_become_events(report: Report, events: list[ev.GameEvent]) -> None:
    assert plugin_facts.series_events(report, 5) == events
