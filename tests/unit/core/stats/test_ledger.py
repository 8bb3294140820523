"""The fold over a map: flow, combat, and what others counted."""

from __future__ import annotations

import pytest

from matchpod.core import events as ev
from matchpod.core.model import Team
from matchpod.core.stats.ledger import LiveCount, health_lost
from tests.unit.core.stats.rounds import ANNA, BEN, CARL, TEAM1, XENA, YURI, ZOE, Tape, game_count, line_of


def live() -> Tape:
    return Tape().live().start(1)


# --- the flow of a map ---


def test_nothing_counts_before_the_map_is_live() -> None:
    ledger = Tape().start(1).kill(ANNA, XENA).restore(0).end().ledger()
    assert ledger.lines() == []


def test_nothing_counts_after_the_map_ended() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).end().kill(ANNA, YURI).ledger()
    assert line_of(ledger, ANNA).kills == 1


def test_going_live_forgets_what_was_before() -> None:
    tape = live().kill(ANNA, XENA).hit(ANNA, YURI, 50, 50).add(ev.LogGap, 10).live()
    assert tape.ledger() == Tape().live().ledger()


def test_events_about_other_things_change_nothing() -> None:
    tape = live().kill(ANNA, XENA)
    before = tape.ledger()
    assert tape.add(ev.ChatSaid, ANNA, "Anna", False, "gg").add(ev.BombExploded).ledger() == before


def test_kills_between_the_decision_and_the_next_freeze_belong_to_the_round() -> None:
    ledger = live().decide(1).kill(ANNA, XENA).kill(ANNA, YURI).game_counts(2).start(2).decide(2).end().ledger()
    assert ledger.rounds[0].counts(ANNA).kills == 2
    assert ledger.rounds[0].counts(ANNA).double_kills == 1
    assert ledger.is_complete


def test_a_round_counts_for_who_stood_in_its_line_up() -> None:
    ledger = live().decide(1).start(2, team1=(ANNA, BEN)).kill(CARL, XENA).decide(2).ledger()
    assert [line_of(ledger, who).rounds_played for who in TEAM1] == [2, 2, 1]


def test_a_restore_drops_later_rounds_and_the_open_one() -> None:
    tape = live().kill(ANNA, XENA).decide(1).start(2).kill(ANNA, YURI).decide(2).start(3).kill(ANNA, ZOE)
    ledger = tape.restore(1).ledger()
    assert line_of(ledger, ANNA).kills == 1
    assert [record.number for record in ledger.rounds] == [1]
    assert ledger.open_round is None


def test_a_restore_to_zero_drops_everything() -> None:
    assert live().kill(ANNA, XENA).decide(1).restore(0).ledger().lines() == []


def test_suicides_of_a_restore_are_no_deaths_of_a_kept_round() -> None:
    tape = live().kill(ANNA, XENA).decide(1)
    for player_id in (*TEAM1, YURI, ZOE):
        tape.at(60_000).die(player_id)
    ledger = tape.at(60_000).leave(ANNA).at(60_400).restore(1).ledger()
    assert {player_id: count.deaths for player_id, count in ledger.live_counts().items() if count.deaths} == {XENA: 1}
    assert line_of(ledger, ANNA).kast_rounds == 1


def test_an_earlier_suicide_of_a_kept_round_stays() -> None:
    ledger = live().die(ANNA).decide(1).at(60_000).restore(1).ledger()
    assert line_of(ledger, ANNA).deaths == 1


def test_a_restore_makes_an_ended_map_live_again() -> None:
    tape = live().kill(ANNA, XENA).decide(1).start(2).kill(ANNA, YURI).decide(2).end()
    ledger = tape.restore(1).start(2).kill(BEN, ZOE).decide(2).end().ledger()
    assert [line_of(ledger, who).kills for who in (ANNA, BEN)] == [1, 1]
    assert ledger.is_complete


def test_a_round_played_again_replaces_the_former() -> None:
    ledger = live().kill(ANNA, XENA).start(1).kill(BEN, XENA).decide(1).end().ledger()
    assert [line_of(ledger, who).kills for who in (ANNA, BEN)] == [0, 1]
    assert ledger.is_complete


