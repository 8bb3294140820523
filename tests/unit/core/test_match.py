"""A match from its first player to its end: start, maps of a series, outcome, detections."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core.effects import CancelMatch, EndMatch, Kick, StartPlay
from matchpod.core.match import TRANSITIONS, Match, Phase
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, Side, Team, TeamRoster, Winner
from matchpod.core.outcome import Outcome, OutcomeKind
from matchpod.core.played_map import MapStatus
from matchpod.core.presence import NOT_LISTED
from tests.unit.core.match_builder import ANN, BEN, CAT, EVE, MAPS, Story, deathmatch, duel, live_duel, open_match

BO3 = SeriesFormat.BO3


# --- start ------------------------------------------------------------------------------------------------------


def test_new_match_waits_on_its_first_map() -> None:
    match = Story(duel(BO3)).match
    assert (match.phase, match.map_number) == (Phase.WARMUP, 1)
    assert [(played.name, played.status) for played in match.maps] == [(MAPS[0], MapStatus.UPCOMING)]


def test_last_listed_player_to_join_starts_play() -> None:
    story = Story(duel())
    assert story.join(ANN) == []
    assert story.join(BEN) == [StartPlay(1)]
    assert story.match.phase is Phase.STARTING


def test_connected_players_who_still_load_do_not_start_play() -> None:
    story = Story(duel())
    story.connect(ANN)
    story.connect(BEN)
    assert story.enter(ANN) == []
    assert story.match.phase is Phase.WARMUP


def test_competitive_waits_for_sides() -> None:
    story = Story(duel())
    assert story.join(ANN) + story.connect(BEN) + story.enter(BEN) == []
    assert story.take_side(BEN, Side.T) == [StartPlay(1)]


def test_competitive_starts_without_sides_when_the_time_to_choose_is_over() -> None:
    story = Story(duel())
    for player in (ANN, BEN):
        story.connect(player)
        story.enter(player)
    assert story.match.next_deadline_ms() == story.now_ms + 20_000
    assert story.wait(19.9) == []
    assert story.wait(0.1) == [StartPlay(1)]


def test_deathmatch_starts_when_the_last_one_has_entered() -> None:
    story = Story(deathmatch(ANN, BEN))
    story.connect(ANN)
    story.connect(BEN)
    assert story.enter(ANN) == []
    assert story.enter(BEN) == [StartPlay(1)]


def test_start_is_asked_again_while_the_map_is_not_live() -> None:
    story = Story(duel())
    story.join(ANN, BEN)
    assert story.wait(59) == []
    assert story.wait(1) == [StartPlay(1)]
    assert story.wait(59) == []
    assert story.wait(1) == [StartPlay(1)]
    story.live()
    assert story.wait(120) == []


@pytest.mark.parametrize("is_map_change", [False, True])
def test_player_who_leaves_before_play_puts_the_match_back_to_warmup(is_map_change: bool) -> None:
    story = Story(duel())
    story.join(ANN, BEN)
    assert story.leave(ANN, is_map_change=is_map_change) == []
    assert story.match.phase is Phase.WARMUP
    assert story.wait(60) == []
    assert story.join(ANN) == [StartPlay(1)]


def test_map_that_loads_before_play_puts_the_match_back_to_warmup() -> None:
    story = Story(duel())
    story.join(ANN, BEN)
    story.load()
    assert story.match.phase is Phase.WARMUP
    assert story.join(ANN, BEN) == [StartPlay(1)]


def test_spectating_does_not_take_a_start_back() -> None:
    story = Story(duel())
    story.join(ANN, BEN)
    story.take_side(ANN, None)
    assert story.match.phase is Phase.STARTING


def test_without_a_roster_nothing_is_started_by_us() -> None:
    story = Story(open_match())
    assert story.join(ANN, BEN, CAT) == []
    assert story.wait(300) == []
    assert story.match.phase is Phase.WARMUP


@pytest.mark.parametrize("players", [(), (ANN,), (ANN, BEN)])
def test_map_that_goes_live_by_itself_is_live(players: tuple[str, ...]) -> None:
    story = Story(duel())
    story.join(*players)
    assert story.live("de_other") == []
    assert story.match.phase is Phase.LIVE
    assert (story.match.current_map.name, story.match.current_map.status) == ("de_other", MapStatus.LIVE)


def test_unlisted_player_is_kicked_at_every_step_and_never_counts() -> None:
    story = Story(duel())
    assert story.join(EVE) == [Kick(EVE, 1, NOT_LISTED)] * 3
    story.join(ANN, BEN)
    story.live()
    story.join(EVE)
    assert set(story.match.current_map.names) == {ANN, BEN}
    assert story.match.presence.ever_connected == [ANN, BEN]


def test_map_knows_the_names_of_those_who_were_there_before_it_went_live() -> None:
    story = Story(open_match())
    story.join(ANN, BEN)
    story.tell(ev.PlayerRenamed(story.now_ms, BEN, "benny"))
    story.tell(ev.RoundStarted(story.now_ms, 1, (CAT,), (), Side.CT))
    story.live()
    assert story.match.current_map.names == {ANN: "name of 1", BEN: "benny"}


# --- end --------------------------------------------------------------------------------------------------------


def test_end_of_a_bo1_ends_the_match() -> None:
    story = live_duel()
    assert story.end_map(13, 5) == [EndMatch()]
    match = story.match
    assert (match.phase, match.winner, match.map_number) == (Phase.OVER, Winner.TEAM1, 1)
    assert match.outcome == Outcome(kind=OutcomeKind.FINISHED, at_ms=story.now_ms)
    assert match.next_deadline_ms() is None


def test_winner_is_open_until_the_end() -> None:
    assert live_duel().match.winner is None


@pytest.mark.parametrize("match_type", [MatchType.CASUAL, MatchType.RETAKES, MatchType.CUSTOM])
def test_match_without_a_series_ends_with_its_map(match_type: MatchType) -> None:
    story = Story(open_match(match_type))
    story.join(ANN)
    story.live()
    assert story.end_map(2, 2) == [EndMatch()]
    assert story.match.winner is Winner.TIE


def test_map_end_of_another_map_counts_for_the_current_one() -> None:
    story = live_duel()
    assert story.end_map(13, 5, "de_other") == [EndMatch()]
    assert story.match.current_map.name == MAPS[0]


def test_map_end_is_ignored_when_nothing_is_live() -> None:
    story = Story(duel())
    assert story.end_map() == []
    story.join(ANN, BEN)
    assert story.end_map() == []
    assert story.match.current_map.status is MapStatus.UPCOMING


def test_map_that_loads_during_play_does_not_end_play() -> None:
    story = live_duel()
    story.change_map("de_other", ANN, BEN)
    assert story.match.phase is Phase.LIVE
    assert story.end_map() == [EndMatch()]


def test_deathmatch_ends_without_a_team_that_won() -> None:
    story = Story(deathmatch(ANN, BEN))
    story.join(ANN, BEN)
    story.live()
    assert story.end_map(30, 20) == [EndMatch()]
    assert story.match.winner is None


# --- cancel, teams, detections, snapshot ------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.OVER])
def test_cancel_works_in_every_phase_but_the_last(phase: Phase) -> None:
    story = live_duel(BO3)
    story.match.phase = phase
    assert story.match.cancel("server_lost", story.now_ms) == [CancelMatch("server_lost")]
    assert story.match.outcome == Outcome(kind=OutcomeKind.CANCELED, at_ms=story.now_ms, reason="server_lost")
    assert story.match.current_map.status is MapStatus.CANCELLED
    assert story.match.winner is None


def test_match_that_is_over_stays_as_it_is() -> None:
    story = live_duel()
    story.end_map()
    before = msgspec.msgpack.encode(story.match)
    assert story.join(EVE) + story.live() + story.end_map() + story.restore() + story.wait(10**6) == []
    assert story.match.cancel("canceled_by_user", story.now_ms) == []
    assert msgspec.msgpack.encode(story.match) == before


def test_team_is_that_of_the_roster_before_that_of_the_game() -> None:
    story = Story(duel())
    story.join(ANN)
    story.take_side(ANN, Side.T, Team.TEAM2)
    assert story.match.team_of(ANN) is Team.TEAM1
    assert story.match.team_of(EVE) is None


def test_without_a_roster_the_team_is_what_the_game_told() -> None:
    story = Story(open_match())
    story.take_side(ANN, Side.T, Team.TEAM2)
    assert story.match.team_of(ANN) is Team.TEAM2


def test_nobody_has_a_team_where_everyone_plays_for_himself() -> None:
    story = Story(deathmatch())
    story.take_side(ANN, Side.T, Team.TEAM2)
    assert story.match.team_of(ANN) is None


def suspect(story: Story, player: str, kind: str = "Aimbot") -> None:
    story.tell(ev.CheatSuspected(story.now_ms, player, kind, "why", "ak47"))


def test_detection_says_who_and_where() -> None:
    story = live_duel()
    story.tell(ev.RoundStarted(story.now_ms, 3, (ANN,), (BEN,), Side.CT))
    suspect(story, BEN)
    suspect(story, BEN)
    (found,) = story.match.detections
    assert (found.player_id, found.name, found.team) == (BEN, "name of 2", Team.TEAM2)
    assert (found.kind, found.reason, found.weapon) == ("Aimbot", "why", "ak47")
    assert (found.map_number, found.round_number, found.detected_at_ms) == (1, 3, story.now_ms)


def test_detection_of_a_player_who_left_keeps_his_name() -> None:
    story = live_duel()
    story.leave(BEN)
    suspect(story, BEN)
    assert story.match.detections[0].name == "name of 2"


def test_bots_and_unlisted_players_are_not_detected() -> None:
    story = live_duel()
    suspect(story, "BOT:Han")
    suspect(story, EVE)
    assert story.match.detections == []


def test_detection_belongs_to_the_old_map_until_the_next_one_loads() -> None:
    story = live_duel(BO3)
    story.tell(ev.RoundStarted(story.now_ms, 24, (ANN,), (BEN,), Side.CT))
    story.end_map()
    suspect(story, ANN)
    story.change_map(MAPS[1], ANN, BEN)
    suspect(story, ANN)
    assert [(found.map_number, found.round_number) for found in story.match.detections] == [(1, 24), (2, None)]


def test_live_match_survives_a_snapshot() -> None:
    story = live_duel(BO3)
    story.match.allocated(story.now_ms)
    story.tell(ev.RoundStarted(story.now_ms, 1, (ANN,), (BEN,), Side.CT))
    story.tell(ev.Kill(story.now_ms, ANN, BEN, "ak47", is_enemy=True))
    suspect(story, ANN)
    restored = msgspec.msgpack.decode(msgspec.msgpack.encode(story.match), type=Match)
    assert restored == story.match
    assert restored.apply(ev.MapEnded(story.now_ms, MAPS[0], 13, 5), story.now_ms) == story.end_map(13, 5)
    assert restored == story.match


def test_one_sided_roster_starts_when_that_side_is_complete() -> None:
    settings = GameSettings(
        match_type=MatchType.WINGMAN, maps=MAPS[:1], team1=TeamRoster("Reds", (ANN,)), team2=TeamRoster("Blues")
    )
    assert Story(settings).join(ANN) == [StartPlay(1)]


def test_no_way_leads_out_of_the_end() -> None:
    assert all(phase is not Phase.OVER for phase, _ in TRANSITIONS)
