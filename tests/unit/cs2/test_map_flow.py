"""Losses, crashes and confusions that must not turn a score round, lose a map or end one too early."""

from __future__ import annotations

import msgspec
import pytest

from matchpod.core import events as ev
from matchpod.core.effects import EndMatch, LoadMap, StartPlay
from matchpod.core.match import Phase
from matchpod.core.model import GameSettings, MatchType, SeriesFormat, Side, Team, TeamRoster, Winner
from matchpod.cs2.log_lines.world_lines import LoadingMap
from matchpod.cs2.map_flow import MAX_ROUNDS, PATIENCE_MS, MapFlow, MapPhase
from matchpod.cs2.match_reader import MatchReader

from .server_log import MAP, TEAM1, TEAM2, ServerLog, competitive, id64
from .test_interpreter import restore


class Played:
    """A server whose events are folded into a match."""

    def __init__(self, settings: GameSettings | None = None) -> None:
        self.log = ServerLog(settings)
        self.reader = MatchReader.create(settings or competitive(), self.log.now)
        self.reader.interpreter = self.log.interpreter
        self.effects: list[object] = []
        self.told = 0

    @property
    def match(self) -> Phase:
        return self.reader.match.phase

    def fold(self) -> Played:
        new = self.log.events[self.told :]
        self.told = len(self.log.events)
        for event in new:
            self.effects += self.reader.match.apply(event, self.log.now)
        return self


def scores(log: ServerLog) -> tuple[int, int]:
    decided = log.last(ev.RoundDecided)
    return decided.team1_score, decided.team2_score


# --- which team is which -----------------------------------------------------------------------------------------


def test_teams_that_leave_at_an_even_halftime_and_come_back_on_the_other_sides_keep_their_score() -> None:
    log = ServerLog().goes_live().plays("CT", "TERRORIST", "CT").round_end("TERRORIST")
    for account in (1, 2, 3, 4):
        log.leaves(account)
    log.swap_sides()
    log.freeze()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    log.joins(1, 2, 3, 4).round_start().plays("TERRORIST").round_end("TERRORIST")
    assert scores(log) == (4, 2)


def lose_halftime(log: ServerLog) -> ServerLog:
    """A round end and the change of sides happen, and nothing of it arrives."""
    log.score["CT"] += 1
    log.rounds += 1
    log.swap_sides()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    return log


def test_a_halftime_lost_with_the_round_before_it_is_told_by_the_score() -> None:
    log = lose_halftime(ServerLog().goes_live().plays(*["CT"] * 4, "TERRORIST"))
    log.freeze().round_start().round_end("TERRORIST")
    assert scores(log) == (6, 1)


def test_a_halftime_lost_with_every_score_line_is_told_by_the_players() -> None:
    log = lose_halftime(ServerLog().goes_live().plays("CT", "TERRORIST", "TERRORIST"))
    for account in (1, 2, 3, 4):
        log.say(f'{log.token(account)} picked up "knife"')
    log.round_start().round_end("TERRORIST")
    assert scores(log) == (3, 2)


def test_an_even_score_kept_under_the_wrong_side_is_turned_with_the_players() -> None:
    log = ServerLog().goes_live().plays("CT", "TERRORIST")
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    log.score, log.rounds = {"CT": 2, "TERRORIST": 3}, 5
    log.freeze()
    for account in (1, 2, 3, 4):
        log.say(f'{log.token(account)} picked up "knife"')
    log.round_start().round_end("TERRORIST")
    assert scores(log) == (4, 2)


def test_a_halftime_of_which_everything_was_lost_is_told_by_who_kills_whom() -> None:
    log = lose_halftime(ServerLog().goes_live().plays("CT", "TERRORIST", "TERRORIST"))
    log.freeze().round_start().kill(1, 3).kill(2, 4).round_end("TERRORIST")
    assert scores(log) == (3, 2)


def test_a_few_players_seen_on_other_sides_do_not_overrule_the_rest() -> None:
    log = ServerLog().goes_live().plays("CT")
    log.say('"Ann<1><[U:1:1]><TERRORIST>" picked up "knife"').round_start().round_end("CT")
    assert log.last(ev.RoundDecided).winner is Team.TEAM1


def test_bots_do_not_outvote_listed_players() -> None:
    log = ServerLog(
        GameSettings(
            match_type=MatchType.COMPETITIVE,
            maps=(MAP,),
            team1=TeamRoster("Reds", (id64(1),)),
            team2=TeamRoster("Blues", (id64(3),)),
        )
    ).goes_live()
    for number in range(8):
        log.say(
            f'"B{number}<{20 + number}><BOT>" switched from team <Unassigned> to <{"CT" if number < 4 else "TERRORIST"}>'
        )
    log.plays("CT")
    for number in range(8):
        log.say(f'"B{number}<{20 + number}><BOT>" switched from team <CT> to <{"TERRORIST" if number < 4 else "CT"}>')
    assert log.freeze().round_start().round_end("CT").last(ev.RoundDecided).winner is Team.TEAM1


