"""Rounds one after the other: halves, overtime, people who come and go, deathmatch, chance."""

from __future__ import annotations

import pytest

from matchpod.core.model import Side
from matchpod.cs2.log_lines.world_lines import MatchScore, Notice
from matchpod.simulator.play.flow.game import Phase
from matchpod.simulator.play.watcher import Watcher

from .played_server import PlayedServer


def decisions(server: PlayedServer) -> list[Notice]:
    return [line for _, line in server.log.lines if isinstance(line, Notice)]


def round_texts(server: PlayedServer, number: int) -> list[str]:
    """The lines of a round as it was last played, from its freeze time on, without the times."""
    texts = server.heard()
    begins = [index for index, text in enumerate(texts) if text == "Starting Freeze period"]
    wanted = [
        begin for begin, end in zip(begins, [*begins[1:], len(texts)], strict=True)
        if f'"round_number" : "{number}",' in texts[begin:end]
    ]  # fmt: skip
    begin = wanted[-1]
    end = next((index for index in begins if index > begin), len(texts))
    return texts[begin:end]


# --- the course ----------------------------------------------------------------------------------------------------


def test_rounds_follow_one_another_until_the_map_is_over() -> None:
    server = PlayedServer()
    server.go_live({"mp_match_can_clinch": "0"})
    server.until("over")
    notes = server.watcher.notes[server.watcher.notes.index("live") :]
    rounds = [[f"freeze {n}", f"round {n}", f"end {n}"] for n in range(1, 5)]
    assert notes == ["live", *rounds[0], *rounds[1], *rounds[2], *rounds[3], "over"]


def test_times_of_a_round_are_those_of_the_variables() -> None:
    server = PlayedServer()
    server.go_live({"mp_freezetime": "12", "mp_round_restart_delay": "6"})
    began = server.agenda.now_ms
    server.until("round 1")
    assert server.agenda.now_ms - began == 12_000
    server.until("end 1")
    ended = server.agenda.now_ms
    server.until("freeze 2")
    assert server.agenda.now_ms - ended == 6_000


def test_notice_counts_the_round_and_the_block_after_it_too() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("freeze 2")
    (notice,) = decisions(server)
    assert notice.ct + notice.t == 1
    assert (server.game.side_score(Side.CT), server.game.side_score(Side.T)) == (notice.ct, notice.t)
    assert server.arena.book.rounds_played() == 1


def test_halftime_changes_sides_before_the_freeze_time_and_keeps_the_old_names() -> None:
    server = PlayedServer()
    server.go_live({"mp_match_can_clinch": "0", "mp_halftime_duration": "10", "mp_round_restart_delay": "7"})
    server.until("end 2")
    ended, score = server.agenda.now_ms, server.game.score
    server.wait(16.9)
    server.start_listening()
    server.until("freeze 3")
    assert server.agenda.now_ms - ended == 17_000
    heard = [line for line in server.heard() if "money change" not in line]
    assert heard[:5] == [
        '"p101<1><[U:1:101]>" switched from team <CT> to <TERRORIST>',
        '"p201<2><[U:1:201]>" switched from team <TERRORIST> to <CT>',
        '"p102<3><[U:1:102]>" switched from team <CT> to <TERRORIST>',
        '"p202<4><[U:1:202]>" switched from team <TERRORIST> to <CT>',
        "Starting Freeze period",
    ]
    assert server.world()[-3:] == [
        'MatchStatus: Team playing "CT": Reds',
        'MatchStatus: Team playing "TERRORIST": Blues',
        f'MatchStatus: Score: {score[1]}:{score[0]} on map "de_nuke" RoundsPlayed: 2',
    ]
    assert server.block_values("score_ct") == [str(score[1])]
    assert all(player.money == server.variables.whole("mp_startmoney") for player in server.arena.players)
    server.until("end 3")
    assert 'MatchStatus: Team playing "CT": Blues' in server.world()


def test_overtime_is_played_with_its_own_money_and_changes_sides_in_its_middle() -> None:
    server = PlayedServer({"sim_scenario": "overtime"})
    server.go_live({"mp_overtime_enable": "1", "mp_overtime_maxrounds": "4", "mp_overtime_startmoney": "9000"})
    server.until("freeze 5")
    assert (server.game.score, server.game.team1_side) == ((2, 2), Side.T)
    assert {player.money for player in server.arena.players} == {9000}
    server.until("freeze 7")
    assert server.is_team1_on(Side.CT)
    server.until("over")
    assert server.game.score[0] != server.game.score[1]