def test_numbers_that_go_back_drop_the_rounds_after_them() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).start(2).decide(2).start(1).decide(1).end().ledger()
    assert [record.number for record in ledger.rounds] == [1]
    assert line_of(ledger, ANNA).kills == 0


def test_deathmatch_without_rounds_counts_in_one() -> None:
    tape = Tape().live().kill(ANNA, XENA).kill(XENA, ANNA).kill(ANNA, XENA).die(ANNA).die(ANNA).end()
    ledger = tape.ledger(is_free_for_all=True)
    assert ledger.live_counts() == {ANNA: LiveCount(2, 3, 0), XENA: LiveCount(1, 2, 0)}
    assert ledger.is_complete
    assert {line.team for line in ledger.lines()} == {None}


def test_a_started_deathmatch_takes_its_line_up_into_the_open_round() -> None:
    ledger = Tape().live().kill(ANNA, XENA).start(1).kill(ANNA, YURI).end().ledger(is_free_for_all=True)
    assert len(ledger.rounds) == 1
    assert line_of(ledger, ANNA).kills == 2
    assert line_of(ledger, ANNA).rounds_played == 1


def test_team_deathmatch_is_told_by_its_respawns() -> None:
    ledger = live().kill(ANNA, XENA).kill(ANNA, XENA).kill(ANNA, XENA).decide(1, None).end().ledger()
    line = line_of(ledger, ANNA)
    assert (line.kills, line.triple_kills, line.first_kills, line.kast_rounds) == (3, 0, 0, 0)
    assert line_of(ledger, XENA).deaths == 3
    assert ledger.is_complete


# --- what is missing ---


def test_rounds_before_a_joined_log_are_missing() -> None:
    ledger = Tape().live(rounds_played=2).start(3).decide(3).ledger()
    assert ledger.missing_rounds == [1, 2]
    assert not ledger.is_complete


@pytest.mark.parametrize("lost", [(ev.LogGap, 100), (ev.ServerRestarted,)])
def test_lost_log_tears_the_open_round(lost: tuple[object, ...]) -> None:
    ledger = live().add(*lost).add(*lost).decide(1).ledger()
    assert ledger.torn_rounds == [1]
    assert not ledger.is_complete


def test_log_lost_between_rounds_tears_the_next() -> None:
    ledger = live().decide(1).game_counts(2).add(ev.LogGap, 1).start(2).decide(2).ledger()
    assert ledger.torn_rounds == [2]


def test_a_restore_before_the_loss_makes_the_map_complete_again() -> None:
    tape = live().decide(1).start(2).add(ev.ServerRestarted).decide(2).start(4)
    assert tape.ledger().missing_rounds == [3]
    assert tape.restore(1).ledger().is_complete


def test_a_restore_to_rounds_never_seen_misses_them() -> None:
    assert live().decide(1).restore(3).ledger().missing_rounds == [2, 3]


def test_a_skipped_decision_number_misses_rounds() -> None:
    ledger = live().kill(ANNA, XENA).decide(4).ledger()
    assert ledger.missing_rounds == [2, 3]
    assert ledger.torn_rounds == [1, 4]


def test_a_lost_decision_tears_its_round() -> None:
    ledger = live().kill(ANNA, XENA).start(2).ledger()
    assert ledger.torn_rounds == [1]
    assert line_of(ledger, ANNA).kills == 1


def test_the_game_counting_past_an_undecided_round_tears_it() -> None:
    assert live().game_counts(2).ledger().torn_rounds == [1]


def test_the_game_counting_rounds_never_seen_misses_them() -> None:
    assert live().decide(1).game_counts(4).ledger().missing_rounds == [2, 3]


def test_a_lost_start_opens_the_round_by_what_happens_in_it() -> None:
    ledger = live().decide(1).game_counts(2).kill(ANNA, XENA).decide(3).ledger()
    assert (ledger.missing_rounds, ledger.torn_rounds) == ([2], [3])
    assert line_of(ledger, ANNA).kills == 1


def test_a_decision_without_its_round_is_a_torn_round() -> None:
    ledger = live().decide(1).game_counts(2).decide(2).end().ledger()
    assert [record.number for record in ledger.rounds] == [1, 2]
    assert ledger.torn_rounds == [2]


