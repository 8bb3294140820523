"""Test the awards of the end screen."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side
from cs2_protocol.log_lines.reader import Line
from cs2_protocol.log_lines.world_grammar import read_world
from cs2_protocol.log_lines.world_lines import Accolade
from cs2_simulator.agenda import Agenda
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.accolades import accolades
from cs2_simulator.play.player import SPECTATOR, Participant, Player
from cs2_simulator.variables import Variables

KNOWN_AWARDS = {
    *[
        "3k",
        "4k",
        "5k",
        "adr",
        "assists",
        "bombcarrierkills",
        "burndamage",
        "cashspent",
        "chickenskilled",
        "clutchkills",
        "damage",
        "deaths",
    ],
    *[
        "dinks",
        "enemiesflashed",
        "firstkills",
        "gimme_01",
        "gimme_02",
        "gimme_03",
        "gimme_04",
        "gimme_05",
        "gimme_06",
        "headshotkills",
        "hsp",
    ],
    *[
        "killreward",
        "kills",
        "killswhileblind",
        "knifekills",
        "livetime",
        "loudest",
        "mvps",
        "nopurchasewins",
        "objective",
        "pistolkills",
    ],
    *["quietest", "roundssurvived", "score", "sniperkills", "taserkills", "uniqueweaponkills", "utilitydamage"],
}


class NoLog:
    """A log that must not be used."""

    def write(self, line: Line) -> None:
        raise AssertionError("award was written to the log, not returned")

    def begin_map(self) -> None:
        raise AssertionError("unexpected map load")


def make_arena(*players: Player) -> Arena:
    """Return an arena with an open book in round 1."""
    arena = Arena(Agenda(0), NoLog(), Variables())
    arena.players.extend(players)
    arena.book.open(is_free_for_all=False, has_respawns=False)
    arena.book.round_started(1, arena.players_on(Side.CT), arena.players_on(Side.T))
    return arena


def make_team(side: Side, *user_ids: int) -> list[Player]:
    return [Player(Participant(f"p{n}", n), n, team=side, is_in_game=True, is_alive=True) for n in user_ids]


def awards_of(arena: Arena) -> list[Accolade]:
    awards = list(accolades(arena))
    assert all(isinstance(award, Accolade) for award in awards)
    return [award for award in awards if isinstance(award, Accolade)]


def test_every_player_gets_one_award_cts_first() -> None:
    ours, theirs = make_team(Side.CT, 2, 6), make_team(Side.T, 1, 3)
    awards = awards_of(make_arena(theirs[1], ours[1], theirs[0], ours[0]))
    assert [award.user_id for award in awards] == [2, 6, 1, 3]


def test_bots_and_spectators_get_no_award() -> None:
    (ann,) = make_team(Side.CT, 1)
    bot = Player(Participant("Han", 0), 2, team=Side.T, is_in_game=True)
    spectator = Player(Participant("Tim", 9), 3, team=SPECTATOR, is_in_game=True)
    assert [award.name for award in awards_of(make_arena(ann, bot, spectator))] == ["p1"]


def test_award_line_has_the_format_of_a_real_log() -> None:
    (ann,), (eve,) = make_team(Side.CT, 1), make_team(Side.T, 2)
    arena = make_arena(ann, eve)
    arena.book.chicken_killed(ann)
    arena.book.chicken_killed(ann)
    line = awards_of(arena)[0]
    assert line.text() == "ACCOLADE, FINAL: {chickenskilled},\tp1<1>,\tVALUE: 2.000000,\tPOS: 1,\tSCORE: 5.000000"
    assert read_world(line.text()) == line


def test_numbers_have_single_precision_as_in_the_game() -> None:
    (ann, bob), theirs = make_team(Side.CT, 1, 2), make_team(Side.T, 3, 4, 5)
    arena = make_arena(ann, bob, *theirs)
    for number, weapon in enumerate(["ak47", "awp", "deagle"], start=2):
        arena.book.round_started(number, [ann, bob], theirs)
        arena.book.hit(ann, theirs[0], weapon, 67)
    award = awards_of(arena)[0]
    assert (award.award, award.value) == ("adr", "50.250000")
    arena.book.round_started(2, [ann, bob], theirs)
    arena.book.round_decided(None, None)
    arena.book.rewind(2)
    arena.book.round_started(3, [ann, bob], theirs)
    arena.book.hit(ann, theirs[0], "ak47", 100)
    assert awards_of(arena)[0].value == "33.333332"


def test_second_best_player_of_a_team_has_place_two() -> None:
    ours = make_team(Side.CT, 1, 2)
    arena = make_arena(*ours)
    arena.book.chicken_killed(ours[0])
    arena.book.chicken_killed(ours[0])
    arena.book.chicken_killed(ours[1])
    assert [(award.place, award.value) for award in awards_of(arena)] == [(1, "2.000000"), (2, "1.000000")]


def test_places_are_those_within_the_team() -> None:
    (ann,), (eve,) = make_team(Side.CT, 1), make_team(Side.T, 2)
    arena = make_arena(ann, eve)
    arena.book.chicken_killed(ann)
    arena.book.chicken_killed(eve)
    arena.book.chicken_killed(eve)
    assert [award.place for award in awards_of(arena)] == [1, 1]


def test_rarest_award_wins() -> None:
    (ann,), enemies = make_team(Side.CT, 1), make_team(Side.T, 2, 3, 4, 5, 6)
    arena = make_arena(ann, *enemies)
    for enemy in enemies:
        arena.book.kill(ann, enemy, "ak47", is_headshot=True, at_ms=1)
    award = awards_of(arena)[0]
    assert (award.award, award.value) == ("5k", "1.000000")


def test_consolation_awards_are_used_in_turn() -> None:
    awards = awards_of(make_arena(*make_team(Side.CT, *range(1, 8))))
    assert [award.award for award in awards] == [*(f"gimme_0{n}" for n in range(1, 7)), "gimme_01"]
    assert all((award.value, award.place, award.score) == ("0.000000", 1, "0.000000") for award in awards)


def test_player_without_statistics_gets_a_consolation_award() -> None:
    arena = make_arena()
    arena.players.extend(make_team(Side.CT, 1))
    assert [award.award for award in awards_of(arena)] == ["gimme_01"]


kills = st.lists(
    st.tuples(st.integers(0, 4), st.integers(5, 9), st.sampled_from(["awp", "taser", "knife", "glock"])), max_size=12
)


@given(kills)
def test_every_player_gets_one_known_award_which_is_always_the_same(drawn_kills: list[tuple[int, int, str]]) -> None:
    players = [*make_team(Side.CT, *range(1, 6)), *make_team(Side.T, *range(6, 11))]
    arena = make_arena(*players)
    for killer, victim, weapon in drawn_kills:
        arena.book.kill(players[killer], players[victim], weapon, is_headshot=weapon == "awp", at_ms=1)
    arena.book.round_decided(1, players[0])
    awards = awards_of(arena)
    assert {award.award for award in awards} <= KNOWN_AWARDS
    assert set(Counter(award.user_id for award in awards).values()) == {1}
    assert awards == awards_of(arena)
    assert all(award.place >= 1 and float(award.value) >= 0 for award in awards)
