"""Items of play: each event appears once, on its map and in its round."""

from __future__ import annotations

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.core import events as ev
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import MatchType, SeriesFormat, Winner
from matchpod.core.views import timeline_items as items
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.timeline_items import Person
from tests.unit.core.match_driver import ANN, BEN, CAT, MAPS, START_MS, open_match
from tests.unit.core.timeline_driver import TimelineDriver, seqs, timeline_duel

ANN_PERSON = Person(steam_id=ANN, name="name of 1", team=Team.TEAM1)
BEN_PERSON = Person(steam_id=BEN, name="name of 2", team=Team.TEAM2)
ANONYMOUS = Person(steam_id=None, name="", team=None)


# --- the flow of a map --------------------------------------------------------------------------------------------


def test_timeline_covers_a_whole_map_with_consecutive_numbers() -> None:
    driver = timeline_duel().start_round().kill().decide().end_map()
    assert driver.types() == [
        "player_connected", "player_connected", "map_live", "round_start", "kill", "round_end", "map_end",
    ]  # fmt: skip
    assert seqs(driver) == [1, 2, 3, 4, 5, 6, 7]


def test_map_first_seen_mid_game_starts_with_its_current_score() -> None:
    driver = TimelineDriver(open_match(MatchType.COMPETITIVE))
    driver.apply(ev.MapLive(START_MS, MAPS[0], START_MS, Side.T, rounds_played=7, team1_score=4, team2_score=3))
    (live,) = driver.of(items.MapLiveItem)
    assert (live.score, live.round_number, live.team1_side) == (Score(4, 3), 7, Side.T)


def test_round_items_have_number_reason_winner_and_score() -> None:
    driver = timeline_duel().start_round(1).decide(1).start_round(2)
    (first, second) = driver.of(items.RoundStartItem)
    assert (first.round_number, second.round_number, second.team1_side) == (1, 2, Side.CT)
    (end,) = driver.of(items.RoundEndItem)
    assert (end.round_number, end.winner, end.winner_side) == (1, Team.TEAM1, Side.CT)
    assert (end.reason, end.score) == (RoundEndReason.CTS_WIN, Score(1, 0))


def test_round_start_has_no_side_while_lost_lines_leave_it_in_doubt() -> None:
    driver = timeline_duel()
    driver.apply(ev.RoundStarted(driver.now_ms, 1, (ANN,), (BEN,), Side.CT, is_certain=False))
    assert driver.of(items.RoundStartItem)[0].team1_side is None


def test_end_that_is_concluded_later_does_not_stand_before_the_items_in_front_of_it() -> None:
    driver = timeline_duel().start_round().kill()
    ended_ms = driver.now_ms
    driver.after(20).chat()
    driver.apply(ev.MapEnded(ended_ms, MAPS[0], 13, 5, is_complete=False))
    chat, end = driver.maps[1][-2:]
    assert (end.timestamp, driver.types()[-2:]) == (chat.timestamp, ["chat", "map_end"])
    assert driver.match.current_map.finished_at_ms == ended_ms


def test_side_swap_has_the_new_side() -> None:
    driver = timeline_duel()
    driver.apply(ev.SidesSwapped(driver.now_ms, Side.T))
    assert driver.of(items.SideSwapItem)[0].team1_side is Side.T


def test_repeated_pause_lines_add_one_paused_and_one_unpaused_item() -> None:
    driver = timeline_duel()
    for event in (ev.Unpaused, ev.Paused, ev.Paused, ev.Unpaused, ev.Unpaused):
        driver.apply(event(driver.now_ms, "mp_pause_match"))
    assert driver.types()[3:] == ["paused", "unpaused"]
    assert driver.of(items.PausedItem)[0].by == "mp_pause_match"
    assert driver.of(items.UnpausedItem)[0].by == "mp_pause_match"


def test_timeout_names_the_player_who_called_it() -> None:
    driver = timeline_duel()
    driver.apply(ev.Paused(driver.now_ms, "TimeOutCTs", ANN))
    called_by = driver.of(items.PausedItem)[0].called_by
    assert called_by is not None
    assert called_by.steam_id == ANN


def test_restart_resets_the_pause() -> None:
    driver = timeline_duel()
    driver.apply(ev.Paused(driver.now_ms, "x")).live()
    driver.apply(ev.Paused(driver.now_ms, "x"))
    assert len(driver.of(items.PausedItem)) == 2


def test_finished_map_ends_with_winner_score_and_end_time() -> None:
    driver = timeline_duel().start_round(18).end_map(13, 5)
    (end,) = driver.of(items.MapEndItem)
    assert (end.status, end.winner, end.score) == (MapStatus.FINISHED, Winner.TEAM1, Score(13, 5))
    assert (end.round_number, end.timestamp) == (18, "2023-11-14T22:13:20.000Z")


# --- restored rounds ----------------------------------------------------------------------------------------------


def test_reopened_map_has_a_second_end_item() -> None:
    driver = timeline_duel(SeriesFormat.BO3).end_map(13, 5).restore(10, 6, 4).end_map(13, 11)
    assert driver.types()[3:] == ["map_end", "round_restored", "map_end"]
    assert [end.score for end in driver.of(items.MapEndItem)] == [Score(13, 5), Score(13, 11)]
    assert driver.maps.keys() == {1}


# --- combat and the bomb ------------------------------------------------------------------------------------------


def test_kill_item_has_killer_victim_weapon_and_round() -> None:
    driver = timeline_duel().start_round(4).kill()
    (kill,) = driver.of(items.KillItem)
    assert (kill.killer, kill.victim, kill.weapon, kill.distance) == (ANN_PERSON, BEN_PERSON, "ak47", 512.5)
    assert (kill.headshot, kill.wallbang, kill.team_kill, kill.round_number) == (True, False, False, 4)