def test_a_repeated_or_stale_decision_changes_nothing() -> None:
    tape = live().decide(1, Team.TEAM2)
    before = tape.ledger()
    assert tape.decide(1, Team.TEAM1).ledger() == before
    closed = tape.game_counts(2).ledger()
    assert tape.decide(1).ledger() == closed
    started = tape.start(2).ledger()
    assert tape.decide(1).ledger() == started


def test_a_map_that_ended_incomplete_is_not_complete() -> None:
    assert not live().decide(1).end(is_complete=False).ledger().is_complete


def test_a_round_cut_by_the_end_of_the_map_is_kept() -> None:
    ledger = live().kill(ANNA, XENA).end().ledger()
    assert line_of(ledger, ANNA).kills == 1
    assert ledger.is_complete


def test_an_absurd_round_number_makes_no_absurd_list() -> None:
    assert len(Tape().live(rounds_played=10**12).ledger().missing_rounds) < 1000


# --- combat ---


@pytest.mark.parametrize(
    ("damage", "before", "after", "lost"),
    [
        (108, 100, 0, 100),  # capped at what was left
        (27, 100, 73, 27),
        (27, 100, 72, 28),  # the log cuts the fraction of the damage
        (20, 100, 40, 21),  # 40 were lost in a fall nobody logged
        (30, 40, 70, 30),  # healed or came back unseen
        (0, 100, 100, 0),
        (12, 0, 0, 0),  # a late pellet
    ],
)
def test_a_hit_takes_no_more_than_the_health_it_found(damage: int, before: int, after: int, lost: int) -> None:
    assert health_lost(damage, before, after) == lost


def test_damage_of_team_mates_lowers_health_but_counts_for_nobody() -> None:
    ledger = live().hit(BEN, ANNA, 40, 60).hit(XENA, ANNA, 110, 0).ledger()
    assert line_of(ledger, BEN).damage == 0
    assert line_of(ledger, XENA).damage == 60


def test_a_pellet_that_hits_the_dead_takes_nothing() -> None:
    tape = live().at(5000).hit(ANNA, XENA, 120, 0).at(5000).hit(ANNA, XENA, 30, 0)
    ledger = tape.at(5000).kill(ANNA, XENA).at(5000).hit(ANNA, XENA, 30, 0).ledger()
    assert line_of(ledger, ANNA).damage == 100


def test_who_came_back_has_full_health() -> None:
    tape = Tape().live().hit(ANNA, XENA, 110, 0).kill(ANNA, XENA).hit(ANNA, XENA, 60, 40).kill(ANNA, XENA)
    ledger = tape.hit(ANNA, XENA, 400, 0).kill(ANNA, XENA).ledger(is_free_for_all=True)
    assert line_of(ledger, ANNA).damage == 100 + 60 + 100


def test_who_left_hurt_and_came_back_has_full_health() -> None:
    tape = Tape().live().hit(ANNA, XENA, 60, 40).leave(XENA).hit(ANNA, XENA, 50, 50)
    assert line_of(tape.hit(ANNA, XENA, 70, 0).ledger(is_free_for_all=True), ANNA).damage == 60 + 50 + 50


def test_health_is_full_at_each_round_start() -> None:
    ledger = live().hit(ANNA, XENA, 90, 10).decide(1).start(2).hit(ANNA, XENA, 90, 10).ledger()
    assert line_of(ledger, ANNA).damage == 180


def test_grenades_and_fire_are_utility_damage() -> None:
    ledger = (
        live().hit(ANNA, XENA, 50, 50, "hegrenade").hit(ANNA, XENA, 8, 42, "inferno").hit(ANNA, XENA, 2, 40).ledger()
    )
    assert (line_of(ledger, ANNA).damage, line_of(ledger, ANNA).utility_damage) == (60, 58)


def test_kills_are_told_apart_by_weapon() -> None:
    tape = live().kill(ANNA, XENA, "usp_silencer", headshot=True).kill(ANNA, YURI, "awp").kill(ANNA, ZOE, "knife_t")
    line = line_of(tape.ledger(), ANNA)
    assert (line.pistol_kills, line.sniper_kills, line.knife_kills, line.headshots) == (1, 1, 1, 1)
    assert line.weapon_kills == {"usp_silencer": 1, "awp": 1, "knife_t": 1}


