"""Test the simulator's own statistics of a map: which rounds and players they have, in all modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side
from cs2_simulator.play.counts.book import Book
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.player import SPECTATOR
from simulator_tests.play.counts.counted_round import BookAndTeams, players


def test_new_book_is_closed_and_counts_nothing() -> None:
    book, (ann,), (ben,) = Book(), players(Side.CT, "a"), players(Side.T, "u")
    book.round_started(1, [ann], [ben])
    book.hit(ann, ben, "ak47", 30)
    book.kill(ann, ben, "ak47", is_headshot=True, at_ms=1)
    book.died(ann)
    book.assist(ann, ben, is_flash=False)
    book.blinded(ben, ann)
    book.grenade_thrown(ann, "decoy")
    book.chicken_killed(ann)
    book.bomb_planted(ben)
    book.bomb_defused(ann)
    book.player_left(ben)
    book.round_decided(1, ann)
    assert (book.is_open, book.tallies(), book.rounds_played()) == (False, [], 0)


def test_rewind_reopens_a_closed_book_with_its_rounds() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.book.round_decided(1, None)
    game.book.close()
    game.book.rewind(1)
    assert (game.book.is_open, game.book.rounds_played(), game.tally(game.ours[0]).kills) == (True, 1, 1)


def clutches(tally: Tally) -> list[int]:
    return [tally.clutch1v1, tally.clutch1v2, tally.clutch1v3, tally.clutch1v4, tally.clutch1v5]


def test_round_can_be_decided_only_once() -> None:
    game = BookAndTeams()
    game.book.round_decided(1, game.ours[0])
    game.book.round_decided(2, game.theirs[0])
    assert (game.tally(game.ours[0]).mvps, game.tally(game.theirs[0]).mvps, game.book.rounds_played()) == (1, 0, 1)


# Players and teams


def test_round_is_counted_as_played_only_for_players_who_start_it() -> None:
    game = BookAndTeams()
    game.book.round_decided(1, None)
    game.book.round_started(2, game.ours[1:], game.theirs)
    assert [game.tally(player).rounds_played for player in (game.ours[0], game.ours[1])] == [1, 2]
    assert game.book.rounds_played() == 1


def test_events_of_a_player_who_joins_mid_round_count_but_the_round_does_not() -> None:
    game = BookAndTeams()
    (late,) = players(Side.CT, "late")
    game.book.hit(late, game.theirs[0], "ak47", 50)
    game.book.hit(late, game.ours[0], "ak47", 50)
    game.kill(late, game.theirs[0])
    game.die(late)
    game.book.round_decided(1, None)
    tally = game.tally(late)
    assert (tally.team, tally.rounds_played, tally.kills, tally.damage, tally.deaths) == (1, 0, 1, 50, 1)
    assert tally.kast_rounds == 0


@pytest.mark.parametrize(("side", "team"), [(Side.CT, 1), (Side.T, 2)])
def test_team_one_is_opposite_team_two_if_only_team_two_is_present(side: Side, team: int) -> None:
    game = BookAndTeams()
    game.book.round_started(1, [], game.theirs)
    late = players(side, "late")[0]
    game.book.chicken_killed(late)
    assert game.tally(late).team == team


def test_spectator_has_no_team() -> None:
    game = BookAndTeams()
    spectator = players(Side.CT, "late")[0]
    spectator.team = SPECTATOR
    game.book.chicken_killed(spectator)
    assert game.tally(spectator).team == 0


def test_player_who_changes_sides_has_other_enemies_but_the_same_team() -> None:
    game = BookAndTeams()
    game.ours[0].team = Side.T.value
    game.kill(game.ours[0], game.theirs[0])
    game.kill(game.ours[0], game.ours[1])
    mine = game.tally(game.ours[0])
    assert (mine.kills, mine.team_kills, mine.team) == (1, 1, 1)


# Other modes


def test_respawn_mode_has_no_first_kills_trades_multi_kills_kast_or_clutches() -> None:
    game = BookAndTeams(2, has_respawns=True)
    ann, eve = game.ours[0], game.theirs[0]
    game.kill(eve, game.ours[1])
    game.kill(ann, eve)
    game.kill(ann, eve)
    game.book.assist(ann, eve, is_flash=False)
    game.leave(game.ours[1])
    game.book.round_decided(1, ann)
    tally = game.tally(ann)
    round_stats = (tally.first_kills, tally.trade_kills, tally.double_kills, tally.kast_rounds, tally.clutch_kills)
    assert round_stats == (0, 0, 0, 0, 0)
    assert (tally.kills, tally.assists, tally.mvps, clutches(tally)) == (2, 1, 1, [0] * 5)
    assert (game.tally(eve).deaths, game.tally(eve).first_deaths, game.tally(game.ours[1]).traded_deaths) == (2, 0, 0)


# Properties

Act = tuple[str, int, int]
acts = st.lists(st.tuples(st.sampled_from(["kill", "die", "leave", "decide"]), st.integers(0, 5), st.integers(0, 5)))
games = st.lists(acts, min_size=1, max_size=4)


def play(game: BookAndTeams, number: int, round_acts: list[Act]) -> int:
    """Play a round in which only living players die; return the number of deaths without a killer."""
    game.start(number)
    everyone = [*game.ours, *game.theirs]
    alive, suicides = set(range(6)), 0
    for act, one, other in round_acts:
        if act == "decide":
            game.book.round_decided(one % 3 or None, everyone[other])
        elif other not in alive:
            continue
        elif act == "leave":
            game.leave(everyone[other])
            alive.discard(other)
        else:
            alive.discard(other)
            if act == "die" or one == other:
                game.die(everyone[other])
                suicides += 1
            else:
                game.kill(everyone[one], everyone[other])
    game.book.round_decided(None, None)
    return suicides


@given(games)
def test_deaths_are_the_sum_of_kills_team_kills_and_suicides(rounds: list[list[Act]]) -> None:
    game = BookAndTeams()
    suicides = sum([play(game, number, each) for number, each in enumerate(rounds, start=1)])
    tallies = game.book.tallies()
    assert sum(t.deaths for t in tallies) == sum(t.kills + t.team_kills for t in tallies) + suicides


@given(games)
def test_counts_stay_within_their_bounds(rounds: list[list[Act]]) -> None:
    game = BookAndTeams()
    for number, each in enumerate(rounds, start=1):
        play(game, number, each)
    tallies = game.book.tallies()
    for tally in tallies:
        assert tally.rounds_played == len(rounds)
        assert tally.kast_rounds <= tally.rounds_played
        assert tally.traded_deaths <= tally.deaths <= tally.rounds_played
        assert max(tally.trade_kills, tally.clutch_kills, tally.first_kills) <= tally.kills
        assert tally.kills == sum(tally.weapon_kills.values())
    assert sum(tally.first_kills for tally in tallies) <= len(rounds)
    assert sum(tally.first_deaths for tally in tallies) <= len(rounds)
    assert sum(sum(clutches(tally)) for tally in tallies) <= len(rounds)


@given(games, st.data())
def test_rewind_equals_not_having_played_the_later_rounds(rounds: list[list[Act]], draw: st.DataObject) -> None:
    kept = draw.draw(st.integers(1, len(rounds)))
    long, short = BookAndTeams(), BookAndTeams()
    for number, each in enumerate(rounds, start=1):
        play(long, number, each)
        if number <= kept:
            play(short, number, each)
    if draw.draw(st.booleans()):
        long.start(len(rounds) + 1)
        long.kill(long.ours[0], long.theirs[0])
    long.book.rewind(kept)
    assert long.book.tallies() == short.book.tallies()
    assert long.book.rounds_played() == short.book.rounds_played() == kept