NAMED = GameSettings(
    match_type=MatchType.COMPETITIVE, maps=(MAP,), team1=TeamRoster("Reds!"), team2=TeamRoster("Blues")
)


def test_without_listed_players_the_names_on_the_server_tell_the_teams() -> None:
    log = ServerLog(NAMED).load().joins(1, 2, 3, 4)
    log.say('Team playing "CT": Blues', 'Team playing "TERRORIST": Reds').match_start().round_start()
    assert log.last(ev.MapLive).team1_side is Side.T


@pytest.mark.parametrize("names", [("Reds", "Greens"), ("Blues", "Blues")])
def test_names_that_do_not_fit_tell_nothing(names: tuple[str, str]) -> None:
    log = ServerLog(NAMED).load().joins(1, 2, 3, 4)
    log.say(f'Team playing "CT": {names[0]}', f'Team playing "TERRORIST": {names[1]}').match_start().round_start()
    assert log.last(ev.MapLive).team1_side is Side.CT


def test_a_surrender_is_lost_by_who_surrenders_whatever_the_score() -> None:
    log = ServerLog().goes_live().plays("CT", "CT").round_end("TERRORIST", "CTs_Surrender").game_over()
    assert log.last(ev.MapEnded).winner is Team.TEAM2
    played = Played()
    played.log = log
    assert played.fold().reader.match.winner is Winner.TEAM2


def test_a_score_of_the_round_before_is_not_turned_by_the_players() -> None:
    log = ServerLog().goes_live().plays("CT", "CT").round_end("CT")
    log.swap_sides()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    for account in (1, 2, 3, 4):
        log.say(f'{log.token(account)} picked up "knife"')
    log.round_start().round_end("TERRORIST")
    assert scores(log) == (4, 0)


def test_who_was_seen_before_a_gap_is_asked_again_after_it() -> None:
    played = Played()
    log = played.log.goes_live().plays("CT", "CT")
    for account in (1, 2, 3, 4):
        log.say(f'{log.token(account)} picked up "knife"')
    log.interpreter.flow.sides.seen.clear()
    lose_halftime(log).freeze()
    log.say(f'{log.token(1)} picked up "knife"').round_start().round_end("TERRORIST")
    assert scores(log) == (4, 0)


def test_an_end_of_which_all_else_was_lost_goes_to_the_players_who_stand_there() -> None:
    log = ServerLog().load().joins(1, 2, 3, 4).match_start()
    log.side = {1: "TERRORIST", 2: "TERRORIST", 3: "CT", 4: "CT"}
    for account in (1, 2, 3, 4):
        log.say(f'{log.token(account)} picked up "knife"')
    log.game_over(score=(5, 13)).load("de_dust2")
    assert (log.last(ev.MapEnded).team1_score, log.last(ev.MapEnded).team2_score) == (13, 5)


# --- live, or not ------------------------------------------------------------------------------------------------


def test_an_empty_server_plays_nothing_that_counts() -> None:
    log = ServerLog().load().match_start(0).round_start()
    assert not log.all(ev.MapLive)
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))
    assert not ServerLog(ffa).load().match_start(0).all(ev.MapLive)


def test_an_empty_server_ends_nothing_either() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))
    log = ServerLog(ffa).load().match_start(0).game_over("deathmatch", (0, 0)).load("de_dust2")
    assert not log.all(ev.MapEnded)


def test_warmup_of_a_deathmatch_is_not_live_though_no_status_says_so() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))
    log = ServerLog(ffa).load().say('World triggered "Warmup_Start"', f'World triggered "Match_Start" on "{MAP}"')
    assert not log.joins(1).all(ev.MapLive)
    log.say('World triggered "Warmup_End"', f'World triggered "Match_Start" on "{MAP}"')
    assert len(log.all(ev.MapLive)) == 1


def test_a_deathmatch_that_started_empty_counts_from_its_first_player() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))
    log = ServerLog(ffa).load().match_start(0).wait(30).joins(1)
    assert len(log.all(ev.MapLive)) == 1


def test_a_match_whose_server_goes_back_to_warmup_waits_and_is_started_again() -> None:
    played = Played()
    played.log.goes_live().plays("CT")
    assert played.fold().match is Phase.LIVE
    played.log.match_start(-1)
    played.fold()
    assert played.match is Phase.STARTING
    assert played.effects[-1] == StartPlay(1)
    played.log.match_start(0).round_start()
    assert played.fold().match is Phase.LIVE
    assert played.reader.match.current_map.team1_score == 0


