"""Tests that lost lines, crashes and restores do not swap a score, lose a map or end one too early."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from cs2_protocol.game import Side, Team
from cs2_protocol.log_lines.world_lines import LoadingMap
from matchpod.core import events as ev
from matchpod.core.effects import LoadMap, StartPlay
from matchpod.core.match.match import MatchPhase
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, TeamRoster, Winner
from matchpod.cs2.map_end import EndReport
from matchpod.cs2.map_flow import CONFIRM_TIMEOUT_MS, MAX_ROUNDS, MapFlow, MapPhase
from matchpod.cs2.match_reader import MatchReader
from tests.unit.cs2.server_log import MAP, TEAM1, TEAM2, ServerLog, competitive, id64
from tests.unit.cs2.test_interpreter import restore

FFA = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))


class PlayedMatch:
    def __init__(self, settings: GameSettings | None = None) -> None:
        self.log = ServerLog(settings)
        self.reader = MatchReader.create(settings or competitive(), self.log.now)
        self.reader.interpreter = self.log.interpreter
        self.effects: list[object] = []
        self.applied = 0

    @property
    def phase(self) -> MatchPhase:
        return self.reader.match.phase

    def fold(self) -> PlayedMatch:
        new = self.log.events[self.applied :]
        self.applied = len(self.log.events)
        for event in new:
            self.effects += self.reader.match.apply(event, self.log.now)
        return self


def scores(log: ServerLog) -> tuple[int, int]:
    decided = log.last(ev.RoundDecided)
    return decided.team1_score, decided.team2_score


# --- teams and sides ---------------------------------------------------------------------------------------------


def test_teams_that_rejoin_on_swapped_sides_keep_their_score() -> None:
    log = ServerLog().go_live().play("CT", "TERRORIST", "CT").round_end("TERRORIST")
    for account in (1, 2, 3, 4):
        log.leave(account)
    log.swap_sides().freeze()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    log.join(1, 2, 3, 4).round_start().play("TERRORIST").round_end("TERRORIST")
    assert scores(log) == (4, 2)


def lose_halftime(log: ServerLog) -> ServerLog:
    """Simulate a round end and a change of sides whose lines are all lost."""
    log.score["CT"] += 1
    log.rounds += 1
    log.swap_sides()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    return log


def test_unlogged_halftime_is_detected_by_the_score() -> None:
    log = lose_halftime(ServerLog().go_live().play(*["CT"] * 4, "TERRORIST"))
    log.freeze().round_start().round_end("TERRORIST")
    assert scores(log) == (6, 1)


def test_score_of_the_freeze_time_is_swapped_with_the_sides() -> None:
    log = ServerLog().go_live().play("CT", "TERRORIST")
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    log.score, log.rounds = {"CT": 2, "TERRORIST": 3}, 5
    log.freeze()
    for account in (1, 2, 3, 4):
        log.write(f'{log.token(account)} picked up "knife"')
    log.round_start().round_end("TERRORIST")
    assert scores(log) == (4, 2)


def test_unlogged_halftime_is_detected_by_kills() -> None:
    log = lose_halftime(ServerLog().go_live().play("CT", "TERRORIST", "TERRORIST"))
    log.freeze().round_start().kill(1, 3).kill(2, 4).round_end("TERRORIST")
    assert scores(log) == (3, 2)


def test_minority_of_seen_players_does_not_swap_the_sides() -> None:
    log = ServerLog().go_live().play("CT")
    log.write('"Ann<1><[U:1:1]><TERRORIST>" picked up "knife"').round_start().round_end("CT")
    assert log.last(ev.RoundDecided).winner is Team.TEAM1


def test_bots_do_not_outvote_listed_players() -> None:
    log = ServerLog(
        GameSettings(
            match_type=MatchType.COMPETITIVE,
            maps=(MAP,),
            team1=TeamRoster("Reds", (id64(1),)),
            team2=TeamRoster("Blues", (id64(3),)),
        )
    ).go_live()
    for number in range(8):
        log.write(
            f'"B{number}<{20 + number}><BOT>" switched from team <Unassigned> to <{"CT" if number < 4 else "TERRORIST"}>'
        )
    log.play("CT")
    for number in range(8):
        log.write(f'"B{number}<{20 + number}><BOT>" switched from team <CT> to <{"TERRORIST" if number < 4 else "CT"}>')
    assert log.freeze().round_start().round_end("CT").last(ev.RoundDecided).winner is Team.TEAM1


NAMED = GameSettings(
    match_type=MatchType.COMPETITIVE, maps=(MAP,), team1=TeamRoster("Reds!"), team2=TeamRoster("Blues")
)


def test_without_listed_players_team_names_decide_the_sides() -> None:
    log = ServerLog(NAMED).load().join(1, 2, 3, 4)
    log.write('Team playing "CT": Blues', 'Team playing "TERRORIST": Reds').match_start().round_start()
    assert log.last(ev.MapLive).team1_side is Side.T


@pytest.mark.parametrize("names", [("Reds", "Greens"), ("Blues", "Blues")])
def test_unrelated_team_names_decide_nothing(names: tuple[str, str]) -> None:
    log = ServerLog(NAMED).load().join(1, 2, 3, 4)
    log.write(f'Team playing "CT": {names[0]}', f'Team playing "TERRORIST": {names[1]}').match_start().round_start()
    assert log.last(ev.MapLive).team1_side is Side.CT


def test_surrendering_team_loses_the_map() -> None:
    log = ServerLog().go_live().play("CT", "CT").round_end("TERRORIST", "CTs_Surrender").game_over()
    assert log.last(ev.MapEnded).winner is Team.TEAM2
    played = PlayedMatch()
    played.log = log
    assert played.fold().reader.match.winner is Winner.TEAM2


def test_score_of_the_previous_round_is_not_swapped() -> None:
    log = ServerLog().go_live().play("CT", "CT").round_end("CT").swap_sides()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    for account in (1, 2, 3, 4):
        log.write(f'{log.token(account)} picked up "knife"')
    log.round_start().round_end("TERRORIST")
    assert scores(log) == (4, 0)


def test_sides_seen_before_a_gap_do_not_count_after_it() -> None:
    played = PlayedMatch()
    log = played.log.go_live().play("CT", "CT")
    for account in (1, 2, 3, 4):
        log.write(f'{log.token(account)} picked up "knife"')
    log.interpreter.flow.sides.seen.clear()
    lose_halftime(log).freeze()
    log.write(f'{log.token(1)} picked up "knife"').round_start().round_end("TERRORIST")
    assert scores(log) == (4, 0)


def lose_halftime_in_a_gap() -> ServerLog:
    """A log that lacks the lines of halftime at a score from which neither side is sure."""
    log = ServerLog().go_live().play("CT")
    log.interpreter.flow.on_lost_lines(log.now, 1000)
    return lose_halftime(log)


def test_score_stays_while_the_sides_are_in_doubt_and_follows_the_first_player_seen() -> None:
    log = lose_halftime_in_a_gap()
    log.score, log.rounds = {"CT": 1, "TERRORIST": 1}, 2
    log.round_end("TERRORIST")
    last = log.last(ev.RoundDecided)
    assert (last.winner, last.winner_side, scores(log)) == (None, Side.T, (1, 0))
    log.freeze().write(f'{log.token(1)} picked up "knife"').round_start()
    assert log.interpreter.flow.scores[-1] == (2, 1)
    log.round_end("CT")
    assert (log.last(ev.RoundDecided).winner, scores(log)) == (Team.TEAM2, (2, 2))


def test_map_that_ends_while_the_sides_are_in_doubt_has_no_winner() -> None:
    log = lose_halftime_in_a_gap().game_over(score=(4, 13)).load("de_dust2")
    end = log.last(ev.MapEnded)
    assert (end.is_winner_known, end.is_complete, end.team1_score, end.team2_score) == (False, False, 1, 0)


def test_surrender_while_the_sides_are_in_doubt_has_no_winner() -> None:
    log = lose_halftime_in_a_gap()
    log.score, log.rounds = {"CT": 3, "TERRORIST": 4}, 7
    end = log.round_end("CT", "Terrorists_Surrender").game_over(score=(4, 4)).load("de_dust2").last(ev.MapEnded)
    assert not end.is_winner_known


def test_restored_score_in_doubt_is_the_last_certain_one() -> None:
    log = lose_halftime_in_a_gap()
    log.write(f'MatchStatus: Score: 4:2 on map "{MAP}" RoundsPlayed: -1')
    log.interpreter.flow.on_lost_lines(log.now, 1000)
    log.write(f'MatchStatus: Score: 4:2 on map "{MAP}" RoundsPlayed: 6')
    last = log.last(ev.RoundRestored)
    assert (last.team1_score, last.team2_score, log.interpreter.flow.sides.is_doubtful) == (1, 0, True)


def test_tie_is_known_even_if_the_sides_are_in_doubt() -> None:
    end = lose_halftime_in_a_gap().game_over(score=(12, 12)).load("de_dust2").last(ev.MapEnded)
    assert (end.is_winner_known, end.team1_score, end.team2_score) == (True, 12, 12)


@pytest.mark.parametrize("score", [(4, 13), (13, 4)])
def test_plugin_decides_sides_that_are_in_doubt(score: tuple[int, int]) -> None:
    log = lose_halftime_in_a_gap().game_over(score=(4, 13))
    assert not log.all(ev.MapEnded)
    log.interpreter.flow.report_end(EndReport(at_ms=log.now, by_team=score), log.events)
    end = log.last(ev.MapEnded)
    assert (end.is_winner_known, end.team1_score, end.team2_score) == (True, *score)


def test_final_score_without_other_lines_follows_the_players_sides() -> None:
    log = ServerLog().load().join(1, 2, 3, 4).match_start()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    for account in (1, 2, 3, 4):
        log.write(f'{log.token(account)} picked up "knife"')
    log.game_over(score=(5, 13)).load("de_dust2")
    assert (log.last(ev.MapEnded).team1_score, log.last(ev.MapEnded).team2_score) == (13, 5)


# --- going live --------------------------------------------------------------------------------------------------


def test_map_does_not_go_live_on_an_empty_server() -> None:
    log = ServerLog().load().match_start(0).round_start()
    assert not log.all(ev.MapLive)
    assert not ServerLog(FFA).load().match_start(0).all(ev.MapLive)


def test_map_does_not_end_on_an_empty_server() -> None:
    log = ServerLog(FFA).load().match_start(0).game_over("deathmatch", (0, 0)).load("de_dust2")
    assert not log.all(ev.MapEnded)


def test_deathmatch_warmup_is_not_live_without_a_status_line() -> None:
    log = ServerLog(FFA).load().write('World triggered "Warmup_Start"', f'World triggered "Match_Start" on "{MAP}"')
    assert not log.join(1).all(ev.MapLive)
    log.write('World triggered "Warmup_End"', f'World triggered "Match_Start" on "{MAP}"')
    assert len(log.all(ev.MapLive)) == 1


def test_deathmatch_whose_status_shows_warmup_was_not_live() -> None:
    log = ServerLog(FFA).load().join(1).match_start(-1)
    assert not log.all(ev.MapLive)
    assert not log.all(ev.WarmupBegan)
    log.match_start(-1).match_start(0)
    assert len(log.all(ev.MapLive)) == 1


def test_deathmatch_that_returns_to_warmup_is_suspended() -> None:
    log = ServerLog(FFA).load().join(1, 2).match_start(0).kill(1, 2).match_start(-1)
    assert len(log.all(ev.WarmupBegan)) == 1


def test_deathmatch_without_any_status_goes_live_with_the_first_fight() -> None:
    log = ServerLog(FFA).load().join(1, 2).write(f'World triggered "Match_Start" on "{MAP}"').wait(3)
    assert not log.all(ev.MapLive)
    log.kill(1, 2)
    (live,), (kill,) = log.all(ev.MapLive), log.all(ev.Kill)
    assert (live.since_ms, kill.at_ms) == (live.at_ms - 3_000, live.at_ms)


def test_deathmatch_on_an_empty_server_goes_live_with_the_first_player() -> None:
    log = ServerLog(FFA).load().match_start(0).wait(30).join(1)
    assert len(log.all(ev.MapLive)) == 1


def test_match_is_restarted_after_the_server_returns_to_warmup() -> None:
    played = PlayedMatch()
    played.log.go_live().play("CT")
    assert played.fold().phase is MatchPhase.LIVE
    played.log.match_start(-1)
    played.fold()
    assert played.phase is MatchPhase.STARTING
    assert played.effects[-1] == StartPlay(1)
    played.log.match_start(0).round_start()
    assert played.fold().phase is MatchPhase.LIVE
    assert played.reader.match.current_map.team1_score == 0


def test_match_waits_for_the_players_after_a_crash() -> None:
    played = PlayedMatch()
    played.log.go_live().play("CT")
    played.fold()
    played.log.interpreter.restart()
    played.log.events.append(ev.ServerRestarted(played.log.now))
    played.log.load().match_start(-1)
    assert played.fold().phase is MatchPhase.WARMUP
    played.log.join(1, 2, 3, 4)
    assert played.fold().effects[-1] == StartPlay(1)


def test_backup_restored_by_a_new_process_keeps_its_rounds() -> None:
    played = PlayedMatch()
    played.log.go_live().kill(1, 3).play("CT").kill(1, 3).play("CT")
    started_ms = played.fold().reader.match.current_map.started_at_ms
    played.log.interpreter.restart()
    played.log.load().join(1, 2, 3, 4).match_start(-1)
    restore(played.log, 1, 1, 0)
    current = played.fold().reader.match.current_map
    assert played.phase is MatchPhase.LIVE
    assert (current.team1_score, current.started_at_ms, len(current.ledger.rounds)) == (1, started_ms, 1)


def test_lower_score_is_treated_as_a_restore() -> None:
    log = ServerLog().go_live().play("CT", "CT", "TERRORIST")
    log.score, log.rounds = {"CT": 1, "TERRORIST": 0}, 1
    log.freeze()
    assert log.last(ev.RoundRestored).rounds_kept == 1
    assert log.round_start().last(ev.RoundStarted).round_number == 2


# --- lost lines --------------------------------------------------------------------------------------------------


def lose(log: ServerLog, size: int = 1000) -> ServerLog:
    log.interpreter.on_lost_lines(log.now, size)
    return log


def test_round_that_loses_lines_keeps_its_sides_and_winner() -> None:
    log = ServerLog(competitive(roster=False)).go_live().play("CT", "TERRORIST")
    decided = lose(log).round_end("CT").last(ev.RoundDecided)
    assert (decided.winner, decided.winner_side, scores(log)) == (Team.TEAM1, Side.CT, (2, 1))
    assert not log.interpreter.flow.sides.is_doubtful


def test_round_that_begins_in_doubt_does_not_end_it() -> None:
    log = lose(ServerLog(competitive(roster=False)).go_live().play("CT").round_end("TERRORIST"))
    decided = log.freeze().round_start().round_end("CT").last(ev.RoundDecided)
    assert (log.last(ev.RoundStarted).is_certain, decided.winner) == (False, None)


def test_loss_in_freeze_time_cuts_the_next_round_and_a_loss_before_it_does_not() -> None:
    log = lose(ServerLog().go_live().round_end("CT")).freeze().round_start()
    assert not log.last(ev.RoundStarted).is_cut
    lose(log.round_end("CT").freeze()).round_start()
    assert log.last(ev.RoundStarted).is_cut
    assert not log.play("CT").last(ev.RoundStarted).is_cut


@pytest.mark.parametrize("has_gap", [True, False])
def test_lower_score_shows_a_restore_whose_lines_are_lost(has_gap: bool) -> None:
    log = ServerLog().go_live().play("CT", "CT", "TERRORIST")
    if has_gap:
        lose(log)
    log.score, log.rounds = {"CT": 1, "TERRORIST": 0}, 1
    log.round_start().round_end("TERRORIST")
    restored, decided = log.last(ev.RoundRestored), log.last(ev.RoundDecided)
    assert (restored.rounds_kept, restored.team1_score, restored.team2_score) == (1, 1, 0)
    assert (restored.is_inferred, restored.may_be_new) == (True, False)
    assert (decided.round_number, decided.winner, scores(log)) == (2, Team.TEAM2, (1, 1))


def test_drawn_round_is_counted_when_a_restore_is_inferred() -> None:
    log = ServerLog().go_live().play("CT")
    log.write('World triggered "SFUI_Notice_Round_Draw" (CT "1") (T "0")').rounds = 2
    log.freeze().round_start().play("CT", "CT")
    log.score, log.rounds = {"CT": 2, "TERRORIST": 0}, 3
    lose(log).round_start().round_end("CT")
    assert (log.last(ev.RoundRestored).rounds_kept, log.last(ev.RoundDecided).round_number) == (3, 4)


def test_rounds_of_before_a_warmup_may_not_be_those_of_a_score_after_lost_lines() -> None:
    log = ServerLog().go_live().play("CT", "CT").match_start(-1).write('World triggered "Warmup_End"')
    lose(log).score, log.rounds = {"CT": 1, "TERRORIST": 0}, 1
    log.status()
    assert (log.last(ev.RoundRestored).rounds_kept, log.last(ev.RoundRestored).may_be_new) == (1, True)


def test_score_that_earlier_rounds_did_not_have_is_of_a_new_match() -> None:
    log = ServerLog().go_live().play("CT", "CT", "CT").match_start(-1).write('World triggered "Warmup_End"')
    lose(log).score, log.rounds = {"CT": 1, "TERRORIST": 1}, 2
    log.status()
    live = log.last(ev.MapLive)
    assert not log.all(ev.RoundRestored)
    assert (live.rounds_played, live.team1_score, live.team2_score) == (2, 1, 1)


def test_announced_restart_whose_lines_are_lost_begins_with_the_next_round() -> None:
    log = ServerLog().go_live().play("CT").write('World triggered "Restart_Round_(1_second)"')
    lose(log).round_start()
    assert [event.rounds_played for event in log.all(ev.MapLive)] == [0, 0]
    assert log.last(ev.RoundStarted).round_number == 1


FOUR_ROUNDS = msgspec.structs.replace(competitive(), max_rounds=4)


def restart(log: ServerLog, *, is_warmup: bool) -> list[ev.MapEnded]:
    """Let the score begin at 0:0 again, and return the ends of the map."""
    log.match_start(-1 if is_warmup else 0).round_start()
    return log.all(ev.MapEnded)


@pytest.mark.parametrize("is_warmup", [False, True])
def test_map_that_restarts_after_lost_lines_has_ended_if_one_round_was_missing(is_warmup: bool) -> None:
    log = lose(ServerLog(FOUR_ROUNDS).go_live().play("CT", "CT").wait(30))
    (end,) = restart(log.wait(30), is_warmup=is_warmup)
    assert (end.team1_score, end.team2_score, end.is_winner_known, end.is_complete) == (3, 0, True, False)
    assert end.at_ms < log.now - 30_000, "it ended with the lost lines"
    assert len(log.all(ev.MapLive)) == 1


@pytest.mark.parametrize("sizes", [(20_000,), (3_000, 3_000), (0,), (1_000, 0)])
def test_map_has_no_winner_if_more_than_its_end_may_be_lost(sizes: tuple[int, ...]) -> None:
    log = ServerLog(FOUR_ROUNDS).go_live().play("CT", "CT")
    for size in sizes:
        lose(log, size)
    (end,) = restart(log, is_warmup=False)
    assert (end.team1_score, end.team2_score, end.is_winner_known) == (2, 0, False)


def test_map_whose_end_and_next_start_are_lost_has_ended() -> None:
    log = lose(ServerLog(FOUR_ROUNDS).go_live().play("CT", "CT"))
    log.score, log.rounds = {"CT": 0, "TERRORIST": 0}, 0
    log.round_end("CT").freeze().round_start()
    assert (log.last(ev.MapEnded).team1_score, log.last(ev.RoundDecided).round_number) == (3, 2)


def test_restart_after_a_knife_round_with_lost_lines_is_no_end() -> None:
    settings = msgspec.structs.replace(FOUR_ROUNDS, max_rounds=2)
    assert restart(lose(ServerLog(settings).go_live().play("CT")), is_warmup=True) == []


def test_map_that_either_team_could_have_won_in_lost_lines_has_no_winner() -> None:
    settings = msgspec.structs.replace(FOUR_ROUNDS, match_type=MatchType.CASUAL)
    log = lose(ServerLog(settings).go_live().play("CT", "TERRORIST", "CT"))
    (end,) = restart(log, is_warmup=False)
    assert (end.team1_score, end.team2_score, end.is_winner_known) == (2, 1, False)


def no_loss(log: ServerLog) -> ServerLog:
    return log


def lose_and_announce(log: ServerLog) -> ServerLog:
    return lose(log).write('World triggered "Restart_Round_(1_second)"')


def lose_and_see_the_score(log: ServerLog) -> ServerLog:
    return lose(log).status()


@pytest.mark.parametrize("happens", [no_loss, lose_and_announce, lose_and_see_the_score])
def test_restart_is_a_restart(happens: Callable[[ServerLog], ServerLog]) -> None:
    log = happens(ServerLog(FOUR_ROUNDS).go_live().play("CT", "CT"))
    assert restart(log, is_warmup=False) == []
    assert log.last(ev.RoundStarted).round_number == 1


def test_restart_before_the_last_round_is_a_restart() -> None:
    assert restart(lose(ServerLog(FOUR_ROUNDS).go_live().play("CT")), is_warmup=False) == []


# --- names -------------------------------------------------------------------------------------------------------


def test_start_that_names_one_side_takes_no_name_of_an_earlier_start() -> None:
    log = ServerLog().load().join(1, 2, 3, 4).write('MatchStatus: Team playing "CT": Reds').match_start().round_start()
    log.round_end("TERRORIST").match_start().write('MatchStatus: Team playing "TERRORIST": Reds').round_start()
    assert [(event.team1_name, event.team2_name) for event in log.all(ev.MapLive)] == [("Reds", None), (None, "Reds")]


def test_map_load_forgets_the_names_of_the_sides() -> None:
    log = ServerLog(NAMED).go_live().write('Team playing "CT": Blues', 'Team playing "TERRORIST": Reds')
    log.load().join(1, 2, 3, 4).match_start().round_start()
    live = log.last(ev.MapLive)
    assert (live.team1_side, live.team1_name, live.team2_name) == (Side.CT, None, None)


def test_name_that_moves_to_the_other_side_is_the_name_of_one_team() -> None:
    log = ServerLog().load().join(1, 2, 3, 4)
    log.write('Team playing "CT": Reds', 'Team playing "TERRORIST": Reds').match_start().round_start()
    assert (log.last(ev.MapLive).team1_name, log.last(ev.MapLive).team2_name) == (None, "Reds")


# --- a log that begins in the middle -----------------------------------------------------------------------------


def begin_in_freeze_time() -> ServerLog:
    """A log without the lines before the end of a freeze time, in which players 1 to 3 buy."""
    log = ServerLog()
    for account in (1, 2, 3):
        log.write(f'{log.token(account)} purchased "deagle"')
    return log.round_start()


def test_first_round_counts_if_the_log_begins_in_its_freeze_time() -> None:
    log = begin_in_freeze_time()
    log.write(f"{log.token(4)} left buyzone with [ weapon_glock ]").round_end("CT")
    decided, grown = log.last(ev.RoundDecided), log.last(ev.LineupGrown)
    assert [event.rounds_played for event in log.all(ev.MapLive)] == [0]
    assert (decided.round_number, decided.team1_score, decided.team2_score) == (1, 1, 0)
    assert (grown.player_id, grown.team) == (id64(4), Team.TEAM2)


@pytest.mark.parametrize(
    "first",
    [
        '"Ann<1><[U:1:1]><CT>" left buyzone with [ weapon_knife ]',
        '"Ann<1><[U:1:1]><CT>" [0 0 0] killed "Cid<3><[U:1:3]><TERRORIST>" [3 4 0] with "ak47"',
    ],
)
def test_first_round_counts_if_the_log_begins_with_its_start(first: str) -> None:
    log = ServerLog(competitive(roster=False)).round_start().write(first)
    started_ms = log.lines[0][0]
    assert (log.last(ev.MapLive).at_ms, log.last(ev.RoundStarted).at_ms) == (started_ms, started_ms)
    log.kill(2, 4).wait(30).round_end("CT")
    seen = {*log.last(ev.RoundStarted).team1, *(event.player_id for event in log.all(ev.LineupGrown))}
    assert seen >= {id64(1), id64(2), id64(4)}
    assert log.last(ev.RoundDecided).round_number == 1
    assert len(log.all(ev.MapLive)) == 1
    assert len(log.all(ev.Kill)) == (2 if "killed" in first else 1)


def test_round_of_bots_is_not_begun_by_a_player_who_joins_in_it() -> None:
    log = ServerLog(competitive(roster=False)).round_start().write('"Rex<7><BOT><CT>" picked up "knife"').join(1)
    log.write('"Ann<1><[U:1:1]><CT>" picked up "knife"')
    assert not log.all(ev.RoundStarted)


def test_later_round_is_not_taken_for_the_first_if_the_log_begins_in_its_freeze_time() -> None:
    log = begin_in_freeze_time()
    log.score, log.rounds = {"CT": 2, "TERRORIST": 3}, 5
    log.round_end("CT")
    assert [event.rounds_played for event in log.all(ev.MapLive)] == [0, 5]
    assert log.last(ev.RoundDecided).round_number == 6


def test_player_who_joins_a_side_during_a_round_is_not_in_its_line_up() -> None:
    log = ServerLog().join(1, 2, 3).match_start(0).round_start().join(4)
    log.write(f'{log.token(4)} purchased "deagle"')
    assert not log.all(ev.LineupGrown)


# --- ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "score"), [(["CT"] * 13, (13, 0)), ([*["CT", "TERRORIST"] * 12, *["CT"] * 4], (16, 12))]
)
def test_won_map_without_game_over_ends_with_the_next_warmup(rounds: list[str], score: tuple[int, int]) -> None:
    log = ServerLog().go_live().play(*rounds[:-1]).round_end(rounds[-1]).match_start(-1)
    assert (log.last(ev.MapEnded).team1_score, log.last(ev.MapEnded).team2_score) == score
    assert log.last(ev.MapEnded).is_complete


@pytest.mark.parametrize("rounds", [["CT"] * 12, ["CT", "TERRORIST"] * 12, ["CT"] * 3])
def test_match_start_does_not_end_an_unfinished_map(rounds: list[str]) -> None:
    log = ServerLog().go_live().play(*rounds).match_start(0)
    assert not log.all(ev.MapEnded)


def test_restore_after_warmup_keeps_the_restored_rounds() -> None:
    played = PlayedMatch()
    played.log.go_live().kill(1, 3).play("CT", "CT").match_start(-1)
    restore(played.log, 1, 1, 0)
    current = played.fold().reader.match.current_map
    assert (played.phase, len(current.ledger.rounds), current.team1_score) == (MatchPhase.LIVE, 1, 1)


def test_round_end_after_a_crash_continues_the_map() -> None:
    played = PlayedMatch()
    played.log.go_live().kill(1, 3).play("CT", "CT")
    played.log.interpreter.restart()
    played.log.join(1, 2, 3, 4).round_end("TERRORIST")
    current = played.fold().reader.match.current_map
    assert (current.team1_score, current.team2_score, len(current.ledger.rounds)) == (2, 1, 2)


def test_game_over_without_a_second_source_is_accepted_after_a_timeout() -> None:
    log = ServerLog().go_live().play("CT").game_over(score=(13, 5))
    flow, out = log.interpreter.flow, list[ev.GameEvent]()
    assert flow.next_deadline_ms() == log.now + CONFIRM_TIMEOUT_MS
    flow.accept_unconfirmed_end(log.now + CONFIRM_TIMEOUT_MS - 1, out)
    assert out == []
    flow.accept_unconfirmed_end(log.now + CONFIRM_TIMEOUT_MS, out)
    assert out == [ev.MapEnded(log.now, MAP, 13, 5, is_complete=False)]
    assert flow.next_deadline_ms() is None


def test_round_start_in_the_tick_of_game_over_does_not_contradict_it() -> None:
    log = ServerLog().go_live().play("CT").game_over(score=(13, 5)).round_start()
    assert log.interpreter.flow.end_report is not None


def test_next_map_is_detected_without_its_loading_line() -> None:
    for line in (
        'World triggered "Match_Start" on "de_dust2"',
        'MatchStatus: Score: 0:0 on map "de_dust2" RoundsPlayed: -1',
    ):
        log = ServerLog().go_live().play("CT").round_end("CT").game_over().write(line)
        assert log.last(ev.MapLoading).map_name == "de_dust2"
        assert log.interpreter.flow.phase is not MapPhase.OVER


def test_workshop_name_of_the_same_map_is_not_a_new_map() -> None:
    log = ServerLog().go_live().play("CT").round_end("CT").game_over()
    log.write(f'World triggered "Match_Start" on "workshop/125444404/{MAP}"')
    assert log.interpreter.flow.phase is MapPhase.OVER


def test_series_continues_after_a_map_end_reported_only_by_the_plugin() -> None:
    bo3 = GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=(MAP, "de_dust2", "de_mirage"),
        series_format=SeriesFormat.BO3,
        team1=TEAM1,
        team2=TEAM2,
    )
    played = PlayedMatch(bo3)
    played.log.go_live().play("CT")
    played.fold()
    played.log.load("de_dust2")
    assert played.fold().phase is MatchPhase.LIVE
    body = b'{"event":"map_result","matchid":1,"map_number":0,"team1":{"score":13},"team2":{"score":4},"winner":{"team":"team1"}}'
    assert played.reader.read_report(body, played.log.now).effects == [LoadMap(2, "de_dust2")]
    assert played.phase is MatchPhase.BETWEEN_MAPS


def test_disconnect_of_an_old_connection_after_a_rejoin_is_ignored() -> None:
    log = ServerLog().go_live()
    log.write('"Ann<7><[U:1:1]><>" entered the game', '"Ann<1><[U:1:1]><CT>" disconnected (reason "x")')
    assert not log.all(ev.PlayerDisconnected)
    log.write('"Ann<7><[U:1:1]><CT>" disconnected (reason "x")')
    assert log.last(ev.PlayerDisconnected).player_id == id64(1)


def test_client_that_quits_while_loading_is_disconnected() -> None:
    log = (
        ServerLog()
        .go_live()
        .write('"Ann<7><[U:1:1]><>" connected, address "x"', '"Ann<7><[U:1:1]><>" disconnected (reason "x")')
    )
    assert log.last(ev.PlayerDisconnected).player_id == id64(1)


# --- limits ------------------------------------------------------------------------------------------------------


def test_huge_numbers_use_little_memory() -> None:
    log = ServerLog().go_live().write(f'MatchStatus: Score: 5:3 on map "{MAP}" RoundsPlayed: 999999')
    log.write('Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "999999") (T "999999")')
    assert len(log.interpreter.flow.scores) <= MAX_ROUNDS + 1
    assert len(msgspec.msgpack.encode(log.interpreter)) < 20_000


def test_map_load_resets_team1_to_ct() -> None:
    flow = MapFlow.of(competitive())
    flow.sides.team1_side = Side.T
    flow.on_map_loading(0, LoadingMap(MAP), [])
    assert flow.sides.team1_side is Side.CT


def vote(log: ServerLog, step: str, issue: str = "StartTimeOut ") -> ServerLog:
    return log.write(f'Vote {step} "{issue}" from #3 "Cid<3><[U:1:3]><TERRORIST><Area 1211>"')


def test_timeout_has_the_player_who_called_it() -> None:
    log = vote(vote(ServerLog().go_live(), "started"), "succeeded").round_end("CT")
    assert log.write("Match pause is enabled - TimeOutTs").last(ev.Paused).caller == id64(3)
    assert log.write("Match pause is enabled - TimeOutTs").last(ev.Paused).caller is None


@pytest.mark.parametrize(("step", "issue"), [("started", "StartTimeOut "), ("succeeded", "Kick 3")])
def test_other_votes_call_no_timeout(step: str, issue: str) -> None:
    log = vote(ServerLog().go_live(), step, issue)
    assert log.write("Match pause is enabled - TimeOutTs").last(ev.Paused).caller is None


@pytest.mark.parametrize("by", ["TimeOutCTs", "mp_pause_match"])
def test_pause_of_another_source_has_no_caller(by: str) -> None:
    log = vote(ServerLog().go_live(), "succeeded")
    assert log.write(f"Match pause is enabled - {by}").last(ev.Paused).caller is None