def test_each_kill_flag_has_its_own_field() -> None:
    driver = timeline_duel()
    flags = {
        "is_wallbang": "wallbang",
        "is_through_smoke": "through_smoke",
        "is_blind": "attacker_blind",
        "is_noscope": "noscope",
        "is_in_air": "in_air",
        "is_headshot": "headshot",
    }
    for flag in flags:
        driver.apply(ev.Kill(driver.now_ms, ANN, BEN, "awp", True, **{flag: True}))
    for kill, field in zip(driver.of(items.KillItem), flags.values(), strict=True):
        assert [name for name in flags.values() if getattr(kill, name)] == [field]
        assert kill.distance is None


def test_kill_after_the_decision_belongs_to_the_decided_round() -> None:
    driver = timeline_duel().start_round(1).decide(1).kill()
    assert driver.of(items.KillItem)[0].round_number == 1


def test_kill_of_a_teammate_is_a_team_kill() -> None:
    driver = timeline_duel()
    driver.apply(ev.Kill(driver.now_ms, ANN, BEN, "ak47", False))
    assert driver.of(items.KillItem)[0].team_kill


def test_without_rosters_the_team_comes_from_the_line_up_or_the_game() -> None:
    driver = TimelineDriver(open_match(MatchType.COMPETITIVE)).join(ANN, BEN)
    driver.join_side(CAT, Side.T, Team.TEAM2).live().kill(CAT, ANN).start_round().kill(ANN, CAT)
    first, second = driver.of(items.KillItem)
    assert (first.killer.team, first.victim.team) == (Team.TEAM2, None)
    assert (second.killer.team, second.victim.team) == (Team.TEAM1, Team.TEAM2)


def test_player_who_changes_teams_has_the_new_team_in_the_next_round() -> None:
    driver = TimelineDriver(open_match(MatchType.COMPETITIVE)).join(ANN, BEN).live()
    line_ups = [((ANN,), (BEN,)), ((ANN,), (BEN,)), ((BEN,), (ANN,))]
    for number, (team1, team2) in enumerate(line_ups, 1):
        driver.apply(ev.RoundStarted(driver.now_ms, number, team1, team2, Side.CT)).kill()
        driver.decide(number, number, 0)
    assert [kill.killer.team for kill in driver.of(items.KillItem)] == [Team.TEAM1, Team.TEAM1, Team.TEAM2]


def test_death_without_a_killer_has_an_item() -> None:
    driver = timeline_duel().start_round()
    driver.apply(ev.Death(driver.now_ms, BEN, "world"))
    (death,) = driver.of(items.DeathItem)
    assert (death.player, death.cause, death.round_number) == (BEN_PERSON, "world", 1)


def test_assist_of_a_death_by_an_own_grenade_follows_it() -> None:
    driver = timeline_duel().start_round()
    driver.apply(ev.Damage(driver.now_ms, ANN, BEN, "ak47", "chest", 40, 60, is_enemy=True))
    driver.apply(ev.Death(driver.now_ms, BEN, "hegrenade"))
    (assist,) = driver.of(items.AssistItem)
    assert (assist.player.steam_id, assist.victim, assist.flash) == (ANN, BEN_PERSON, False)
    assert driver.types()[-2:] == ["death", "assist"]
    assert seqs(driver) == list(range(1, len(seqs(driver)) + 1))


def test_death_that_does_not_count_has_no_item() -> None:
    driver = timeline_duel()
    driver.apply(ev.Death(driver.now_ms, BEN, "world"))  # in freeze time
    driver.start_round().kill()
    driver.apply(ev.Death(driver.now_ms, BEN, "world"))  # already dead
    driver.apply(ev.PlayerGone(driver.now_ms, ANN))
    driver.apply(ev.Death(driver.now_ms + 1, ANN, "world"))  # already gone
    assert driver.of(items.DeathItem) == []


def test_only_assists_on_enemies_add_an_item() -> None:
    driver = timeline_duel()
    driver.apply(ev.Assist(driver.now_ms, ANN, BEN, True, True))
    driver.apply(ev.Assist(driver.now_ms, ANN, BEN, False, False))
    (assist,) = driver.of(items.AssistItem)
    assert (assist.player, assist.victim, assist.flash) == (ANN_PERSON, BEN_PERSON, True)


def test_bomb_events_have_items_with_player_and_site() -> None:
    driver = timeline_duel()
    for event in (
        ev.BombPlanted(driver.now_ms, ANN, "A"),
        ev.BombDefused(driver.now_ms, BEN),
        ev.BombPlanted(driver.now_ms, ANN, None),
        ev.BombExploded(driver.now_ms),
        ev.BombDefused(driver.now_ms, None),
    ):
        driver.apply(event)
    assert driver.types()[3:] == ["bomb_planted", "bomb_defused", "bomb_planted", "bomb_exploded", "bomb_defused"]
    assert [(one.player, one.site) for one in driver.of(items.BombPlantedItem)] == [
        (ANN_PERSON, "A"), (ANN_PERSON, None),
    ]  # fmt: skip
    assert [one.player for one in driver.of(items.BombDefusedItem)] == [BEN_PERSON, None]


def test_player_renamed_during_a_round_has_the_new_name_in_later_kills() -> None:
    driver = timeline_duel().start_round().kill()
    driver.apply(ev.PlayerRenamed(driver.now_ms, ANN, "Anna")).kill()
    assert [kill.killer.name for kill in driver.of(items.KillItem)] == ["name of 1", "Anna"]
