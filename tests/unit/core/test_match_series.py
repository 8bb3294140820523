"""A match over several maps: what follows a map, who starts the next, and what a restored backup takes back."""

from __future__ import annotations

from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, LoadMap, StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import SeriesFormat, Side, Team, Winner
from matchpod.core.played_map import MapStatus
from tests.unit.core.match_builder import ANN, BEN, MAPS, Story, live_duel

BO3 = SeriesFormat.BO3


def test_undecided_series_loads_the_next_map() -> None:
    story = live_duel(BO3)
    assert story.end_map(13, 5) == [LoadMap(2, MAPS[1])]
    match = story.match
    assert (match.phase, match.map_number) == (Phase.BETWEEN_MAPS, 2)
    assert [played.status for played in match.maps] == [MapStatus.FINISHED]


def test_players_who_return_start_the_next_map() -> None:
    story = live_duel(BO3)
    story.end_map()
    assert story.change_map(MAPS[1], ANN, BEN) == [StartPlay(2)]
    story.live(MAPS[1])
    assert [(played.number, played.name) for played in story.match.maps] == [(1, MAPS[0]), (2, MAPS[1])]
    assert story.match.current_map.names == {ANN: "name of 1", BEN: "name of 2"}


def test_moving_about_on_the_old_map_does_not_start_the_next() -> None:
    story = live_duel(BO3)
    story.end_map()
    assert story.take_side(ANN, Side.T) + story.take_side(BEN, Side.CT) + story.wait(30) == []
    assert story.match.phase is Phase.BETWEEN_MAPS


def test_map_change_whose_loading_line_was_lost_still_starts_the_next_map() -> None:
    story = live_duel(BO3)
    story.end_map()
    assert story.join(ANN, BEN) == [StartPlay(2)]


def test_next_map_that_goes_live_by_itself_is_live() -> None:
    story = live_duel(BO3)
    story.end_map()
    story.live(MAPS[1])
    assert (story.match.phase, story.match.current_map.number) == (Phase.LIVE, 2)


def test_player_who_leaves_before_the_second_map_is_waited_for() -> None:
    story = live_duel(BO3)
    story.end_map()
    story.change_map(MAPS[1], ANN, BEN)
    story.leave(BEN)
    assert (story.match.phase, story.match.map_number) == (Phase.WARMUP, 2)
    assert story.wait(600) == []
    assert story.join(BEN) == [StartPlay(2)]


def test_next_map_is_asked_for_again_until_one_loads() -> None:
    story = live_duel(BO3)
    story.end_map()
    assert story.wait(60) == [LoadMap(2, MAPS[1])]
    story.load(MAPS[1])
    story.connect(ANN)
    assert story.wait(60) == []


def test_series_ends_when_it_is_clinched() -> None:
    story = live_duel(BO3)
    story.end_map(5, 13)
    story.live(MAPS[1])
    assert story.end_map(11, 13) == [EndMatch()]
    assert story.match.winner is Winner.TEAM2
    assert story.match.map_winners == [Winner.TEAM2, Winner.TEAM2]


def test_series_goes_to_its_last_map_when_it_is_even() -> None:
    story = live_duel(BO3)
    story.end_map(13, 5)
    story.live(MAPS[1])
    assert story.end_map(5, 13) == [LoadMap(3, MAPS[2])]
    story.live(MAPS[2])
    assert story.end_map(12, 12) == [EndMatch()]
    assert story.match.winner is Winner.TIE


def test_backup_restored_between_maps_opens_the_last_map_again() -> None:
    story = live_duel(BO3)
    story.end_map()
    assert story.restore(10, 6, 4) == []
    current = story.match.current_map
    assert (story.match.phase, current.status, current.team1_score) == (Phase.LIVE, MapStatus.LIVE, 6)
    assert not story.match.presence.is_map_over
    assert story.wait(60) == []
    assert story.end_map(5, 13) == [LoadMap(2, MAPS[1])]
    assert story.match.map_winners == [Winner.TEAM2]


def test_backup_restored_during_play_goes_on_live() -> None:
    story = live_duel()
    story.restore(4, 3, 1)
    assert (story.match.phase, story.match.current_map.team1_score) == (Phase.LIVE, 3)


def test_restore_line_in_the_warmup_of_the_next_map_leaves_the_last_map_alone() -> None:
    story = live_duel(BO3)
    story.end_map()
    story.change_map(MAPS[1], ANN, BEN)
    story.restore(0, 0, 0)
    assert story.match.maps[0].is_finished
    assert story.match.phase is Phase.STARTING


def played_round() -> Story:
    """Ann and Ben have played one round and the map is over."""
    story = live_duel(BO3)
    story.tell(ev.RoundStarted(story.now_ms, 1, (ANN,), (BEN,), Side.CT))
    story.tell(ev.RoundDecided(story.now_ms, 1, Team.TEAM1, Side.CT, ev.RoundEndReason.CTS_WIN, 1, 0))
    story.end_map(1, 0)
    return story


def mvps_of_ann(story: Story) -> list[int | None]:
    return [line.mvps for line in story.match.maps[0].ledger.lines() if line.player_id == ANN]


def test_late_mvp_of_the_last_round_reaches_the_map_that_ended() -> None:
    story = played_round()
    story.tell(ev.MvpNamed(story.now_ms, 1, ANN, 1))
    assert mvps_of_ann(story) == [1]


def test_mvp_named_after_the_next_map_loads_is_not_one_of_the_old_map() -> None:
    story = played_round()
    before = mvps_of_ann(story)
    story.load(MAPS[1])
    story.tell(ev.MvpNamed(story.now_ms, 1, ANN, 1))
    assert mvps_of_ann(story) == before