def test_tie_is_the_end_even_where_overtime_is_on() -> None:
    server = PlayedServer({"sim_scenario": "tie"})
    server.go_live({"mp_overtime_enable": "1"})
    server.until("over")
    assert server.game.score == (2, 2)
    assert "score 2:2 after" in server.world()[-1]


def test_time_limit_ends_a_map_without_a_limit_of_rounds() -> None:
    server = PlayedServer({"game_type": "3", "game_mode": "0"})
    server.go_live({"mp_maxrounds": "0", "mp_timelimit": "3"})
    server.until("over")
    assert server.world()[-1].startswith("Game Over: custom  de_nuke score ")


@pytest.mark.parametrize(
    ("settings", "map_name", "mode"),
    [
        ({"game_mode": "2"}, "de_nuke", "scrimcomp2v2"),
        ({"game_mode": "0"}, "cs_office", "casual"),
        ({"game_mode": "5"}, "de_nuke", "retakes"),
    ],
)
def test_every_mode_with_rounds_comes_to_its_end(settings: dict[str, str], map_name: str, mode: str) -> None:
    server = PlayedServer(settings, map_name=map_name)
    server.go_live()
    server.until("over")
    assert server.world()[-1].startswith(f"Game Over: {mode}  {map_name} score ")
    assert bool([line for line in server.heard() if "Got_The_Bomb" in line]) is (map_name == "de_nuke")


# --- people come and go --------------------------------------------------------------------------------------------


def test_who_comes_in_a_round_waits_for_the_next() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("round 1")
    late = server.come(300, Side.CT)
    assert not late.is_alive
    server.until("freeze 2")
    assert late.is_alive


def test_who_comes_in_freeze_time_plays_at_once() -> None:
    server = PlayedServer()
    server.go_live()
    assert server.come(300, Side.CT).is_alive


def test_game_without_people_waits_in_silence_and_goes_on_with_the_first_who_comes() -> None:
    server = PlayedServer()
    server.go_live()
    server.until("round 1")
    server.empty()
    server.wait(20)
    played = server.game.rounds_played
    server.start_listening()
    server.wait(3600)
    assert server.heard() == []
    assert server.is_in(Phase.LIVE)
    server.come(101, Side.CT)
    assert server.watcher.notes[-1] == f"freeze {played + 1}"


def test_freeze_time_that_everybody_left_starts_no_round() -> None:
    server = PlayedServer()
    server.go_live()
    server.empty()
    server.wait(60)
    assert 'World triggered "Round_Start"' not in server.world()
    server.come(101, Side.CT)
    server.come(201, Side.T)
    server.until("round 1")


# --- watchers may change everything --------------------------------------------------------------------------------


class Impatient(Watcher):
    """Does something as soon as a freeze time or a match begins."""

    def __init__(self, server: PlayedServer) -> None:
        self._server = server

    def freeze_began(self, round_number: int) -> None:
        if round_number == 2:
            self._server.game.start_warmup()


def test_watcher_who_ends_a_freeze_time_is_the_last_to_hear_of_it() -> None:
    server = PlayedServer()
    server.arena.watchers.insert(0, Impatient(server))
    server.go_live({"mp_warmup_pausetimer": "1"})
    server.until("end 1")
    server.wait(60)
    assert "freeze 2" not in server.watcher.notes
    assert server.is_in(Phase.WARMUP)


# --- backups -------------------------------------------------------------------------------------------------------


def test_backup_is_written_at_each_freeze_time() -> None:
    server = PlayedServer()
    server.go_live({"mp_backup_round_file": "final"})
    assert server.game.last_backup == "final_round00.txt"
    server.until("freeze 2")
    assert server.game.backups() == ["final_round01.txt", "final_round00.txt"]


def test_no_backup_where_they_are_off() -> None:
    server = PlayedServer()
    server.go_live({"mp_backup_round_auto": "0"})
    assert server.game.backups() == []


# --- deathmatch ----------------------------------------------------------------------------------------------------


def deathmatch(settings: dict[str, str]) -> PlayedServer:
    server = PlayedServer({"game_type": "1", "game_mode": "2"})
    server.go_live({"mp_freezetime": "0", "mp_timelimit": "5", **settings})
    return server