def test_killing_a_team_mate_is_no_kill() -> None:
    ledger = live().kill(ANNA, BEN, "awp", headshot=True).ledger()
    line = line_of(ledger, ANNA)
    assert (line.kills, line.headshots, line.sniper_kills, line.team_kills) == (0, 0, 0, 1)
    assert line_of(ledger, BEN).deaths == 1


def test_the_bombs_victim_dies_once() -> None:
    assert line_of(live().die(ANNA, "bomb").die(ANNA, "world").ledger(), ANNA).deaths == 1


def test_who_was_killed_does_not_die_again_by_the_world() -> None:
    assert line_of(live().kill(XENA, ANNA).die(ANNA).ledger(), ANNA).deaths == 1


def test_a_death_in_freeze_time_is_no_death() -> None:
    ledger = live().decide(1).game_counts(2).die(ANNA).leave(BEN).start(2).ledger()
    assert line_of(ledger, ANNA).deaths == 0
    assert ledger.open_round is not None
    assert ledger.open_round.falls == []


def test_leaving_the_server_is_no_death() -> None:
    ledger = live().leave(ANNA).die(ANNA).leave(ANNA).ledger()
    assert line_of(ledger, ANNA).deaths == 0


def test_a_leaving_spectator_gets_no_line() -> None:
    assert "3001" not in {line.player_id for line in live().leave("3001").decide(1).end().ledger().lines()}


def test_assists_and_flash_assists_are_counted_apart_and_on_enemies_only() -> None:
    tape = live().assist(ANNA, XENA).assist(ANNA, XENA, flash=True).assist(ANNA, BEN).assist(ANNA, BEN, flash=True)
    line = line_of(tape.ledger(), ANNA)
    assert (line.assists, line.flash_assists) == (1, 1)


def test_blinded_enemies_count_however_shortly_but_not_the_dead() -> None:
    tape = live().blind(ANNA, XENA, 0.1).blind(ANNA, XENA, 4.0).blind(ANNA, BEN).kill(BEN, YURI).blind(ANNA, YURI)
    assert line_of(tape.ledger(), ANNA).enemies_flashed == 2


@pytest.mark.parametrize("kind", list(ev.GrenadeKind))
def test_thrown_grenades_are_counted_by_kind(kind: ev.GrenadeKind) -> None:
    line = line_of(live().add(ev.GrenadeThrown, ANNA, kind).add(ev.GrenadeThrown, ANNA, kind).ledger(), ANNA)
    assert getattr(line, f"{kind}_thrown") == line.grenades_thrown == 2


def test_bombs_and_chickens_are_counted() -> None:
    tape = live().add(ev.BombPlanted, XENA, "A").add(ev.BombDefused, ANNA).add(ev.BombDefused, None)
    ledger = tape.add(ev.ChickenKilled, BEN, "knife").ledger()
    assert line_of(ledger, XENA).bomb_plants == 1
    assert line_of(ledger, ANNA).bomb_defuses == 1
    assert line_of(ledger, BEN).chicken_kills == 1


def test_live_counts_include_the_open_round() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).start(2).kill(ANNA, XENA).assist(BEN, XENA).ledger()
    counts = ledger.live_counts()
    assert (counts[ANNA], counts[BEN], counts[XENA]) == (LiveCount(2), LiveCount(assists=1), LiveCount(deaths=2))


# --- what others counted ---


def test_mvps_come_from_the_games_own_count() -> None:
    tape = live().decide(1).game_counts(2, game_count(ANNA, mvps=1), game_count(BEN)).start(2).decide(2).end()
    ledger = tape.ledger()
    assert [line_of(ledger, who).mvps for who in (ANNA, BEN)] == [1, 0]


def test_the_plugin_names_the_mvp_of_the_last_round_even_late() -> None:
    tape = live().decide(1).game_counts(2, game_count(ANNA, mvps=1)).start(2).decide(2)
    assert line_of(tape.mvp(2, ANNA, 2).end().ledger(), ANNA).mvps == 2
    late = live().decide(1).game_counts(2, game_count(ANNA, mvps=1)).start(2).decide(2).end()
    assert line_of(late.mvp(2, ANNA, 2).ledger(), ANNA).mvps == 2


