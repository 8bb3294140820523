"""Test the statistics block against rows of a real log."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import StatsPlayer
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.stats_rows import stats_block
from cs2_simulator.play.player import SPECTATOR, UNASSIGNED, Participant, Player
from cs2_simulator.variables import Variables
from simulator_tests.null_outside import NoLog

ZEROS = (
    "      0,      0,      0,   0.00,   0.00,   0.00,      0,      0,      0,      0,      0,      0,      0,      0,"
    "      0,      0,      0,      0,0.000000,0.000000,      0,      0,      0"
)


def make_arena(*players: Player) -> Arena:
    """Return an arena on de_inferno with these players and without SourceTV."""
    variables = Variables()
    variables.set("hostname", 'Server "#1"')
    variables.set("tv_enable", "0")
    variables.set("sv_log_roundstats", "1")
    arena = Arena(Agenda(0), NoLog(), variables)
    arena.map_name = "de_inferno"
    arena.players.extend(players)
    return arena


def make_player(name: str, account: int, *, team: str = Side.CT, user_id: int = 1) -> Player:
    return Player(Participant(name, account), user_id, team=team, is_in_game=True, is_alive=True)


def block_of(arena: Arena) -> list[str]:
    return [line.text() for line in stats_block(arena, round_number=2, ct_score=1, t_score=0)]


def rows_of(arena: Arena) -> list[str]:
    return [
        line.columns
        for line in stats_block(arena, round_number=2, ct_score=1, t_score=0)
        if isinstance(line, StatsPlayer)
    ]


def column(row: str, number: int) -> str:
    return row.split(",")[number].strip()


def two_players() -> tuple[Arena, Player, Player]:
    ann, eve = make_player("Ann", 5), make_player("Eve", 6, team=Side.T, user_id=2)
    return make_arena(ann, eve), ann, eve


def played_round() -> tuple[Arena, Player, Player]:
    """Let Ann hit Eve with fire, a grenade and a pistol, kill her by headshot and win the round."""
    arena, ann, eve = two_players()
    arena.book.open(is_free_for_all=False, has_respawns=False)
    arena.book.round_started(1, [ann], [eve])
    arena.book.hit(ann, eve, "inferno", 53)
    arena.book.hit(ann, eve, "hegrenade", 27)
    arena.book.hit(ann, eve, "glock", 20)
    arena.book.kill(ann, eve, "glock", is_headshot=True, at_ms=1)
    arena.book.round_decided(1, ann)
    return arena, ann, eve


def test_block_has_the_layout_of_the_game() -> None:
    lines = block_of(make_arena())
    assert lines == [
        "JSON_BEGIN{",
        '"name": "round_stats",',
        '"round_number" : "2",',
        '"score_t" : "0",',
        '"score_ct" : "1",',
        '"map" : "de_inferno",',
        '"server" : "Server "#1"",',
        '"fields" : "             accountid,   team,  money,  kills, deaths,assists,    dmg,    hsp,    kdr,    adr,'
        "    mvp,     ef,     ud,     3k,     4k,     5k,clutchk, firstk,pistolk,sniperk, blindk,  bombk,firedmg,"
        'uniquek,  dinks,chickenk"',
        '"players" : {',
        "}}JSON_END",
    ]


def test_row_without_events_equals_a_real_row() -> None:
    arena = make_arena(make_player("Ann", 91379634))
    assert block_of(arena)[-2] == f'"player_1" : "            91379634,      3,    800,{ZEROS}"'


def test_counts_are_in_the_columns_of_the_game() -> None:
    arena, *_ = played_round()
    assert rows_of(arena) == [
        "                   5,      3,    800,      1,      0,      0, 100.00, 100.00,   0.00,    100,      1,      0,"
        "     80,      0,      0,      0,      1,      1,      1,      0,      0,53.000000,27.000000,      0,      1,"
        "      0",
        "                   6,      2,    800,      0,      1,      0,   0.00,   0.00,   0.00,      0,      0,      0,"
        "      0,      0,      0,      0,      0,      0,      0,      0,      0,0.000000,0.000000,      0,      0,"
        "      0",
    ]


def test_damage_per_round_is_rounded_and_ratios_have_two_decimals() -> None:
    arena, ann, eve = played_round()
    for number in (2, 3):
        arena.book.round_started(number, [ann], [eve])
        arena.book.kill(eve, ann, "awp", is_headshot=False, at_ms=number)
        arena.book.hit(ann, eve, "ak47", 50)
        arena.book.round_decided(2, eve)
    row = rows_of(arena)[0]
    assert [column(row, number) for number in (6, 7, 8, 9)] == ["200.00", "100.00", "0.50", "67"]


def test_team_numbers_are_those_of_the_game() -> None:
    teams = ["", UNASSIGNED, SPECTATOR, Side.T, Side.CT]
    arena = make_arena(*(make_player(f"p{n}", n + 1, team=team, user_id=n) for n, team in enumerate(teams)))
    assert [column(row, 1) for row in rows_of(arena)] == ["0", "0", "1", "2", "3"]


def test_source_tv_has_the_first_row_with_start_money() -> None:
    arena = make_arena(make_player("Ann", 5))
    arena.variables.set("tv_enable", "1")
    arena.variables.set("mp_startmoney", "1000")
    assert block_of(arena)[-3] == f'"player_0" : "                   0,      0,   1000,{ZEROS}"'
    assert block_of(arena)[-2].startswith('"player_1" : "                   5,')


def test_block_can_be_disabled() -> None:
    arena = make_arena(make_player("Ann", 5))
    arena.variables.set("sv_log_roundstats", "0")
    assert block_of(arena) == []


def test_player_who_left_is_listed_and_adr_is_per_round_of_the_map() -> None:
    arena, ann, eve = played_round()
    arena.players.remove(ann)
    arena.absent.append(ann)
    assert column(rows_of(arena)[0], 9) == "100"
    arena.book.round_started(2, [], [eve])
    arena.book.round_decided(2, None)
    assert [column(row, 0) for row in rows_of(arena)] == ["5", "6"]
    assert column(rows_of(arena)[0], 9) == "50"


def test_player_who_loads_the_map_again_is_listed_with_their_team() -> None:
    returning = Player(Participant("Ann", 1), 4, kept_team=Side.T, money=9300)
    assert column(rows_of(make_arena(returning))[0], 1) == "2"
    assert block_of(make_arena(returning))[-2].startswith('"player_4" : "                   1,      2,   9300,')
