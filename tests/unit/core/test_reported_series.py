"""Maps whose end was lost on the way: the series goes on under the right number, and no winner is made up."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core import series
from matchpod.core.effects import CancelMatch, CancelReason, EndMatch, LoadMap, StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import SeriesFormat, Side, Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.result import build_result
from matchpod.core.result_shapes import Score, SeriesResult
from matchpod.core.timeline import Timeline
from matchpod.core.timeline_items import MapEndItem, MapLiveItem
from matchpod.core.timers import SERIES_PATIENCE_MS
from tests.unit.core.match_builder import ANN, BEN, MAPS, Story, live_duel

BO3, BO5 = SeriesFormat.BO3, SeriesFormat.BO5
ONE, TWO, TIE = Winner.TEAM1, Winner.TEAM2, Winner.TIE
PATIENCE_S = SERIES_PATIENCE_MS / 1000


class Outage(Story):
    """Ann and Ben play, and a part of it is not told."""

    @classmethod
    def of(cls, series_format: SeriesFormat = BO3) -> Outage:
        story = cls(live_duel(series_format).match.settings)
        story.join(ANN, BEN)
        story.live()
        story.score(3, 5)
        return story

    def score(self, team1: int, team2: int) -> None:
        decided = ev.RoundDecided(self.now_ms, team1 + team2, None, None, ev.RoundEndReason.UNKNOWN, team1, team2)
        self.tell(decided)

    def begins(self, number: int) -> list[object]:
        return [*self.tell(ev.LiveReported(self.now_ms, number))]

    def result(self, number: int, team1: int, team2: int) -> list[object]:
        return [*self.tell(ev.ResultReported(self.now_ms, number, team1, team2))]

    def over(self, team1: int, team2: int) -> list[object]:
        return [*self.tell(ev.SeriesReported(self.now_ms, team1, team2))]

    def winners(self) -> list[Winner | None]:
        return [played.winner for played in self.match.maps]

    def numbers(self) -> list[tuple[int, str]]:
        return [(played.number, played.name) for played in self.match.maps]


def test_a_later_map_that_the_plugin_begins_closes_the_one_before_without_a_winner() -> None:
    story = Outage.of()
    assert story.begins(2) == []
    story.live(MAPS[1])
    first = story.match.maps[0]
    assert (first.status, first.winner, first.team1_score, first.team2_score) == (MapStatus.FINISHED, None, 3, 5)
    assert not first.ledger.is_complete
    assert story.numbers() == [(1, MAPS[0]), (2, MAPS[1])]
    assert (story.match.phase, story.match.series_score) == (Phase.LIVE, (0, 0))


def test_the_map_that_loads_after_lost_lines_is_known_by_its_name() -> None:
    story = Outage.of()
    story.load(MAPS[1])  # and nobody was seen leaving the first
    story.live(MAPS[1])
    assert story.numbers() == [(1, MAPS[0]), (2, MAPS[1])]


def test_a_map_that_begins_anew_under_another_name_is_the_same_map_where_nothing_was_lost() -> None:
    story = Outage.of()
    story.change_map(MAPS[1], ANN, BEN)
    story.live(MAPS[1])
    assert story.numbers() == [(1, MAPS[1])]


def test_a_map_that_the_plugin_begins_again_is_the_same_map() -> None:
    story = Outage.of()
    story.load(MAPS[0])
    story.begins(1)
    story.live(MAPS[0])
    assert story.numbers() == [(1, MAPS[0])]


def test_the_roster_starts_the_map_that_was_loaded_and_not_the_lost_one() -> None:
    story = Outage.of()
    story.load(MAPS[1])
    story.tell(ev.WarmupBegan(story.now_ms))
    assert story.join(ANN, BEN) == [StartPlay(2)]
    assert story.winners() == [None]


def test_a_map_of_the_same_name_is_told_apart_when_the_plugin_counts_it() -> None:
    story = Outage.of()
    story.load(MAPS[0])
    story.live(MAPS[0])
    assert story.numbers() == [(1, MAPS[0])]
    story.score(1, 0)
    story.begins(2)
    assert story.numbers() == [(1, MAPS[0]), (2, MAPS[0])]
    assert [(one.team1_score, one.team2_score) for one in story.match.maps] == [(3, 5), (1, 0)]
    assert [one.status for one in story.match.maps] == [MapStatus.FINISHED, MapStatus.LIVE]


def test_a_map_of_the_same_name_is_told_apart_by_its_result() -> None:
    story = Outage.of()
    story.load(MAPS[0])
    story.live(MAPS[0])
    story.end_map(13, 5)
    story.result(2, 13, 5)
    assert story.winners() == [None, ONE]


def test_words_on_maps_that_no_series_has_are_nothing() -> None:
    story = Outage.of()
    story.begins(4)
    story.result(4, 13, 0)
    story.over(3, 0)
    story.over(1, 0)
    story.live(MAPS[0])
    assert story.numbers() == [(1, MAPS[0])]
    assert story.match.reported.score is None


def test_a_late_word_on_the_map_that_is_live_is_nothing() -> None:
    story = Outage.of()
    story.begins(1)
    story.load(MAPS[1])
    story.live(MAPS[1])
    assert story.numbers() == [(1, MAPS[0]), (2, MAPS[1])]


def test_the_result_of_the_lost_map_fills_it_in() -> None:
    story = Outage.of()
    story.begins(2)
    story.live(MAPS[1])
    story.result(1, 5, 13)
    assert (story.winners(), story.match.series_score) == ([TWO, None], (0, 1))
    assert story.match.maps[0].team2_score == 13
    assert story.end_map(5, 13) == [EndMatch()]


def test_a_result_that_came_before_the_next_map_began_is_remembered() -> None:
    story = Outage.of()
    story.result(1, 5, 13)
    story.begins(2)
    story.live(MAPS[1])
    assert story.winners() == [TWO, None]


def test_a_result_of_a_map_that_was_restored_is_forgotten() -> None:
    story = Outage.of()
    story.result(1, 5, 13)
    story.restore(4, 2, 2)
    story.begins(2)
    story.live(MAPS[1])
    assert story.winners() == [None, None]


@pytest.mark.parametrize(
    ("second", "final", "first"),
    [((13, 5), (2, 0), ONE), ((5, 13), (0, 2), TWO)],
)
def test_the_end_of_the_series_tells_who_won_the_lost_map(
    second: tuple[int, int], final: tuple[int, int], first: Winner
) -> None:
    story = Outage.of()
    story.begins(2)
    story.live(MAPS[1])
    assert story.end_map(*second) == []  # whether another map follows is the plugin's to say
    assert (story.match.phase, story.match.map_number) == (Phase.BETWEEN_MAPS, 3)
    assert story.over(*final) == [EndMatch()]
    assert (story.match.winner, story.match.series_score) == (first, final)
    assert story.winners() == [first, first]


def test_the_end_of_the_series_tells_a_lost_tie_too() -> None:
    story = Outage.of()
    story.end_map(13, 5)
    story.live(MAPS[1])
    story.load(MAPS[2])
    story.live(MAPS[2])
    assert story.end_map(13, 5) == []
    assert story.over(2, 0) == [EndMatch()]
    assert story.winners() == [ONE, TIE, ONE]


def test_an_end_of_the_series_that_came_before_the_log_ends_the_last_map_with_it() -> None:
    story = Outage.of()
    story.begins(2)
    story.live(MAPS[1])
    assert story.over(2, 0) == []
    assert story.end_map(13, 5) == [EndMatch()]
    assert story.winners() == [ONE, ONE]


def test_a_series_that_is_won_waits_for_the_plugin_to_say_by_how_much() -> None:
    story = Outage.of()
    for number in (2, 3):
        story.begins(number)
        story.live(MAPS[number - 1])
        assert story.end_map(13, 5) == []
    assert story.match.next_deadline_ms() == story.now_ms + SERIES_PATIENCE_MS
    assert story.over(2, 1) == [EndMatch()]
    assert (story.match.winner, story.match.series_score) == (ONE, (2, 1))
    assert story.winners() == [TWO, ONE, ONE]


def test_a_series_that_is_won_is_over_when_the_plugin_stays_silent() -> None:
    story = Outage.of()
    for number in (2, 3):
        story.begins(number)
        story.live(MAPS[number - 1])
        story.end_map(13, 5)
    assert story.wait(PATIENCE_S) == [EndMatch()]
    assert (story.match.winner, story.match.series_score) == (ONE, (2, 0))
    assert story.winners() == [None, ONE, ONE]


def test_all_left_ends_a_series_of_which_enough_is_known() -> None:
    story = Outage.of()
    story.over(2, 0)
    story.leave(ANN, BEN)
    story.match.reported.over_since_ms = None  # the world is so fast that this comes first
    assert story.wait(30) == [EndMatch()]
    assert story.match.winner is ONE


def test_a_series_of_which_nobody_tells_the_end_is_canceled() -> None:
    story = Outage.of()
    story.begins(2)
    story.live(MAPS[1])
    story.end_map(13, 5)
    story.leave(ANN, BEN)
    assert story.wait(121) == [CancelMatch(CancelReason.ALL_PLAYERS_LEFT)]
    assert story.match.winner is None


def test_whole_maps_that_were_not_told_are_in_their_place() -> None:
    story = Outage.of(BO5)
    story.begins(4)
    story.live(MAPS[3])
    assert story.numbers() == [(1, MAPS[0]), (2, MAPS[1]), (3, MAPS[2]), (4, MAPS[3])]
    assert [one.started_at_ms is None for one in story.match.maps] == [False, True, True, False]
    assert story.winners() == [None, None, None, None]


def test_a_series_that_ended_while_an_earlier_map_is_live_ends_after_some_silence() -> None:
    story = Outage.of()
    story.end_map(13, 5)
    story.live(MAPS[1])
    assert story.over(2, 1) == []
    assert story.wait(PATIENCE_S - 1) == []
    assert story.wait(1) == [EndMatch()]
    assert (story.match.winner, story.match.series_score) == (ONE, (2, 1))
    assert story.winners() == [ONE, None, None]  # one each, and nobody knows in which order
    result = build_result(story.match)
    assert isinstance(result, SeriesResult)
    assert (result.winner, result.team1.series_score, result.team2.series_score) == (ONE, 2, 1)
    assert [(entry.map_number, entry.winner) for entry in result.maps] == [(1, ONE), (2, None), (3, None)]


def test_a_log_that_has_something_to_tell_is_waited_for() -> None:
    story = Outage.of()
    story.over(2, 0)
    story.wait(PATIENCE_S - 1)
    story.tell(ev.RoundStarted(story.now_ms, 9, (ANN,), (BEN,), Side.CT))
    assert story.wait(PATIENCE_S - 1) == []
    assert story.wait(1) == [EndMatch()]


def test_no_map_is_begun_behind_the_last_one() -> None:
    story = Outage.of()
    story.begins(3)
    story.live(MAPS[2])
    assert story.end_map(13, 5) == []
    story.live(MAPS[0])
    assert (len(story.match.maps), story.match.phase) == (3, Phase.BETWEEN_MAPS)
    assert story.join(ANN, BEN) == []


def test_an_undisturbed_series_asks_for_its_next_map_as_ever() -> None:
    story = Outage.of()
    story.result(1, 13, 5)
    assert story.end_map(13, 5) == [LoadMap(2, MAPS[1])]
    story.begins(2)
    story.live(MAPS[1])
    story.over(2, 0)
    assert story.end_map(13, 5) == [EndMatch()]
    assert story.winners() == [ONE, ONE]


def test_wins_left_are_those_of_no_known_map() -> None:
    assert series.wins_left(BO3, (2, 1), [ONE]) == (1, 1)
    assert series.wins_left(BO3, (2, 0), [TIE, ONE]) == (1, 0)
    assert series.wins_left(BO3, (0, 2), [ONE]) is None
    assert series.wins_left(BO3, (2, 0), [TIE, TIE]) is None


def test_maps_have_a_common_winner_only_if_all_went_one_way() -> None:
    assert series.common_winner((2, 0), 2) is ONE
    assert series.common_winner((0, 1), 1) is TWO
    assert series.common_winner((0, 0), 1) is TIE
    assert series.common_winner((1, 1), 2) is None
    assert series.common_winner((1, 0), 2) is None
    assert series.common_winner((1, 1), 1) is None
    assert series.common_winner((0, 0), 0) is None


def test_the_timeline_of_a_lost_map_ends_without_a_winner_before_the_next_begins() -> None:
    story, timeline = Outage.of(), Timeline()
    timeline.look(story.match)
    story.load(MAPS[1])
    live = ev.MapLive(story.now_ms, MAPS[1], story.now_ms, Side.CT)
    story.tell(live)
    timeline.follow(live, story.match)
    told = [(one.map_number, one.item) for one in timeline.take()]
    number, end = told[0]
    assert isinstance(end, MapEndItem)
    assert (number, end.status, end.winner, end.score) == (1, MapStatus.FINISHED, None, Score(3, 5))
    assert [number for number, _ in told[1:]] == [2] * (len(told) - 1)
    assert isinstance(told[-1][1], MapLiveItem)


def test_nothing_is_told_of_a_map_behind_the_last_one() -> None:
    story, timeline = Outage.of(), Timeline()
    story.begins(3)
    story.live(MAPS[2])
    story.end_map(13, 5)
    timeline.look(story.match)
    timeline.take()
    chat = ev.ChatSaid(story.now_ms, ANN, "Ann", False, "gg")
    story.tell(chat)
    timeline.follow(chat, story.match)
    assert timeline.take() == []