def test_a_crash_in_the_middle_of_a_map_waits_for_the_players_to_come_back() -> None:
    played = Played()
    played.log.goes_live().plays("CT")
    played.fold()
    played.log.interpreter.restart()
    played.log.events.append(ev.ServerRestarted(played.log.now))
    played.log.load().match_start(-1)
    assert played.fold().match is Phase.WARMUP
    played.log.joins(1, 2, 3, 4)
    assert played.fold().effects[-1] == StartPlay(1)


def test_a_backup_restored_by_a_fresh_process_keeps_the_rounds_it_had() -> None:
    played = Played()
    played.log.goes_live().kill(1, 3).plays("CT").kill(1, 3).plays("CT")
    started_ms = played.fold().reader.match.current_map.started_at_ms
    played.log.interpreter.restart()
    played.log.load().joins(1, 2, 3, 4).match_start(-1)
    restore(played.log, 1, 1, 0)
    current = played.fold().reader.match.current_map
    assert played.match is Phase.LIVE
    assert (current.team1_score, current.started_at_ms, len(current.ledger.rounds)) == (1, started_ms, 1)


def test_a_restore_of_which_only_the_score_arrived_takes_rounds_back() -> None:
    log = ServerLog().goes_live().plays("CT", "CT", "TERRORIST")
    log.score, log.rounds = {"CT": 1, "TERRORIST": 0}, 1
    log.freeze()
    assert log.last(ev.RoundRestored).rounds_kept == 1
    assert log.round_start().last(ev.RoundStarted).round_number == 2


def test_a_map_joined_in_the_middle_has_its_score_at_once() -> None:
    log = ServerLog().joins(1, 2, 3, 4)
    log.score, log.rounds = {"CT": 4, "TERRORIST": 3}, 7
    live = log.freeze().last(ev.MapLive)
    assert (live.team1_score, live.team2_score) == (4, 3)


# --- ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rounds", "score"), [(["CT"] * 13, (13, 0)), ([*["CT", "TERRORIST"] * 12, *["CT"] * 4], (16, 12))]
)
def test_a_won_map_whose_end_was_lost_ends_with_what_comes_after_it(rounds: list[str], score: tuple[int, int]) -> None:
    log = ServerLog().goes_live().plays(*rounds[:-1]).round_end(rounds[-1]).match_start(-1)
    assert (log.last(ev.MapEnded).team1_score, log.last(ev.MapEnded).team2_score) == score
    assert log.last(ev.MapEnded).is_complete


@pytest.mark.parametrize("rounds", [["CT"] * 12, ["CT", "TERRORIST"] * 12, ["CT"] * 3])
def test_a_map_that_is_not_won_is_only_started_again(rounds: list[str]) -> None:
    log = ServerLog().goes_live().plays(*rounds).match_start(0)
    assert not log.all(ev.MapEnded)


def test_warmup_in_the_middle_and_a_restore_keep_the_rounds_before() -> None:
    played = Played()
    played.log.goes_live().kill(1, 3).plays("CT", "CT").match_start(-1)
    restore(played.log, 1, 1, 0)
    current = played.fold().reader.match.current_map
    assert (played.match, len(current.ledger.rounds), current.team1_score) == (Phase.LIVE, 1, 1)


def test_after_a_crash_the_first_round_end_heard_goes_on_from_there() -> None:
    played = Played()
    played.log.goes_live().kill(1, 3).plays("CT", "CT")
    played.log.interpreter.restart()
    played.log.joins(1, 2, 3, 4).round_end("TERRORIST")
    current = played.fold().reader.match.current_map
    assert (current.team1_score, current.team2_score, len(current.ledger.rounds)) == (2, 1, 2)


def test_a_game_over_without_a_second_witness_is_believed_after_a_while() -> None:
    log = ServerLog().goes_live().plays("CT").game_over(score=(13, 5))
    flow, out = log.interpreter.flow, list[ev.GameEvent]()
    assert flow.next_deadline_ms() == log.now + PATIENCE_MS
    flow.settle(log.now + PATIENCE_MS - 1, out)
    assert out == []
    flow.settle(log.now + PATIENCE_MS, out)
    assert out == [ev.MapEnded(log.now, MAP, 13, 5, is_complete=False)]
    assert flow.next_deadline_ms() is None