def test_deathmatch_is_one_round_until_its_time_is_up() -> None:
    server = deathmatch({"mp_teammates_are_enemies": "1"})
    began = server.agenda.now_ms
    server.until("over")
    assert abs(server.agenda.now_ms - began - 300_000) < 1000
    world = server.world()
    assert world.count('World triggered "Round_Start"') == 1
    assert decisions(server) == []
    assert world[-1] == "Game Over: deathmatch  de_nuke score 0:0 after 5 min"
    assert sum(tally.kills for tally in server.arena.book.tallies()) > 20


def test_deathmatch_of_teams_ends_with_their_kills() -> None:
    server = deathmatch({"mp_teammates_are_enemies": "0"})
    server.until("over")
    tallies = server.arena.book.tallies()
    kills = [sum(tally.kills for tally in tallies if tally.team == team) for team in (1, 2)]
    assert server.game.score == tuple(kills)
    last = [line for _, line in server.log.lines if isinstance(line, MatchScore)][-1]
    assert (last.ct, last.t) == tuple(kills)


def test_deathmatch_without_a_limit_goes_on() -> None:
    server = deathmatch({"mp_timelimit": "0"})
    server.wait(3600)
    assert server.is_in(Phase.LIVE)


def test_time_goes_on_where_rounds_take_none() -> None:
    server = PlayedServer()
    server.go_live({"mp_freezetime": "0", "mp_round_restart_delay": "0", "mp_maxrounds": "0", "mp_roundtime": "0.0001"})
    server.set({"mp_roundtime_defuse": "0.0001"})
    server.wait(20)
    assert 10 < server.game.rounds_played < 250


# --- chance --------------------------------------------------------------------------------------------------------


def match_lines(server: PlayedServer) -> list[str]:
    """All lines from the start of the match that was played to its end."""
    server.until("over")
    heard = server.heard()
    return heard[len(heard) - heard[::-1].index('World triggered "Match_Start" on "de_nuke"') :]


def test_same_seed_plays_the_same_match_whatever_happened_before_it() -> None:
    plain = PlayedServer()
    plain.go_live()
    other = PlayedServer()
    other.game.load_map("de_nuke")
    other.wait(100)
    other.fill()
    other.game.restart(2)
    other.wait(200)
    other.set({"mp_freezetime": "5", "mp_maxrounds": "4"})
    other.game.end_warmup()
    other.wait(3)
    other.game.restart(1)
    other.until("freeze 1")
    assert match_lines(other) == match_lines(plain)


def test_another_seed_plays_another_match() -> None:
    one, two = PlayedServer(), PlayedServer({"sim_seed": "2"})
    one.go_live()
    two.go_live()
    assert match_lines(one) != match_lines(two)


def test_round_played_again_differs() -> None:
    server = PlayedServer()
    server.go_live({"mp_backup_round_file": "b"})
    server.until("freeze 2")
    first = round_texts(server, 1)
    assert server.game.restore("b_round00.txt")
    server.until("freeze 2")
    assert [line for line in round_texts(server, 1) if " attacked " in line] != [
        line for line in first if " attacked " in line
    ]


def test_match_does_not_depend_on_the_tick_it_starts_in() -> None:
    servers = [PlayedServer(), PlayedServer()]
    # A tick has 15.625 ms: spans of time have other lengths in whole milliseconds from here on.
    servers[1].wait(3 / 64)
    for server in servers:
        server.go_live({"mp_maxrounds": "8"})
    assert match_lines(servers[0]) == match_lines(servers[1])


def test_match_started_anew_is_the_same_match() -> None:
    plain, other = PlayedServer(), PlayedServer()
    plain.go_live()
    other.go_live()
    other.until("round 2")
    other.game.restart(1)
    other.until("freeze 1")
    assert match_lines(other) == match_lines(plain)


def test_match_of_another_map_load_is_the_same_match_until_one_was_played_to_its_end() -> None:
    plain, other = PlayedServer(), PlayedServer()
    plain.go_live()
    other.go_live()
    other.until("round 2")
    other.game.load_map("de_nuke")
    other.wait(10)
    other.go_live()
    first = match_lines(other)
    other.game.load_map("de_nuke")
    other.wait(10)
    other.go_live()
    assert first == match_lines(plain) != match_lines(other)
