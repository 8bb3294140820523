"""The timeline tells each thing once, on the map and in the round where it happened."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core import timeline as module
from matchpod.core import timeline_items as items
from matchpod.core.match import Phase
from matchpod.core.model import DmSubMode, MatchType, SeriesFormat, Side, Team, Winner
from matchpod.core.played_map import MapStatus
from matchpod.core.result import LAST_MS, anti_cheat_entry
from matchpod.core.result_shapes import Score
from matchpod.core.timeline import MAX_PEOPLE, MAX_TEXT_CHARS, Stamp, Timeline
from matchpod.core.timeline_items import Person

from .match_builder import ANN, BEN, CAT, EVE, MAPS, START_MS, deathmatch, open_match
from .told_story import ToldStory, seqs, told_duel

ANN_HERSELF = Person(steam_id=ANN, name="name of 1", team=Team.TEAM1)
BEN_HIMSELF = Person(steam_id=BEN, name="name of 2", team=Team.TEAM2)
SOMEBODY = Person(steam_id=None, name="", team=None)


# --- the flow of a map --------------------------------------------------------------------------------------------


def test_a_map_is_told_from_the_first_player_to_its_end_with_numbers_that_grow_by_one() -> None:
    story = told_duel()
    story.start_round()
    story.kill()
    story.decide()
    story.end_map()
    assert story.types() == [
        "player_connected", "player_connected", "map_live", "round_start", "kill", "round_end", "map_end",
    ]  # fmt: skip
    assert seqs(story) == [1, 2, 3, 4, 5, 6, 7]


def test_a_live_map_says_its_name_where_team1_stands_and_the_score() -> None:
    (live,) = told_duel().of(items.MapLiveItem)
    assert (live.map_name, live.team1_side, live.score, live.round_number) == (MAPS[0], Side.CT, Score(0, 0), None)


def test_a_map_that_was_joined_in_the_middle_begins_with_its_score() -> None:
    story = ToldStory(open_match(MatchType.COMPETITIVE))
    story.tell(ev.MapLive(START_MS, MAPS[0], START_MS, Side.T, rounds_played=7, team1_score=4, team2_score=3))
    (live,) = story.of(items.MapLiveItem)
    assert (live.score, live.round_number, live.team1_side) == (Score(4, 3), 7, Side.T)


def test_a_restarted_map_is_told_again() -> None:
    story = told_duel()
    story.start_round()
    story.live()
    assert story.types()[-3:] == ["map_live", "round_start", "map_live"]
    assert story.of(items.MapLiveItem)[-1].round_number is None


def test_rounds_have_their_number_reason_winner_and_score() -> None:
    story = told_duel()
    story.start_round(1)
    story.decide(1)
    story.start_round(2)
    (first, second) = story.of(items.RoundStartItem)
    assert (first.round_number, second.round_number, second.team1_side) == (1, 2, Side.CT)
    (end,) = story.of(items.RoundEndItem)
    assert (end.round_number, end.winner, end.winner_side) == (1, Team.TEAM1, Side.CT)
    assert (end.reason, end.score) == (ev.RoundEndReason.CTS_WIN, Score(1, 0))


def test_the_end_of_a_round_whose_start_was_lost_has_the_number_of_that_round() -> None:
    story = told_duel()
    story.decide(3, 2, 1)
    assert story.of(items.RoundEndItem)[0].round_number == 3


def test_the_teams_change_sides() -> None:
    story = told_duel()
    story.tell(ev.SidesSwapped(story.now_ms, Side.T))
    assert story.of(items.SideSwapItem)[0].team1_side is Side.T


def test_a_pause_begins_and_ends_once_however_often_the_server_says_so() -> None:
    story = told_duel()
    for event in (ev.Unpaused, ev.Paused, ev.Paused, ev.Unpaused, ev.Unpaused):
        story.tell(event(story.now_ms, "mp_pause_match"))
    assert story.types()[3:] == ["paused", "unpaused"]
    assert story.of(items.PausedItem)[0].by == "mp_pause_match"
    assert story.of(items.UnpausedItem)[0].by == "mp_pause_match"


def test_a_restart_ends_a_pause() -> None:
    story = told_duel()
    story.tell(ev.Paused(story.now_ms, "x"))
    story.live()
    story.tell(ev.Paused(story.now_ms, "x"))
    assert len(story.of(items.PausedItem)) == 2


def test_a_finished_map_ends_with_its_winner_and_score_at_the_time_it_ended() -> None:
    story = told_duel()
    story.start_round(18)
    story.end_map(13, 5)
    (end,) = story.of(items.MapEndItem)
    assert (end.status, end.winner, end.score) == (MapStatus.FINISHED, Winner.TEAM1, Score(13, 5))
    assert (end.round_number, end.timestamp) == (18, "2023-11-14T22:13:20.000Z")


def test_a_cancelled_map_ends_as_it_stood() -> None:
    story = told_duel()
    story.start_round()
    story.decide()
    story.match.cancel("canceled_by_user", story.now_ms)
    story.look()
    story.look()
    (end,) = story.of(items.MapEndItem)
    assert (end.status, end.winner, end.score) == (MapStatus.CANCELLED, None, Score(1, 0))


def test_a_map_that_was_never_live_has_no_end() -> None:
    story = ToldStory(open_match())
    story.join(ANN)
    story.match.cancel("canceled_by_user", story.now_ms)
    story.look()
    assert story.types() == ["player_connected"]


def test_a_deathmatch_ends_by_time_alone_and_has_no_score() -> None:
    story = ToldStory(deathmatch(ANN, BEN))
    story.join(ANN, BEN)
    story.live()
    story.kill()
    story.wait(900)
    assert story.match.phase is Phase.OVER
    assert story.types()[-3:] == ["map_live", "kill", "map_end"]
    (end,) = story.of(items.MapEndItem)
    assert (end.status, end.winner, end.score) == (MapStatus.FINISHED, None, None)
    assert story.of(items.KillItem)[0].killer == Person(steam_id=ANN, name="name of 1", team=None)


@pytest.mark.parametrize(
    ("mode", "side", "winner"), [(DmSubMode.FFA, None, None), (DmSubMode.TEAM, Side.CT, Team.TEAM1)]
)
def test_where_everyone_plays_for_himself_no_team_stands_anywhere_or_wins(
    mode: DmSubMode, side: Side | None, winner: Team | None
) -> None:
    story = ToldStory(msgspec.structs.replace(deathmatch(ANN, BEN), dm_sub_mode=mode))
    story.join(ANN, BEN)
    story.live()
    story.start_round()
    story.decide()
    story.tell(ev.SidesSwapped(story.now_ms, Side.CT))
    (live,), (start,) = story.of(items.MapLiveItem), story.of(items.RoundStartItem)
    (end,), (swap,) = story.of(items.RoundEndItem), story.of(items.SideSwapItem)
    assert (live.team1_side, start.team1_side, swap.team1_side) == (side, side, side)
    assert (end.winner, end.winner_side, end.score) == (winner, Side.CT, None)


def test_a_match_that_is_over_says_no_more() -> None:
    story = told_duel()
    story.end_map()
    story.chat()
    story.kill()
    story.leave(ANN)
    story.tell(ev.CheatSuspected(story.now_ms, ANN, "Aimbot", "late"))
    assert story.types()[-1] == "map_end"


# --- restored rounds ----------------------------------------------------------------------------------------------


def test_a_restored_round_is_an_item_and_takes_nothing_back() -> None:
    story = told_duel()
    story.start_round(1)
    story.decide(1)
    story.restore(0, 0, 0)
    story.start_round(1)
    assert story.types()[3:] == ["round_start", "round_end", "round_restored", "round_start"]
    (restored,) = story.of(items.RoundRestoredItem)
    assert (restored.rounds_kept, restored.score, restored.round_number) == (0, Score(0, 0), None)
    assert seqs(story) == list(range(1, 8))


def test_a_finished_map_that_is_opened_again_ends_again() -> None:
    story = told_duel(SeriesFormat.BO3)
    story.end_map(13, 5)
    story.restore(10, 6, 4)
    story.end_map(13, 11)
    assert story.types()[3:] == ["map_end", "round_restored", "map_end"]
    assert [end.score for end in story.of(items.MapEndItem)] == [Score(13, 5), Score(13, 11)]
    assert story.maps.keys() == {1}


def test_a_backup_that_nobody_could_restore_is_not_told() -> None:
    story = ToldStory(open_match())
    story.restore()
    assert story.maps == {}


# --- fights and the bomb ------------------------------------------------------------------------------------------


def test_a_kill_says_who_whom_how_and_in_which_round() -> None:
    story = told_duel()
    story.start_round(4)
    story.kill()
    (kill,) = story.of(items.KillItem)
    assert (kill.killer, kill.victim, kill.weapon, kill.distance) == (ANN_HERSELF, BEN_HIMSELF, "ak47", 512.5)
    assert (kill.headshot, kill.wallbang, kill.team_kill, kill.round_number) == (True, False, False, 4)


def test_every_mark_of_a_kill_has_its_field() -> None:
    story = told_duel()
    marks = {
        "is_wallbang": "wallbang",
        "is_through_smoke": "through_smoke",
        "is_blind": "attacker_blind",
        "is_noscope": "noscope",
        "is_in_air": "in_air",
        "is_headshot": "headshot",
    }
    for mark in marks:
        story.tell(ev.Kill(story.now_ms, ANN, BEN, "awp", True, **{mark: True}))
    for kill, field in zip(story.of(items.KillItem), marks.values(), strict=True):
        assert [name for name in marks.values() if getattr(kill, name)] == [field]
        assert kill.distance is None


def test_a_kill_after_the_decision_belongs_to_the_round_before() -> None:
    story = told_duel()
    story.start_round(1)
    story.decide(1)
    story.kill()
    assert story.of(items.KillItem)[0].round_number == 1


def test_a_kill_of_a_friend_is_one() -> None:
    story = told_duel()
    story.tell(ev.Kill(story.now_ms, ANN, BEN, "ak47", False))
    assert story.of(items.KillItem)[0].team_kill


def test_fights_before_a_map_counts_are_not_told() -> None:
    story = ToldStory(open_match())
    story.join(ANN, BEN)
    story.kill()
    story.tell(ev.BombExploded(story.now_ms))
    story.tell(ev.SidesSwapped(story.now_ms, Side.T))
    story.start_round()
    assert story.types() == ["player_connected", "player_connected"]


def test_a_bot_has_a_name_and_no_id_and_stands_with_its_team() -> None:
    story = ToldStory(open_match(MatchType.COMPETITIVE))
    story.join(ANN)
    story.live()
    story.tell(ev.RoundStarted(story.now_ms, 1, (ANN,), ("BOT:Han",), Side.CT))
    story.kill(ANN, "BOT:Han")
    (kill,) = story.of(items.KillItem)
    assert kill.victim == Person(steam_id=None, name="Han", team=Team.TEAM2)
    assert kill.killer == ANN_HERSELF


def test_without_rosters_a_team_is_where_somebody_stood_last_or_what_the_game_told() -> None:
    story = ToldStory(open_match(MatchType.COMPETITIVE))
    story.join(ANN, BEN)
    story.take_side(CAT, Side.T, Team.TEAM2)
    story.live()
    story.kill(CAT, ANN)
    story.start_round()
    story.kill(ANN, CAT)
    first, second = story.of(items.KillItem)
    assert (first.killer.team, first.victim.team) == (Team.TEAM2, None)
    assert (second.killer.team, second.victim.team) == (Team.TEAM1, Team.TEAM2)


def test_who_stands_in_the_other_team_in_the_next_round_fights_for_that_one() -> None:
    story = ToldStory(open_match(MatchType.COMPETITIVE))
    story.join(ANN, BEN)
    story.live()
    line_ups = [((ANN,), (BEN,)), ((ANN,), (BEN,)), ((BEN,), (ANN,))]
    for number, (team1, team2) in enumerate(line_ups, 1):
        story.tell(ev.RoundStarted(story.now_ms, number, team1, team2, Side.CT))
        story.kill()
        story.decide(number, number, 0)
    assert [kill.killer.team for kill in story.of(items.KillItem)] == [Team.TEAM1, Team.TEAM1, Team.TEAM2]


def test_of_a_stranger_nothing_is_said() -> None:
    story = told_duel()
    story.connect(EVE)
    story.kill(EVE, BEN)
    story.chat(EVE)
    story.leave(EVE)
    story.kill("", BEN)
    first, second = story.of(items.KillItem)
    assert (first.killer, first.victim, second.killer) == (SOMEBODY, BEN_HIMSELF, SOMEBODY)
    assert story.types()[3:] == ["kill", "kill"]


def test_an_assist_follows_its_kill() -> None:
    story = told_duel()
    story.tell(ev.Assist(story.now_ms, ANN, BEN, True, True))
    story.tell(ev.Assist(story.now_ms, ANN, BEN, False, False))
    (assist,) = story.of(items.AssistItem)
    assert (assist.player, assist.victim, assist.flash) == (ANN_HERSELF, BEN_HIMSELF, True)


def test_the_bomb_is_planted_defused_and_explodes() -> None:
    story = told_duel()
    for event in (
        ev.BombPlanted(story.now_ms, ANN, "A"),
        ev.BombDefused(story.now_ms, BEN),
        ev.BombPlanted(story.now_ms, ANN, None),
        ev.BombExploded(story.now_ms),
        ev.BombDefused(story.now_ms, None),
    ):
        story.tell(event)
    assert story.types()[3:] == ["bomb_planted", "bomb_defused", "bomb_planted", "bomb_exploded", "bomb_defused"]
    assert [(one.player, one.site) for one in story.of(items.BombPlantedItem)] == [
        (ANN_HERSELF, "A"), (ANN_HERSELF, None),
    ]  # fmt: skip
    assert [one.player for one in story.of(items.BombDefusedItem)] == [BEN_HIMSELF, None]


def test_who_is_renamed_in_a_round_kills_under_the_new_name() -> None:
    story = told_duel()
    story.start_round()
    story.kill()
    story.tell(ev.PlayerRenamed(story.now_ms, ANN, "Anna"))
    story.kill()
    assert [kill.killer.name for kill in story.of(items.KillItem)] == ["name of 1", "Anna"]


def test_made_up_players_do_not_pile_up() -> None:
    story = ToldStory(open_match())
    story.live()
    for number in range(MAX_PEOPLE + 10):
        story.kill(f"BOT:{number}", f"BOT:{number + 1}")
    assert len(story.timeline.people) <= MAX_PEOPLE


# --- people -------------------------------------------------------------------------------------------------------


def test_coming_and_leaving_take_turns() -> None:
    story = ToldStory(open_match())
    story.connect(ANN)
    story.enter(ANN)
    story.take_side(ANN)
    story.leave(ANN)
    story.leave(ANN)
    story.enter(ANN)
    assert story.types() == ["player_connected", "player_disconnected", "player_connected"]
    (left,) = story.of(items.PlayerDisconnectedItem)
    assert (left.player, left.reason) == (Person(steam_id=ANN, name="name of 1", team=None), "gone")


def test_who_leaves_goes_by_his_latest_name() -> None:
    story = ToldStory(open_match())
    story.join(ANN)
    story.tell(ev.PlayerRenamed(story.now_ms, ANN, "Anna"))
    story.tell(ev.PlayerRenamed(story.now_ms, BEN, "nobody"))
    story.leave(ANN)
    assert story.of(items.PlayerDisconnectedItem)[0].player.name == "Anna"


def test_a_map_change_is_not_leaving() -> None:
    story = told_duel(SeriesFormat.BO3)
    story.end_map()
    story.change_map(MAPS[1], ANN, BEN)
    story.live(MAPS[1])
    assert story.types(2) == ["map_live"]


def test_who_does_not_come_back_from_a_map_change_has_left_when_the_next_map_is_live() -> None:
    story = ToldStory(msgspec.structs.replace(open_match(MatchType.COMPETITIVE), series_format=SeriesFormat.BO3))
    story.join(ANN, BEN)
    story.live()
    story.end_map()
    story.change_map(MAPS[1], ANN)
    story.live(MAPS[1])
    assert story.types(2) == ["player_disconnected", "map_live"]
    (left,) = story.of(items.PlayerDisconnectedItem, 2)
    assert (left.player.steam_id, left.player.name, left.reason) == (BEN, "name of 2", "")


def test_who_does_not_come_back_from_a_crash_has_left_when_the_backup_is_restored() -> None:
    story = told_duel()
    story.start_round()
    story.tell(ev.ServerRestarted(story.now_ms))
    story.join(ANN)
    story.restore(0, 0, 0)
    assert story.types()[4:] == ["player_disconnected", "round_restored"]


def test_leaving_in_the_middle_of_play_is_told_whatever_the_reason_looks_like() -> None:
    story = told_duel()
    story.leave(ANN, is_map_change=True)
    assert story.types()[3:] == ["player_disconnected"]


def test_leaving_for_good_between_maps_is_told_at_once_on_the_next_map() -> None:
    story = told_duel(SeriesFormat.BO3)
    story.end_map()
    story.leave(ANN)
    assert story.types(2) == ["player_disconnected"]
    assert story.of(items.PlayerDisconnectedItem, 2)[0].round_number is None


def test_a_player_in_the_line_up_is_here_though_his_coming_was_lost() -> None:
    story = ToldStory(open_match())
    story.join(ANN)
    story.live()
    story.start_round()
    assert story.types() == ["player_connected", "map_live", "player_connected", "round_start"]
    assert story.of(items.PlayerConnectedItem)[1].player == Person(steam_id=BEN, name="", team=Team.TEAM2)


def test_what_the_console_says_of_comings_and_goings_is_told() -> None:
    story = ToldStory(open_match())
    story.join(ANN, CAT)
    story.tell(ev.LogGap(story.now_ms, 100))
    names = {ANN: "Ann", BEN: "Ben"}
    story.tell(ev.PlayersSeen(story.now_ms, names, 30_000))
    assert story.types() == ["player_connected", "player_connected", "player_connected"]
    assert story.of(items.PlayerConnectedItem)[2].player.name == "Ben"
    story.wait(31)
    story.tell(ev.PlayersSeen(story.now_ms, names, 30_000))
    (left,) = story.of(items.PlayerDisconnectedItem)
    assert (left.player.steam_id, left.reason) == (CAT, "")


def test_the_console_sends_nobody_away_who_is_on_the_way_to_the_next_map() -> None:
    story = ToldStory(open_match())
    story.join(ANN)
    story.load()
    story.tell(ev.LogGap(story.now_ms, 100))
    story.tell(ev.PlayersSeen(story.now_ms, {}, 0))
    assert story.types() == ["player_connected"]


# --- chat and other text of strangers -----------------------------------------------------------------------------


def test_chat_is_told_also_before_a_map_and_between_two() -> None:
    story = ToldStory(told_duel(SeriesFormat.BO3).match.settings)
    story.join(ANN, BEN)
    story.chat(text="hi")
    story.live()
    story.tell(ev.ChatSaid(story.now_ms, BEN, "Benny", True, "rush"))
    story.end_map()
    story.chat(text="gg")
    said = [(one.player.name, one.text, one.team_only) for one in story.of(items.ChatItem)]
    assert said == [("name of 1", "hi", False), ("Benny", "rush", True)]
    (later,) = story.of(items.ChatItem, 2)
    assert (later.text, later.seq, later.round_number) == ("gg", 1, None)


def test_bots_and_the_server_do_not_chat() -> None:
    story = told_duel()
    story.chat("BOT:Han")
    assert story.of(items.ChatItem) == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("plain", "plain"),
        ("a\nb\x00\x1b[31m\x9b\u2028", "a\ufffdb\ufffd\ufffd[31m\ufffd\ufffd"),
        ("\ud800", "\ufffd"),
        ("x" * 5000, "x" * MAX_TEXT_CHARS),
        ('"}\u202e \N{GRINNING FACE}', '"}\u202e \N{GRINNING FACE}'),
    ],
)
def test_chat_is_cut_and_can_always_be_sent(said: str, told: str) -> None:
    story = told_duel()
    story.chat(text=said)
    (chat,) = story.of(items.ChatItem)
    assert chat.text == told
    assert b"\n" not in msgspec.json.encode(chat)


# --- detections ---------------------------------------------------------------------------------------------------


def test_a_detection_is_told_once_on_its_map() -> None:
    story = told_duel(SeriesFormat.BO3)
    story.start_round(2)
    for _ in range(3):
        story.tell(ev.CheatSuspected(story.now_ms, ANN, "Aimbot", "41.2", "ak47"))
    story.end_map()
    story.tell(ev.CheatSuspected(story.now_ms, ANN, "Spinbot", "late"))
    first, second = story.of(items.AntiCheatItem)
    assert (first.round_number, first.detection.type, first.detection.weapon) == (2, "Aimbot", "ak47")
    assert [first.detection, second.detection] == [anti_cheat_entry(found) for found in story.match.detections]
    assert (second.detection.type, second.detection.map_number) == ("Spinbot", 1)
    assert story.types()[3:] == ["round_start", "anti_cheat", "map_end", "anti_cheat"]


@pytest.mark.parametrize("at_ms", [10**17, -(10**17)])
def test_a_detection_at_an_impossible_time_is_told(at_ms: int) -> None:
    story = told_duel()
    story.tell(ev.CheatSuspected(at_ms, ANN, "Aimbot", "41.2"))
    (found,) = story.of(items.AntiCheatItem)
    assert found.timestamp == found.detection.detected_at


def test_our_own_detections_follow_the_kill_that_made_them() -> None:
    story = told_duel()
    for _ in range(60):
        story.kill()
        story.wait(5)
    assert len(story.match.detections) == len(story.of(items.AntiCheatItem)) > 0
    types = story.types()
    assert types[types.index("anti_cheat") - 1] == "kill"


# --- limits, times, snapshots -------------------------------------------------------------------------------------


def test_a_map_has_so_many_items_and_then_only_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ITEMS", 5)
    story = told_duel()
    for _ in range(10):
        story.kill()
    story.end_map()
    assert story.types()[3:] == ["kill", "kill", "map_end"]
    assert seqs(story) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (59_999, "1970-01-01T00:00:59.999Z"),
        (60_001, "1970-01-01T00:01:00.001Z"),
        (1_768_900_059_007, "2026-01-20T09:07:39.007Z"),
        (LAST_MS, "9999-12-31T23:59:59.999Z"),
        (LAST_MS + 1, "9999-12-31T23:59:59.999Z"),
        (10**30, "9999-12-31T23:59:59.999Z"),
        (-1, "1970-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_utc_with_milliseconds_whatever_the_server_claims(at_ms: int, text: str) -> None:
    stamp = Stamp()
    for before in (0, LAST_MS, 1_768_900_059_007):
        stamp.text(before)
        assert stamp.text(at_ms) == text


def test_events_that_nobody_is_told_of_change_nothing() -> None:
    story = told_duel()
    before = msgspec.msgpack.encode(story.timeline)
    story.tell(ev.Damage(story.now_ms, ANN, BEN, "ak47", "head", 100, 0, True))
    story.tell(ev.WarmupBegan(story.now_ms))
    story.load()
    assert msgspec.msgpack.encode(story.timeline) == before


def test_what_was_taken_does_not_come_again_and_a_stored_timeline_goes_on() -> None:
    story = told_duel()
    story.timeline = msgspec.msgpack.decode(msgspec.msgpack.encode(story.timeline), type=Timeline)
    story.kill()
    assert seqs(story) == [1, 2, 3, 4]
    assert story.timeline.take() == []


def test_a_snapshot_from_before_there_were_timelines_goes_on_from_where_it_is() -> None:
    story = told_duel()
    story.start_round()
    story.timeline, story.maps = msgspec.msgpack.decode(b"\x80", type=Timeline), {}
    story.start_round(2)
    story.kill()
    assert story.types() == ["player_connected", "player_connected", "round_start", "kill"]