def test_the_match_start_after_a_game_over_is_its_second_witness_and_takes_nothing_back() -> None:
    log = ServerLog().goes_live().plays("CT").game_over(score=(13, 5))
    log.say(f'World triggered "Match_Start" on "{MAP}"')
    assert isinstance(log.events[-1], ev.MapEnded)
    assert not log.all(ev.RoundRestored)


def test_a_round_printed_in_the_tick_of_the_game_over_does_not_contradict_it() -> None:
    log = ServerLog().goes_live().plays("CT").game_over(score=(13, 5)).round_start()
    assert log.interpreter.flow.claim is not None


def test_a_next_map_whose_loading_line_was_lost_is_noticed() -> None:
    for line in (
        'World triggered "Match_Start" on "de_dust2"',
        'MatchStatus: Score: 0:0 on map "de_dust2" RoundsPlayed: -1',
    ):
        log = ServerLog().goes_live().plays("CT").round_end("CT").game_over().say(line)
        assert log.last(ev.MapLoading).map_name == "de_dust2"
        assert log.interpreter.flow.phase is not MapPhase.OVER


def test_the_same_map_by_its_workshop_name_is_no_next_map() -> None:
    log = ServerLog().goes_live().plays("CT").round_end("CT").game_over()
    log.say(f'World triggered "Match_Start" on "workshop/125444404/{MAP}"')
    assert log.interpreter.flow.phase is MapPhase.OVER


def test_a_series_goes_on_though_the_end_of_its_first_map_came_by_the_plugin_alone() -> None:
    bo3 = GameSettings(
        match_type=MatchType.COMPETITIVE,
        maps=(MAP, "de_dust2", "de_mirage"),
        series_format=SeriesFormat.BO3,
        team1=TEAM1,
        team2=TEAM2,
    )
    played = Played(bo3)
    played.log.goes_live().plays("CT")
    played.fold()
    played.log.load("de_dust2")
    assert played.fold().match is Phase.LIVE
    body = b'{"event":"map_result","matchid":1,"map_number":0,"team1":{"score":13},"team2":{"score":4},"winner":{"team":"team1"}}'
    assert played.reader.read_report(body, played.log.now).effects == [LoadMap(2, "de_dust2")]
    assert played.match is Phase.BETWEEN_MAPS


def test_an_old_connection_that_ends_after_the_new_one_entered_is_not_leaving() -> None:
    log = ServerLog().goes_live()
    log.say('"Ann<7><[U:1:1]><>" entered the game', '"Ann<1><[U:1:1]><CT>" disconnected (reason "x")')
    assert not log.all(ev.PlayerDisconnected)
    log.say('"Ann<7><[U:1:1]><CT>" disconnected (reason "x")')
    assert log.last(ev.PlayerDisconnected).player_id == id64(1)


def test_a_client_that_quits_while_it_loads_is_gone() -> None:
    log = (
        ServerLog()
        .goes_live()
        .say('"Ann<7><[U:1:1]><>" connected, address "x"', '"Ann<7><[U:1:1]><>" disconnected (reason "x")')
    )
    assert log.last(ev.PlayerDisconnected).player_id == id64(1)


def test_a_kill_under_a_pending_id_is_his_who_has_the_name_and_number() -> None:
    log = ServerLog().goes_live()
    log.say('"Ann<1><STEAM_ID_PENDING><CT>" [0 0 0] killed "Cid<3><STEAM_ID_PENDING><TERRORIST>" [0 0 0] with "ak47"')
    assert (log.last(ev.Kill).killer, log.last(ev.Kill).victim) == (id64(1), id64(3))


# --- limits ------------------------------------------------------------------------------------------------------


def test_nonsense_numbers_cost_no_memory() -> None:
    log = ServerLog().goes_live().say(f'MatchStatus: Score: 5:3 on map "{MAP}" RoundsPlayed: 999999')
    log.say('Team "CT" triggered "SFUI_Notice_CTs_Win" (CT "999999") (T "999999")')
    assert len(log.interpreter.flow.scores) <= MAX_ROUNDS + 1
    assert len(msgspec.msgpack.encode(log.interpreter)) < 20_000


def test_a_server_that_ends_in_the_middle_ends_its_deathmatch_complete() -> None:
    ffa = GameSettings(match_type=MatchType.DEATHMATCH, maps=(MAP,))
    played = Played(ffa)
    played.log.load().joins(1, 2).match_start(0).kill(1, 2).game_over("deathmatch", (7, 3))
    assert played.fold().effects[-1] == EndMatch()


def test_loading_a_map_begins_with_team1_as_ct() -> None:
    flow = MapFlow.of(competitive())
    flow.sides.team1_side = Side.T
    flow.loading(0, LoadingMap(MAP), [])
    assert flow.sides.team1_side is Side.CT