def test_after_the_end_only_the_last_rounds_mvp_is_taken() -> None:
    assert line_of(live().decide(1).start(2).decide(2).end().mvp(1, ANNA, 1).ledger(), ANNA).mvps is None


def test_the_game_overrules_the_plugin() -> None:
    tape = live().decide(1).mvp(1, ANNA, 5).game_counts(2, game_count(ANNA, mvps=1), game_count(BEN)).mvp(1, BEN, 5)
    ledger = tape.ledger()
    assert [line_of(ledger, who).mvps for who in (ANNA, BEN)] == [1, 0]


def test_a_restore_takes_mvps_back() -> None:
    tape = live().decide(1).game_counts(2, game_count(ANNA, mvps=1)).start(2).decide(2)
    ledger = tape.game_counts(3, game_count(ANNA, mvps=2)).restore(1).ledger()
    assert line_of(ledger, ANNA).mvps == 1


def test_mvps_are_none_when_nobody_counted() -> None:
    assert line_of(live().decide(1).mvp(7, ANNA, 1).end().ledger(), ANNA).mvps is None


def test_shots_are_none_without_a_plugin_even_when_hits_are_logged() -> None:
    line = line_of(live().hit(ANNA, XENA, 20, 80).ledger(), ANNA)
    assert (line.shots_fired, line.shots_hit) == (None, None)


def test_shots_are_the_plugins_running_total() -> None:
    ledger = live().shots(ANNA, 10, 2).shots(ANNA, 25, 5).decide(1).game_counts(2).shots(ANNA, 30, 6).ledger()
    line = line_of(ledger, ANNA)
    assert (line.shots_fired, line.shots_hit) == (30, 6)


def test_shots_reported_before_the_first_round_are_not_of_the_map() -> None:
    line = line_of(Tape().live().shots(ANNA, 7, 1).start(1).shots(ANNA, 17, 4).ledger(), ANNA)
    assert (line.shots_fired, line.shots_hit) == (10, 3)


def test_a_restore_takes_shots_back_when_the_plugin_counts_on() -> None:
    tape = live().shots(ANNA, 10, 2).decide(1).start(2).shots(ANNA, 50, 9).restore(1).start(2).shots(ANNA, 55, 10)
    line = line_of(tape.ledger(), ANNA)
    assert (line.shots_fired, line.shots_hit) == (15, 3)


def test_a_restore_takes_shots_back_when_the_plugin_follows_it() -> None:
    tape = live().shots(ANNA, 10, 2).decide(1).start(2).shots(ANNA, 50, 9).restore(1)
    line = line_of(tape.start(2).shots(ANNA, 15, 3).ledger(), ANNA)
    assert (line.shots_fired, line.shots_hit) == (15, 3)
    between = live().shots(ANNA, 10, 2).decide(1).shots(ANNA, 9, 2).ledger()
    assert line_of(between, ANNA).shots_fired == 10


def test_a_difference_from_the_game_is_kept_and_not_corrected() -> None:
    ledger = live().kill(ANNA, XENA).decide(1).game_counts(2, game_count(ANNA, kills=2, first_kills=1)).ledger()
    assert [(found.round_number, found.field) for found in ledger.discrepancies] == [(1, "kills")]
    assert line_of(ledger, ANNA).kills == 1
    assert ledger.is_complete


def test_a_restore_drops_differences_of_dropped_rounds() -> None:
    tape = live().decide(1).game_counts(2, game_count(ANNA, kills=1)).restore(0)
    assert tape.ledger().discrepancies == []


def test_incomplete_numbers_are_not_compared() -> None:
    tape = live().add(ev.LogGap, 5).decide(1).game_counts(2, game_count(ANNA, kills=1, mvps=1))
    ledger = tape.ledger()
    assert ledger.discrepancies == []
    assert line_of(ledger, ANNA).mvps == 1


def test_rounds_with_respawns_are_not_compared() -> None:
    tape = live().kill(ANNA, XENA).kill(ANNA, XENA).decide(1).game_counts(2, game_count(ANNA))
    assert tape.ledger().discrepancies == []


def test_a_count_of_the_open_round_does_not_close_it() -> None:
    ledger = live().kill(ANNA, XENA).game_counts(1).ledger()
    assert ledger.open_round is not None
    assert ledger.is_complete
