"""Test the simulator's own statistics of a map, rule by rule, with small hand-made rounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cs2_protocol.game import Side
from cs2_simulator.play.counts.book import Book
from cs2_simulator.play.counts.tally import Tally
from cs2_simulator.play.player import SPECTATOR, Participant, Player


def players(side: Side, *names: str) -> list[Player]:
    """Return living players of a side; their accounts are derived from their names."""
    return [
        Player(Participant(name, sum(map(ord, name))), number, team=side.value, is_in_game=True, is_alive=True)
        for number, name in enumerate(names)
    ]


class BookAndTeams:
    """An open book and two teams in round 1. By default they have three players, and kills are a second apart."""

    def __init__(self, size: int = 3, *, is_free_for_all: bool = False, has_respawns: bool = False) -> None:
        self.book = Book()
        self.book.open(is_free_for_all=is_free_for_all, has_respawns=has_respawns)
        self.ours = players(Side.CT, *"abcdef"[:size])
        self.theirs = players(Side.T, *"uvwxyz"[:size])
        self.now_ms = 0
        self.start(1)

    def start(self, number: int) -> None:
        self.book.round_started(number, self.ours, self.theirs)

    def kill(
        self, killer: Player, victim: Player, *, weapon: str = "ak47", after_ms: int = 1000, is_blind: bool = False
    ) -> None:
        self.now_ms += after_ms
        self.book.kill(killer, victim, weapon, is_headshot=False, at_ms=self.now_ms, is_blind=is_blind)

    def die(self, victim: Player) -> None:
        self.now_ms += 1000
        self.book.died(victim, self.now_ms)

    def leave(self, player: Player) -> None:
        self.book.player_left(player, self.now_ms)

    def tally(self, player: Player) -> Tally:
        found = [tally for tally in self.book.tallies() if tally.player_id == player.person.player_id]
        assert len(found) == 1
        return found[0]


def test_new_book_is_closed_and_counts_nothing() -> None:
    book, (ann,), (ben,) = Book(), players(Side.CT, "a"), players(Side.T, "u")
    book.round_started(1, [ann], [ben])
    book.hit(ann, ben, "ak47", 30)
    book.kill(ann, ben, "ak47", is_headshot=True, at_ms=1)
    book.died(ann, 2)
    book.assist(ann, ben, is_flash=False)
    book.blinded(ben, ann)
    book.grenade_thrown(ann, "decoy")
    book.chicken_killed(ann)
    book.bomb_planted(ben)
    book.bomb_defused(ann)
    book.player_left(ben, 3)
    book.round_decided(1, ann)
    assert (book.is_open, book.tallies(), book.rounds_played()) == (False, [], 0)


def test_open_book_counts_nothing_before_the_first_round() -> None:
    book, (ann,), (ben,) = Book(), players(Side.CT, "a"), players(Side.T, "u")
    book.open(is_free_for_all=False, has_respawns=False)
    book.kill(ann, ben, "ak47", is_headshot=True, at_ms=1)
    assert (book.is_open, book.tallies()) == (True, [])


def test_closed_book_keeps_its_counts_and_counts_nothing_more() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.book.close()
    game.kill(game.ours[0], game.theirs[1])
    game.start(2)
    assert not game.book.is_open
    assert (game.tally(game.ours[0]).kills, game.tally(game.ours[0]).rounds_played) == (1, 1)


def test_rewind_reopens_a_closed_book_with_its_rounds() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.book.round_decided(1, None)
    game.book.close()
    game.book.rewind(1)
    assert (game.book.is_open, game.book.rounds_played(), game.tally(game.ours[0]).kills) == (True, 1, 1)


def test_opening_discards_the_previous_map() -> None:
    game = BookAndTeams()
    game.book.round_decided(1, None)
    game.start(2)
    game.book.open(is_free_for_all=False, has_respawns=False)
    assert (game.book.tallies(), game.book.rounds_played()) == ([], 0)


# Counts of single events


def test_kill_counts_for_the_killer_and_death_for_the_victim() -> None:
    game = BookAndTeams()
    game.book.kill(game.ours[0], game.theirs[0], "ak47", is_headshot=True, at_ms=1)
    killer, victim = game.tally(game.ours[0]), game.tally(game.theirs[0])
    assert (killer.kills, killer.headshots, killer.deaths, killer.weapon_kills) == (1, 1, 0, {"ak47": 1})
    assert (victim.kills, victim.deaths) == (0, 1)


@pytest.mark.parametrize(
    ("weapon", "counter"),
    [
        *((weapon, "pistol_kills") for weapon in ["glock", "hkp2000", "usp_silencer", "p250", "elite"]),
        *((weapon, "pistol_kills") for weapon in ["fiveseven", "tec9", "cz75a", "deagle", "revolver"]),
        *((weapon, "sniper_kills") for weapon in ["awp", "ssg08", "scar20", "g3sg1"]),
        *((weapon, "knife_kills") for weapon in ["knife", "knife_t", "knife_butterfly", "bayonet"]),
        *((weapon, None) for weapon in ["ak47", "hegrenade", "inferno", "taser"]),
    ],
)
def test_kill_counts_in_at_most_one_weapon_class(weapon: str, counter: str | None) -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0], weapon=weapon)
    tally = game.tally(game.ours[0])
    classes = ("pistol_kills", "sniper_kills", "knife_kills")
    assert [name for name in classes if getattr(tally, name)] == ([counter] if counter else [])


def test_only_damage_to_enemies_counts() -> None:
    game = BookAndTeams()
    ann, bob, eve = game.ours[0], game.ours[1], game.theirs[0]
    game.book.hit(ann, eve, "ak47", 27)
    game.book.hit(ann, bob, "ak47", 30)
    game.book.hit(ann, ann, "hegrenade", 40)
    assert (game.tally(ann).damage, game.tally(ann).utility_damage) == (27, 0)


@pytest.mark.parametrize(
    ("weapon", "utility", "burn", "grenade"),
    [
        ("hegrenade", 10, 0, 10),
        ("inferno", 10, 10, 0),
        ("molotov", 10, 10, 0),
        ("incgrenade", 10, 10, 0),
        ("flashbang", 10, 0, 0),
        ("smokegrenade", 10, 0, 0),
        ("decoy", 10, 0, 0),
        ("awp", 0, 0, 0),
    ],
)
def test_utility_damage_is_damage_by_grenades_and_fire(weapon: str, utility: int, burn: int, grenade: int) -> None:
    game = BookAndTeams()
    game.book.hit(game.ours[0], game.theirs[0], weapon, 10)
    tally = game.tally(game.ours[0])
    assert (tally.damage, tally.utility_damage, tally.burn_damage, tally.he_damage) == (10, utility, burn, grenade)


def test_team_kill_counts_only_as_a_death_and_a_team_kill() -> None:
    game = BookAndTeams()
    ann, bob, cat = game.ours
    game.kill(game.theirs[0], cat)
    game.kill(ann, bob)
    killer = game.tally(ann)
    assert (killer.team_kills, killer.kills, killer.weapon_kills, killer.trade_kills) == (1, 0, {}, 0)
    assert (killer.clutch_kills, killer.kast_rounds, game.tally(bob).deaths) == (0, 0, 1)


def test_suicide_is_a_death_but_neither_a_kill_nor_a_team_kill() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.ours[0], weapon="hegrenade")
    tally = game.tally(game.ours[0])
    assert (tally.deaths, tally.kills, tally.team_kills, tally.first_deaths) == (1, 0, 0, 1)


def test_death_by_the_bomb_counts_only_before_the_decision() -> None:
    game = BookAndTeams()
    game.book.killed_by_bomb(game.ours[0])
    game.book.round_decided(2, None)
    game.book.killed_by_bomb(game.ours[1])
    assert (game.tally(game.ours[0]).deaths, game.tally(game.ours[1]).deaths) == (1, 0)
    assert game.tally(game.ours[1]).rounds_survived == 1


def test_death_by_bomb_or_fall_counts() -> None:
    game = BookAndTeams()
    game.die(game.ours[0])
    assert game.tally(game.ours[0]).deaths == 1


def test_player_dies_at_most_once_per_round() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.die(game.ours[0])
    game.start(2)
    game.die(game.ours[0])
    assert game.tally(game.ours[0]).deaths == 2


def test_flash_assist_also_counts_as_an_assist() -> None:
    game = BookAndTeams()
    game.book.assist(game.ours[0], game.theirs[0], is_flash=True)
    game.book.assist(game.ours[0], game.theirs[1], is_flash=False)
    assert (game.tally(game.ours[0]).assists, game.tally(game.ours[0]).flash_assists) == (2, 1)


def test_assist_on_a_teammate_does_not_count() -> None:
    game = BookAndTeams()
    game.book.assist(game.ours[0], game.ours[1], is_flash=False)
    assert (game.tally(game.ours[0]).assists, game.tally(game.ours[0]).kast_rounds) == (0, 0)


def test_only_enemies_count_as_flashed() -> None:
    game = BookAndTeams()
    for victim in (game.theirs[0], game.theirs[0], game.ours[0], game.ours[1]):
        game.book.blinded(victim, game.ours[0])
    assert game.tally(game.ours[0]).enemies_flashed == 2


def test_thrown_grenades_are_counted_by_kind() -> None:
    game = BookAndTeams()
    for grenade in ["hegrenade", "flashbang", "flashbang", "smokegrenade", "molotov", "incgrenade", "decoy"]:
        game.book.grenade_thrown(game.ours[0], grenade)
    tally = game.tally(game.ours[0])
    thrown = (tally.he_thrown, tally.flash_thrown, tally.smoke_thrown, tally.molly_thrown, tally.decoy_thrown)
    assert thrown == (1, 2, 1, 2, 1)


def test_plants_defuses_and_chickens_are_counted() -> None:
    game = BookAndTeams()
    game.book.bomb_planted(game.theirs[0])
    game.book.bomb_defused(game.ours[0])
    game.book.chicken_killed(game.ours[0])
    assert game.tally(game.theirs[0]).bomb_plants == 1
    assert (game.tally(game.ours[0]).bomb_defuses, game.tally(game.ours[0]).chicken_kills) == (1, 1)


def test_kills_while_blind_and_kills_of_the_carrier_are_counted() -> None:
    game = BookAndTeams()
    game.theirs[0].has_bomb = True
    game.kill(game.ours[0], game.theirs[0], is_blind=True)
    game.kill(game.ours[0], game.theirs[1])
    assert (game.tally(game.ours[0]).blind_kills, game.tally(game.ours[0]).carrier_kills) == (1, 1)


# First kills and deaths


def test_only_the_first_kill_and_death_count_as_first() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.kill(game.theirs[1], game.ours[0])
    assert [game.tally(p).first_kills for p in (game.ours[0], game.theirs[1])] == [1, 0]
    assert [game.tally(p).first_deaths for p in (game.theirs[0], game.ours[0])] == [1, 0]


def test_team_kill_can_be_the_first_death_but_not_the_first_kill() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.ours[1])
    game.kill(game.theirs[0], game.ours[0])
    assert (game.tally(game.ours[1]).first_deaths, game.tally(game.ours[0]).first_deaths) == (1, 0)
    assert (game.tally(game.ours[0]).first_kills, game.tally(game.theirs[0]).first_kills) == (0, 1)


def test_suicide_can_be_the_first_death() -> None:
    game = BookAndTeams()
    game.die(game.ours[2])
    game.kill(game.ours[0], game.theirs[0])
    assert (game.tally(game.ours[2]).first_deaths, game.tally(game.theirs[0]).first_deaths) == (1, 0)


def test_leaving_is_not_a_death() -> None:
    game = BookAndTeams()
    game.leave(game.ours[0])
    game.kill(game.ours[1], game.theirs[0])
    assert (game.tally(game.ours[0]).deaths, game.tally(game.ours[0]).first_deaths) == (0, 0)
    assert game.tally(game.theirs[0]).first_deaths == 1


def test_kill_after_the_round_is_decided_is_not_a_first_kill() -> None:
    game = BookAndTeams()
    game.book.round_decided(1, None)
    game.kill(game.theirs[0], game.ours[0])
    assert (game.tally(game.theirs[0]).kills, game.tally(game.theirs[0]).first_kills) == (1, 0)


def test_death_after_the_round_is_decided_is_not_a_first_death() -> None:
    game = BookAndTeams()
    game.book.round_decided(2, None)
    game.die(game.ours[0])
    assert game.tally(game.ours[0]).first_deaths == 0


# Trades


@pytest.mark.parametrize(("wait_ms", "trades"), [(0, 1), (5000, 1), (5001, 0)])
def test_trade_must_follow_within_five_seconds(wait_ms: int, trades: int) -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.ours[1], game.theirs[0], after_ms=wait_ms)
    assert (game.tally(game.ours[1]).trade_kills, game.tally(game.ours[0]).traded_deaths) == (trades, trades)


def test_kill_that_trades_two_deaths_is_one_trade_kill() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.theirs[0], game.ours[1])
    game.kill(game.ours[2], game.theirs[0])
    assert game.tally(game.ours[2]).trade_kills == 1
    assert [game.tally(player).traded_deaths for player in game.ours] == [1, 1, 0]


def test_killing_another_enemy_is_not_a_trade() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.ours[1], game.theirs[1])
    assert (game.tally(game.ours[1]).trade_kills, game.tally(game.ours[0]).traded_deaths) == (0, 0)


def test_dead_player_does_not_trade_their_own_death() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.ours[0], game.theirs[0], weapon="inferno")
    tally = game.tally(game.ours[0])
    assert (tally.kills, tally.trade_kills, tally.traded_deaths) == (1, 0, 0)


def test_dead_player_can_trade_the_death_of_a_teammate() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.theirs[0], game.ours[1])
    game.kill(game.ours[0], game.theirs[0], weapon="inferno")
    assert game.tally(game.ours[0]).trade_kills == 1
    assert [game.tally(player).traded_deaths for player in game.ours] == [0, 1, 0]


def test_team_kill_neither_trades_nor_is_traded() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.ours[1])
    game.kill(game.ours[2], game.ours[0])
    assert (game.tally(game.ours[2]).trade_kills, game.tally(game.ours[1]).traded_deaths) == (0, 0)


def test_killing_a_team_killer_is_not_a_trade() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.ours[1])
    game.kill(game.theirs[0], game.ours[0])
    assert (game.tally(game.theirs[0]).trade_kills, game.tally(game.ours[1]).traded_deaths) == (0, 0)


def test_trade_after_the_round_is_decided_is_counted() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.book.round_decided(2, None)
    game.kill(game.ours[1], game.theirs[0])
    assert (game.tally(game.ours[1]).trade_kills, game.tally(game.ours[0]).traded_deaths) == (1, 1)
    assert game.tally(game.ours[0]).kast_rounds == 1


def test_trade_does_not_count_across_rounds() -> None:
    game = BookAndTeams()
    game.kill(game.theirs[0], game.ours[0])
    game.book.round_decided(2, None)
    game.start(2)
    game.kill(game.ours[1], game.theirs[0])
    assert game.tally(game.ours[1]).trade_kills == 0


# Clutches


def clutches(tally: Tally) -> list[int]:
    return [tally.clutch1v1, tally.clutch1v2, tally.clutch1v3, tally.clutch1v4, tally.clutch1v5]


@pytest.mark.parametrize(("dead_enemies", "won"), [(2, [1, 0, 0, 0, 0]), (1, [0, 1, 0, 0, 0]), (0, [0, 0, 1, 0, 0])])
def test_clutch_size_is_the_number_of_enemies_when_one_player_is_left(dead_enemies: int, won: list[int]) -> None:
    game = BookAndTeams()
    for enemy in game.theirs[:dead_enemies]:
        game.die(enemy)
    game.die(game.ours[0])
    game.die(game.ours[1])
    for enemy in game.theirs[dead_enemies:]:
        game.kill(game.ours[2], enemy)
    game.book.round_decided(1, None)
    assert clutches(game.tally(game.ours[2])) == won
    assert game.tally(game.ours[2]).clutch_kills == 3 - dead_enemies


def test_clutch_against_more_than_five_enemies_counts_as_1v5() -> None:
    game = BookAndTeams(6)
    for player in game.ours[:5]:
        game.die(player)
    game.book.round_decided(1, None)
    assert clutches(game.tally(game.ours[5])) == [0, 0, 0, 0, 1]


def test_lost_or_drawn_round_is_not_a_won_clutch() -> None:
    for winner in (2, None):
        game = BookAndTeams()
        game.die(game.ours[0])
        game.die(game.ours[1])
        game.book.round_decided(winner, None)
        assert clutches(game.tally(game.ours[2])) == [0] * 5


def test_only_the_winner_gets_the_clutch_if_both_sides_are_in_one() -> None:
    game = BookAndTeams(2)
    game.kill(game.ours[0], game.theirs[0])
    game.kill(game.theirs[1], game.ours[0])
    game.kill(game.theirs[1], game.ours[1])
    game.book.round_decided(2, None)
    assert clutches(game.tally(game.theirs[1])) == [0, 1, 0, 0, 0]
    assert clutches(game.tally(game.ours[1])) == [0] * 5


def test_dead_player_can_win_a_clutch() -> None:
    game = BookAndTeams(2)
    game.die(game.theirs[0])
    game.kill(game.ours[0], game.theirs[1])
    game.book.round_decided(2, None)
    assert clutches(game.tally(game.theirs[1])) == [0, 1, 0, 0, 0]


def test_team_of_one_is_not_in_a_clutch() -> None:
    game = BookAndTeams()
    game.book.round_started(1, game.ours[:1], game.theirs)
    game.kill(game.ours[0], game.theirs[0])
    game.book.round_decided(1, None)
    assert clutches(game.tally(game.ours[0])) == [0] * 5


def test_last_player_without_enemies_is_not_in_a_clutch() -> None:
    game = BookAndTeams(2)
    game.die(game.theirs[0])
    game.die(game.theirs[1])
    game.die(game.ours[0])
    game.book.round_decided(1, None)
    assert clutches(game.tally(game.ours[1])) == [0] * 5


def test_leaving_can_put_a_teammate_into_a_clutch() -> None:
    game = BookAndTeams(2)
    game.leave(game.ours[0])
    game.kill(game.ours[1], game.theirs[0])
    game.book.round_decided(1, None)
    assert clutches(game.tally(game.ours[1])) == [0, 1, 0, 0, 0]
    assert game.tally(game.ours[1]).clutch_kills == 1


def test_leaving_while_dead_or_twice_changes_nothing() -> None:
    game = BookAndTeams()
    game.die(game.ours[0])
    game.leave(game.ours[0])
    game.leave(game.ours[0])
    game.kill(game.ours[1], game.theirs[0])
    game.book.round_decided(1, None)
    assert (game.tally(game.ours[1]).clutch_kills, clutches(game.tally(game.ours[1]))) == (0, [0] * 5)


def test_clutch_does_not_start_after_the_round_is_decided() -> None:
    game = BookAndTeams(2)
    game.book.round_decided(1, None)
    game.die(game.ours[0])
    game.kill(game.ours[1], game.theirs[0])
    assert (game.tally(game.ours[1]).clutch_kills, clutches(game.tally(game.ours[1]))) == (0, [0] * 5)


def test_kills_after_the_round_is_decided_are_not_clutch_kills() -> None:
    game = BookAndTeams(2)
    game.die(game.ours[0])
    game.book.round_decided(1, None)
    game.kill(game.ours[1], game.theirs[0])
    assert game.tally(game.ours[1]).clutch_kills == 0


def test_kill_by_a_dead_player_is_not_a_clutch_kill() -> None:
    game = BookAndTeams(2)
    game.die(game.ours[0])
    game.kill(game.ours[0], game.theirs[0], weapon="hegrenade")
    assert game.tally(game.ours[0]).clutch_kills == 0


# Multi-kills, survival, KAST, MVPs


@pytest.mark.parametrize(
    ("kills", "classes"),
    [(1, (0, 0, 0, 0)), (2, (1, 0, 0, 0)), (3, (0, 1, 0, 0)), (4, (0, 0, 1, 0)), (5, (0, 0, 0, 1)), (6, (0, 0, 0, 1))],
)
def test_round_counts_in_at_most_one_multi_kill_class(kills: int, classes: tuple[int, ...]) -> None:
    game = BookAndTeams(6)
    for enemy in game.theirs[:kills]:
        game.kill(game.ours[0], enemy)
    tally = game.tally(game.ours[0])
    assert (tally.double_kills, tally.triple_kills, tally.quad_kills, tally.aces) == classes


def test_kills_after_the_round_is_decided_count_for_multi_kills() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.book.round_decided(1, None)
    game.kill(game.ours[0], game.theirs[1])
    assert game.tally(game.ours[0]).double_kills == 1


def test_multi_kills_are_counted_per_round() -> None:
    game = BookAndTeams()
    for number in (1, 2):
        game.start(number)
        game.kill(game.ours[0], game.theirs[0])
        game.kill(game.ours[0], game.theirs[1])
        game.book.round_decided(1, None)
    assert (game.tally(game.ours[0]).double_kills, game.tally(game.ours[0]).quad_kills) == (2, 0)


def test_kast_counts_kill_assist_survival_or_traded_death_but_not_flash_assist() -> None:
    game = BookAndTeams(4)
    killer, helper, traded, flasher = game.ours
    game.kill(game.theirs[0], traded)
    game.kill(killer, game.theirs[0])
    game.book.assist(helper, game.theirs[0], is_flash=False)
    game.book.assist(flasher, game.theirs[0], is_flash=True)
    for player in (killer, helper, flasher):
        game.die(player)
    game.book.round_decided(2, None)
    assert [game.tally(player).kast_rounds for player in game.ours] == [1, 1, 1, 0]
    assert [game.tally(player).kast_rounds for player in game.theirs] == [1, 1, 1, 1]


def test_survivor_is_alive_and_connected_when_the_round_is_decided() -> None:
    game = BookAndTeams()
    game.leave(game.ours[0])
    game.die(game.ours[1])
    game.book.round_decided(2, None)
    game.die(game.ours[2])
    game.leave(game.theirs[0])
    assert [game.tally(player).kast_rounds for player in (*game.ours, game.theirs[0])] == [0, 0, 1, 1]
    assert game.tally(game.ours[2]).deaths == 1


def test_kast_counts_each_round_once() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.kill(game.ours[0], game.theirs[1])
    game.book.assist(game.ours[0], game.theirs[2], is_flash=False)
    game.book.round_decided(1, None)
    assert game.tally(game.ours[0]).kast_rounds == 1


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
    assert (tally.kast_rounds, tally.rounds_survived) == (0, 0)


def test_late_player_belongs_to_the_team_on_their_side() -> None:
    game = BookAndTeams()
    game.book.round_started(1, game.theirs, game.ours)
    late = players(Side.CT, "late")[0]
    game.kill(late, game.theirs[0])
    assert (game.tally(late).team, game.tally(late).kills) == (2, 1)


@pytest.mark.parametrize(("side", "team"), [(Side.CT, 1), (Side.T, 2)])
def test_team_one_is_opposite_team_two_if_only_team_two_is_present(side: Side, team: int) -> None:
    game = BookAndTeams()
    game.book.round_started(1, [], game.theirs)
    late = players(side, "late")[0]
    game.book.chicken_killed(late)
    assert game.tally(late).team == team


@pytest.mark.parametrize(("side", "team"), [(Side.CT, 1), (Side.T, 2)])
def test_team_one_is_ct_if_the_round_starts_without_players(side: Side, team: int) -> None:
    game = BookAndTeams()
    game.book.round_started(1, [], [])
    late = players(side, "late")[0]
    game.book.chicken_killed(late)
    assert game.tally(late).team == team


def test_players_without_a_side_do_not_determine_the_team_sides() -> None:
    game = BookAndTeams()
    gone, gone_too = players(Side.T, "gone", "more")
    gone.team = gone_too.team = SPECTATOR
    game.book.round_started(1, [gone], [gone_too, *game.theirs])
    late = players(Side.T, "late")[0]
    game.book.chicken_killed(late)
    assert game.tally(late).team == 2


def test_spectator_has_no_team() -> None:
    game = BookAndTeams()
    spectator = players(Side.CT, "late")[0]
    spectator.team = SPECTATOR
    game.book.chicken_killed(spectator)
    assert game.tally(spectator).team == 0


def test_unknown_player_who_leaves_gets_no_tally() -> None:
    game = BookAndTeams()
    before = len(game.book.tallies())
    game.leave(players(Side.CT, "late")[0])
    assert len(game.book.tallies()) == before


def test_player_who_changes_sides_has_other_enemies_but_the_same_team() -> None:
    game = BookAndTeams()
    game.ours[0].team = Side.T.value
    game.kill(game.ours[0], game.theirs[0])
    game.kill(game.ours[0], game.ours[1])
    mine = game.tally(game.ours[0])
    assert (mine.kills, mine.team_kills, mine.team) == (1, 1, 1)


def test_returning_player_keeps_the_tally_under_the_latest_name() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.leave(game.ours[0])
    account = game.ours[0].person.account
    back = Player(Participant("renamed", account), 9, team=Side.CT.value, is_in_game=True)
    game.book.chicken_killed(back)
    game.book.round_decided(1, None)
    assert (game.tally(back).name, game.tally(back).kills, game.tally(back).chicken_kills) == ("renamed", 1, 1)
    assert game.tally(back).kast_rounds == 1
    assert game.tally(back).rounds_survived == 0


def test_bots_are_identified_by_name() -> None:
    game = BookAndTeams()
    bots = [Player(Participant(name, 0), n, team=Side.CT.value) for n, name in enumerate(["Han", "Leo"])]
    game.book.round_started(1, bots, game.theirs)
    game.kill(bots[0], game.theirs[0])
    assert (game.tally(bots[0]).player_id, game.tally(bots[0]).kills, game.tally(bots[1]).kills) == ("BOT:Han", 1, 0)


# Repeated and discarded rounds


def test_restart_of_the_current_round_discards_its_counts() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.start(1)
    assert (game.tally(game.ours[0]).kills, game.tally(game.ours[0]).rounds_played) == (0, 1)


def test_restart_of_an_earlier_round_discards_its_counts() -> None:
    game = BookAndTeams()
    game.kill(game.ours[0], game.theirs[0])
    game.book.round_decided(1, None)
    game.start(2)
    game.book.round_decided(1, None)
    game.start(1)
    tally = game.tally(game.ours[0])
    assert (tally.kills, tally.rounds_played, game.book.rounds_played()) == (0, 2, 1)


def test_rewind_discards_later_rounds_and_the_undecided_one() -> None:
    game = BookAndTeams()
    for number in (1, 2, 3):
        game.start(number)
        game.kill(game.ours[0], game.theirs[0])
        game.book.round_decided(1, game.ours[0])
    game.start(4)
    game.kill(game.ours[0], game.theirs[0])
    game.book.rewind(2)
    tally = game.tally(game.ours[0])
    assert (tally.kills, tally.mvps, tally.rounds_played, game.book.rounds_played()) == (2, 2, 2, 2)


def test_rewind_to_the_current_round_keeps_it_if_decided() -> None:
    game = BookAndTeams()
    game.book.round_decided(1, None)
    game.book.rewind(1)
    game.kill(game.ours[0], game.theirs[0])
    tally = game.tally(game.ours[0])
    assert (tally.rounds_played, tally.kills, game.book.rounds_played()) == (1, 0, 1)


def test_rewind_to_a_later_round_discards_the_undecided_one() -> None:
    game = BookAndTeams()
    game.book.rewind(5)
    assert (game.book.tallies(), game.book.rounds_played()) == ([], 0)


def test_returned_tallies_do_not_change_later() -> None:
    game = BookAndTeams()
    before = game.tally(game.ours[0])
    game.kill(game.ours[0], game.theirs[0])
    assert (before.kills, before.weapon_kills) == (0, {})


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


def test_all_players_are_enemies_in_a_free_for_all() -> None:
    game = BookAndTeams(is_free_for_all=True, has_respawns=True)
    ann, bob, _ = game.ours
    game.kill(ann, bob)
    game.kill(ann, ann)
    game.book.hit(ann, bob, "ak47", 10)
    game.book.blinded(bob, ann)
    tally = game.tally(ann)
    assert (tally.team, tally.kills, tally.team_kills, tally.deaths, tally.damage) == (0, 1, 0, 1, 10)
    assert tally.enemies_flashed == 1


def test_free_for_all_has_no_trades_or_clutches() -> None:
    game = BookAndTeams(2, is_free_for_all=True)
    game.kill(game.theirs[0], game.ours[0])
    game.kill(game.ours[1], game.theirs[0])
    game.kill(game.ours[1], game.theirs[1])
    game.kill(game.ours[1], game.theirs[1], after_ms=0)
    game.book.round_decided(1, None)
    tally = game.tally(game.ours[1])
    assert (tally.trade_kills, tally.clutch_kills, clutches(tally), tally.kast_rounds) == (0, 0, [0] * 5, 1)


def test_late_player_in_a_free_for_all_has_no_team() -> None:
    game = BookAndTeams(is_free_for_all=True, has_respawns=True)
    late = players(Side.CT, "late")[0]
    game.kill(late, game.ours[0])
    assert (game.tally(late).team, game.tally(late).kills) == (0, 1)


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


@given(games)
def test_kills_of_a_map_are_the_sum_of_its_rounds(rounds: list[list[Act]]) -> None:
    whole, kills = BookAndTeams(), 0
    for number, each in enumerate(rounds, start=1):
        play(whole, number, each)
        alone = BookAndTeams()
        play(alone, 1, each)
        kills += sum(tally.kills for tally in alone.book.tallies())
    assert sum(tally.kills for tally in whole.book.tallies()) == kills
