"""The simulator's own count of a map, rule by rule, in little rounds made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.core.model import Side
from matchpod.simulator.play.counts.book import Book
from matchpod.simulator.play.counts.tally import Tally
from matchpod.simulator.play.player import SPECTATOR, Person, Player


def people(side: Side, *names: str) -> list[Player]:
    """Living players of a side; their accounts follow from their names."""
    return [
        Player(Person(name, sum(map(ord, name))), number, team=side.value, is_in_game=True, is_alive=True)
        for number, name in enumerate(names)
    ]


class Told:
    """An open book with teams of three to tell it about; kills are a second apart unless said otherwise."""

    def __init__(self, size: int = 3, *, is_free_for_all: bool = False, has_respawns: bool = False) -> None:
        self.book = Book()
        self.book.open(is_free_for_all=is_free_for_all, has_respawns=has_respawns)
        self.ours = people(Side.CT, *"abcdef"[:size])
        self.theirs = people(Side.T, *"uvwxyz"[:size])
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
        self.book.left(player, self.now_ms)

    def of(self, player: Player) -> Tally:
        found = [tally for tally in self.book.tallies() if tally.player_id == player.person.player_id]
        assert len(found) == 1
        return found[0]


def test_new_book_is_closed_and_hears_nothing() -> None:
    book, (ann,), (ben,) = Book(), people(Side.CT, "a"), people(Side.T, "u")
    book.round_started(1, [ann], [ben])
    book.hit(ann, ben, "ak47", 30)
    book.kill(ann, ben, "ak47", is_headshot=True, at_ms=1)
    book.died(ann, 2)
    book.assist(ann, ben, is_flash=False)
    book.blinded(ben, ann)
    book.threw(ann, "decoy")
    book.chicken(ann)
    book.planted(ben)
    book.defused(ann)
    book.left(ben, 3)
    book.decided(1, ann)
    assert (book.is_open, book.tallies(), book.rounds_played()) == (False, [], 0)


def test_open_book_hears_nothing_before_the_first_round() -> None:
    book, (ann,), (ben,) = Book(), people(Side.CT, "a"), people(Side.T, "u")
    book.open(is_free_for_all=False, has_respawns=False)
    book.kill(ann, ben, "ak47", is_headshot=True, at_ms=1)
    assert (book.is_open, book.tallies()) == (True, [])


def test_closed_book_keeps_its_counts_and_hears_no_more() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.book.close()
    told.kill(told.ours[0], told.theirs[1])
    told.start(2)
    assert not told.book.is_open
    assert (told.of(told.ours[0]).kills, told.of(told.ours[0]).rounds_played) == (1, 1)


def test_backup_opens_the_book_again_with_its_rounds() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.book.decided(1, None)
    told.book.close()
    told.book.rewind(1)
    assert (told.book.is_open, told.book.rounds_played(), told.of(told.ours[0]).kills) == (True, 1, 1)


def test_opening_forgets_the_map_before() -> None:
    told = Told()
    told.book.decided(1, None)
    told.start(2)
    told.book.open(is_free_for_all=False, has_respawns=False)
    assert (told.book.tallies(), told.book.rounds_played()) == ([], 0)


# Acts that count by themselves


def test_kill_counts_for_one_and_death_for_the_other() -> None:
    told = Told()
    told.book.kill(told.ours[0], told.theirs[0], "ak47", is_headshot=True, at_ms=1)
    killer, victim = told.of(told.ours[0]), told.of(told.theirs[0])
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
def test_weapon_puts_a_kill_into_one_class_at_most(weapon: str, counter: str | None) -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0], weapon=weapon)
    tally = told.of(told.ours[0])
    classes = ("pistol_kills", "sniper_kills", "knife_kills")
    assert [name for name in classes if getattr(tally, name)] == ([counter] if counter else [])


def test_damage_is_what_enemies_lost() -> None:
    told = Told()
    ann, bob, eve = told.ours[0], told.ours[1], told.theirs[0]
    told.book.hit(ann, eve, "ak47", 27)
    told.book.hit(ann, bob, "ak47", 30)
    told.book.hit(ann, ann, "hegrenade", 40)
    assert (told.of(ann).damage, told.of(ann).utility_damage) == (27, 0)


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
def test_utility_damage_is_by_grenades_and_fire(weapon: str, utility: int, burn: int, grenade: int) -> None:
    told = Told()
    told.book.hit(told.ours[0], told.theirs[0], weapon, 10)
    tally = told.of(told.ours[0])
    assert (tally.damage, tally.utility_damage, tally.burn_damage, tally.he_damage) == (10, utility, burn, grenade)


def test_team_kill_is_a_death_and_nothing_else() -> None:
    told = Told()
    ann, bob, cat = told.ours
    told.kill(told.theirs[0], cat)
    told.kill(ann, bob)
    killer = told.of(ann)
    assert (killer.team_kills, killer.kills, killer.weapon_kills, killer.trade_kills) == (1, 0, {}, 0)
    assert (killer.clutch_kills, killer.kast_rounds, told.of(bob).deaths) == (0, 0, 1)


def test_kill_of_oneself_is_a_death_only() -> None:
    told = Told()
    told.kill(told.ours[0], told.ours[0], weapon="hegrenade")
    tally = told.of(told.ours[0])
    assert (tally.deaths, tally.kills, tally.team_kills, tally.first_deaths) == (1, 0, 0, 1)


def test_death_by_bomb_or_fall_counts() -> None:
    told = Told()
    told.die(told.ours[0])
    assert told.of(told.ours[0]).deaths == 1


def test_nobody_dies_twice_in_a_round() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.die(told.ours[0])
    told.start(2)
    told.die(told.ours[0])
    assert told.of(told.ours[0]).deaths == 2


def test_flash_assist_is_an_assist_too() -> None:
    told = Told()
    told.book.assist(told.ours[0], told.theirs[0], is_flash=True)
    told.book.assist(told.ours[0], told.theirs[1], is_flash=False)
    assert (told.of(told.ours[0]).assists, told.of(told.ours[0]).flash_assists) == (2, 1)


def test_helping_to_kill_a_team_mate_is_no_assist() -> None:
    told = Told()
    told.book.assist(told.ours[0], told.ours[1], is_flash=False)
    assert (told.of(told.ours[0]).assists, told.of(told.ours[0]).kast_rounds) == (0, 0)


def test_only_enemies_count_as_flashed() -> None:
    told = Told()
    for victim in (told.theirs[0], told.theirs[0], told.ours[0], told.ours[1]):
        told.book.blinded(victim, told.ours[0])
    assert told.of(told.ours[0]).enemies_flashed == 2


def test_grenades_are_counted_by_kind() -> None:
    told = Told()
    for grenade in ["hegrenade", "flashbang", "flashbang", "smokegrenade", "molotov", "incgrenade", "decoy"]:
        told.book.threw(told.ours[0], grenade)
    tally = told.of(told.ours[0])
    thrown = (tally.he_thrown, tally.flash_thrown, tally.smoke_thrown, tally.molly_thrown, tally.decoy_thrown)
    assert thrown == (1, 2, 1, 2, 1)


def test_bomb_and_chickens_are_counted() -> None:
    told = Told()
    told.book.planted(told.theirs[0])
    told.book.defused(told.ours[0])
    told.book.chicken(told.ours[0])
    assert told.of(told.theirs[0]).bomb_plants == 1
    assert (told.of(told.ours[0]).bomb_defuses, told.of(told.ours[0]).chicken_kills) == (1, 1)


def test_kill_while_blind_and_kill_of_the_carrier_are_noted() -> None:
    told = Told()
    told.theirs[0].has_bomb = True
    told.kill(told.ours[0], told.theirs[0], is_blind=True)
    told.kill(told.ours[0], told.theirs[1])
    assert (told.of(told.ours[0]).blind_kills, told.of(told.ours[0]).carrier_kills) == (1, 1)


# Openings


def test_first_kill_and_first_death_are_one_each() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.kill(told.theirs[1], told.ours[0])
    assert [told.of(p).first_kills for p in (told.ours[0], told.theirs[1])] == [1, 0]
    assert [told.of(p).first_deaths for p in (told.theirs[0], told.ours[0])] == [1, 0]


def test_team_kill_is_no_first_kill_but_a_first_death() -> None:
    told = Told()
    told.kill(told.ours[0], told.ours[1])
    told.kill(told.theirs[0], told.ours[0])
    assert (told.of(told.ours[1]).first_deaths, told.of(told.ours[0]).first_deaths) == (1, 0)
    assert (told.of(told.ours[0]).first_kills, told.of(told.theirs[0]).first_kills) == (0, 1)


def test_fall_can_be_the_first_death() -> None:
    told = Told()
    told.die(told.ours[2])
    told.kill(told.ours[0], told.theirs[0])
    assert (told.of(told.ours[2]).first_deaths, told.of(told.theirs[0]).first_deaths) == (1, 0)


def test_leaving_is_no_death() -> None:
    told = Told()
    told.leave(told.ours[0])
    told.kill(told.ours[1], told.theirs[0])
    assert (told.of(told.ours[0]).deaths, told.of(told.ours[0]).first_deaths) == (0, 0)
    assert told.of(told.theirs[0]).first_deaths == 1


def test_kill_after_the_decision_is_no_first_kill() -> None:
    told = Told()
    told.book.decided(1, None)
    told.kill(told.theirs[0], told.ours[0])
    assert (told.of(told.theirs[0]).kills, told.of(told.theirs[0]).first_kills) == (1, 0)


def test_whoever_dies_after_the_decision_opened_nothing() -> None:
    told = Told()
    told.book.decided(2, None)
    told.die(told.ours[0])
    assert told.of(told.ours[0]).first_deaths == 0


# Trades


@pytest.mark.parametrize(("wait_ms", "trades"), [(0, 1), (5000, 1), (5001, 0)])
def test_trade_takes_five_seconds_at_most(wait_ms: int, trades: int) -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.ours[1], told.theirs[0], after_ms=wait_ms)
    assert (told.of(told.ours[1]).trade_kills, told.of(told.ours[0]).traded_deaths) == (trades, trades)


def test_one_kill_is_one_trade_but_avenges_everybody() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.theirs[0], told.ours[1])
    told.kill(told.ours[2], told.theirs[0])
    assert told.of(told.ours[2]).trade_kills == 1
    assert [told.of(player).traded_deaths for player in told.ours] == [1, 1, 0]


def test_killing_somebody_else_is_no_trade() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.ours[1], told.theirs[1])
    assert (told.of(told.ours[1]).trade_kills, told.of(told.ours[0]).traded_deaths) == (0, 0)


def test_dead_man_does_not_avenge_himself() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.ours[0], told.theirs[0], weapon="inferno")
    tally = told.of(told.ours[0])
    assert (tally.kills, tally.trade_kills, tally.traded_deaths) == (1, 0, 0)


def test_dead_man_can_avenge_a_team_mate() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.theirs[0], told.ours[1])
    told.kill(told.ours[0], told.theirs[0], weapon="inferno")
    assert told.of(told.ours[0]).trade_kills == 1
    assert [told.of(player).traded_deaths for player in told.ours] == [0, 1, 0]


def test_team_kill_neither_trades_nor_is_traded() -> None:
    told = Told()
    told.kill(told.ours[0], told.ours[1])
    told.kill(told.ours[2], told.ours[0])
    assert (told.of(told.ours[2]).trade_kills, told.of(told.ours[1]).traded_deaths) == (0, 0)


def test_enemy_who_kills_a_team_killer_trades_nobody() -> None:
    told = Told()
    told.kill(told.ours[0], told.ours[1])
    told.kill(told.theirs[0], told.ours[0])
    assert (told.of(told.theirs[0]).trade_kills, told.of(told.ours[1]).traded_deaths) == (0, 0)


def test_trade_after_the_decision_counts() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.book.decided(2, None)
    told.kill(told.ours[1], told.theirs[0])
    assert (told.of(told.ours[1]).trade_kills, told.of(told.ours[0]).traded_deaths) == (1, 1)
    assert told.of(told.ours[0]).kast_rounds == 1


def test_trades_do_not_reach_into_the_next_round() -> None:
    told = Told()
    told.kill(told.theirs[0], told.ours[0])
    told.book.decided(2, None)
    told.start(2)
    told.kill(told.ours[1], told.theirs[0])
    assert told.of(told.ours[1]).trade_kills == 0


# Clutches


def clutches(tally: Tally) -> list[int]:
    return [tally.clutch1v1, tally.clutch1v2, tally.clutch1v3, tally.clutch1v4, tally.clutch1v5]


@pytest.mark.parametrize(("fallen_enemies", "won"), [(2, [1, 0, 0, 0, 0]), (1, [0, 1, 0, 0, 0]), (0, [0, 0, 1, 0, 0])])
def test_clutch_class_is_the_enemies_left_when_the_team_drops_to_one(fallen_enemies: int, won: list[int]) -> None:
    told = Told()
    for enemy in told.theirs[:fallen_enemies]:
        told.die(enemy)
    told.die(told.ours[0])
    told.die(told.ours[1])
    for enemy in told.theirs[fallen_enemies:]:
        told.kill(told.ours[2], enemy)
    told.book.decided(1, None)
    assert clutches(told.of(told.ours[2])) == won
    assert told.of(told.ours[2]).clutch_kills == 3 - fallen_enemies


def test_more_than_five_enemies_count_as_five() -> None:
    told = Told(6)
    for player in told.ours[:5]:
        told.die(player)
    told.book.decided(1, None)
    assert clutches(told.of(told.ours[5])) == [0, 0, 0, 0, 1]


def test_lost_or_drawn_round_is_no_clutch_won() -> None:
    for winner in (2, None):
        told = Told()
        told.die(told.ours[0])
        told.die(told.ours[1])
        told.book.decided(winner, None)
        assert clutches(told.of(told.ours[2])) == [0] * 5


def test_both_sides_can_be_in_a_clutch_and_the_winner_has_it() -> None:
    told = Told(2)
    told.kill(told.ours[0], told.theirs[0])
    told.kill(told.theirs[1], told.ours[0])
    told.kill(told.theirs[1], told.ours[1])
    told.book.decided(2, None)
    assert clutches(told.of(told.theirs[1])) == [0, 1, 0, 0, 0]
    assert clutches(told.of(told.ours[1])) == [0] * 5


def test_clutch_is_won_by_the_dead_too() -> None:
    told = Told(2)
    told.die(told.theirs[0])
    told.kill(told.ours[0], told.theirs[1])
    told.book.decided(2, None)
    assert clutches(told.of(told.theirs[1])) == [0, 1, 0, 0, 0]


def test_team_of_one_is_in_no_clutch() -> None:
    told = Told()
    told.book.round_started(1, told.ours[:1], told.theirs)
    told.kill(told.ours[0], told.theirs[0])
    told.book.decided(1, None)
    assert clutches(told.of(told.ours[0])) == [0] * 5


def test_last_one_without_enemies_is_in_no_clutch() -> None:
    told = Told(2)
    told.die(told.theirs[0])
    told.die(told.theirs[1])
    told.die(told.ours[0])
    told.book.decided(1, None)
    assert clutches(told.of(told.ours[1])) == [0] * 5


def test_leaving_makes_a_team_mate_the_last_one() -> None:
    told = Told(2)
    told.leave(told.ours[0])
    told.kill(told.ours[1], told.theirs[0])
    told.book.decided(1, None)
    assert clutches(told.of(told.ours[1])) == [0, 1, 0, 0, 0]
    assert told.of(told.ours[1]).clutch_kills == 1


def test_leaving_dead_or_twice_changes_nothing() -> None:
    told = Told()
    told.die(told.ours[0])
    told.leave(told.ours[0])
    told.leave(told.ours[0])
    told.kill(told.ours[1], told.theirs[0])
    told.book.decided(1, None)
    assert (told.of(told.ours[1]).clutch_kills, clutches(told.of(told.ours[1]))) == (0, [0] * 5)


def test_clutch_does_not_begin_after_the_decision() -> None:
    told = Told(2)
    told.book.decided(1, None)
    told.die(told.ours[0])
    told.kill(told.ours[1], told.theirs[0])
    assert (told.of(told.ours[1]).clutch_kills, clutches(told.of(told.ours[1]))) == (0, [0] * 5)


def test_kills_after_the_decision_are_no_clutch_kills() -> None:
    told = Told(2)
    told.die(told.ours[0])
    told.book.decided(1, None)
    told.kill(told.ours[1], told.theirs[0])
    assert told.of(told.ours[1]).clutch_kills == 0


def test_grenade_of_a_dead_man_makes_no_clutch_kill() -> None:
    told = Told(2)
    told.die(told.ours[0])
    told.kill(told.ours[0], told.theirs[0], weapon="hegrenade")
    assert told.of(told.ours[0]).clutch_kills == 0


# Multi kills, survival, KAST, stars


@pytest.mark.parametrize(
    ("kills", "classes"),
    [(1, (0, 0, 0, 0)), (2, (1, 0, 0, 0)), (3, (0, 1, 0, 0)), (4, (0, 0, 1, 0)), (5, (0, 0, 0, 1)), (6, (0, 0, 0, 1))],
)
def test_round_is_in_one_class_of_multi_kills(kills: int, classes: tuple[int, ...]) -> None:
    told = Told(6)
    for enemy in told.theirs[:kills]:
        told.kill(told.ours[0], enemy)
    tally = told.of(told.ours[0])
    assert (tally.double_kills, tally.triple_kills, tally.quad_kills, tally.aces) == classes


def test_kills_after_the_decision_are_part_of_a_multi_kill() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.book.decided(1, None)
    told.kill(told.ours[0], told.theirs[1])
    assert told.of(told.ours[0]).double_kills == 1


def test_multi_kills_are_counted_by_round() -> None:
    told = Told()
    for number in (1, 2):
        told.start(number)
        told.kill(told.ours[0], told.theirs[0])
        told.kill(told.ours[0], told.theirs[1])
        told.book.decided(1, None)
    assert (told.of(told.ours[0]).double_kills, told.of(told.ours[0]).quad_kills) == (2, 0)


def test_kast_is_a_kill_an_assist_a_trade_or_survival() -> None:
    told = Told(4)
    killer, helper, traded, flasher = told.ours
    told.kill(told.theirs[0], traded)
    told.kill(killer, told.theirs[0])
    told.book.assist(helper, told.theirs[0], is_flash=False)
    told.book.assist(flasher, told.theirs[0], is_flash=True)
    for player in (killer, helper, flasher):
        told.die(player)
    told.book.decided(2, None)
    assert [told.of(player).kast_rounds for player in told.ours] == [1, 1, 1, 0]
    assert [told.of(player).kast_rounds for player in told.theirs] == [1, 1, 1, 1]


def test_survival_is_being_alive_and_present_at_the_decision() -> None:
    told = Told()
    told.leave(told.ours[0])
    told.die(told.ours[1])
    told.book.decided(2, None)
    told.die(told.ours[2])
    told.leave(told.theirs[0])
    assert [told.of(player).kast_rounds for player in (*told.ours, told.theirs[0])] == [0, 0, 1, 1]
    assert told.of(told.ours[2]).deaths == 1


def test_kast_counts_a_round_once() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.kill(told.ours[0], told.theirs[1])
    told.book.assist(told.ours[0], told.theirs[2], is_flash=False)
    told.book.decided(1, None)
    assert told.of(told.ours[0]).kast_rounds == 1


def test_star_is_given_with_the_first_decision_only() -> None:
    told = Told()
    told.book.decided(1, told.ours[0])
    told.book.decided(2, told.theirs[0])
    assert (told.of(told.ours[0]).mvps, told.of(told.theirs[0]).mvps, told.book.rounds_played()) == (1, 0, 1)


# Who is who


def test_line_up_at_the_start_played_the_round() -> None:
    told = Told()
    told.book.decided(1, None)
    told.book.round_started(2, told.ours[1:], told.theirs)
    assert [told.of(player).rounds_played for player in (told.ours[0], told.ours[1])] == [1, 2]
    assert told.book.rounds_played() == 1


def test_somebody_who_comes_in_mid_round_counts_without_the_round() -> None:
    told = Told()
    (late,) = people(Side.CT, "late")
    told.book.hit(late, told.theirs[0], "ak47", 50)
    told.book.hit(late, told.ours[0], "ak47", 50)
    told.kill(late, told.theirs[0])
    told.die(late)
    told.book.decided(1, None)
    tally = told.of(late)
    assert (tally.team, tally.rounds_played, tally.kills, tally.damage, tally.deaths) == (1, 0, 1, 50, 1)
    assert (tally.kast_rounds, tally.rounds_survived) == (0, 0)


def test_late_comer_belongs_to_the_team_on_his_side() -> None:
    told = Told()
    told.book.round_started(1, told.theirs, told.ours)
    late = people(Side.CT, "late")[0]
    told.kill(late, told.theirs[0])
    assert (told.of(late).team, told.of(late).kills) == (2, 1)


@pytest.mark.parametrize(("side", "team"), [(Side.CT, 1), (Side.T, 2)])
def test_where_only_team_two_stands_the_other_side_is_team_one(side: Side, team: int) -> None:
    told = Told()
    told.book.round_started(1, [], told.theirs)
    late = people(side, "late")[0]
    told.book.chicken(late)
    assert told.of(late).team == team


@pytest.mark.parametrize(("side", "team"), [(Side.CT, 1), (Side.T, 2)])
def test_where_nobody_stands_team_one_is_ct(side: Side, team: int) -> None:
    told = Told()
    told.book.round_started(1, [], [])
    late = people(side, "late")[0]
    told.book.chicken(late)
    assert told.of(late).team == team


def test_side_is_looked_for_past_those_without_one() -> None:
    told = Told()
    gone, gone_too = people(Side.T, "gone", "more")
    gone.team = gone_too.team = SPECTATOR
    told.book.round_started(1, [gone], [gone_too, *told.theirs])
    late = people(Side.T, "late")[0]
    told.book.chicken(late)
    assert told.of(late).team == 2


def test_spectator_has_no_team() -> None:
    told = Told()
    watcher = people(Side.CT, "late")[0]
    watcher.team = SPECTATOR
    told.book.chicken(watcher)
    assert told.of(watcher).team == 0


def test_stranger_who_leaves_is_not_written_down() -> None:
    told = Told()
    before = len(told.book.tallies())
    told.leave(people(Side.CT, "late")[0])
    assert len(told.book.tallies()) == before


def test_team_is_that_of_the_line_up_and_enemies_are_by_side() -> None:
    told = Told()
    told.ours[0].team = Side.T.value
    told.kill(told.ours[0], told.theirs[0])
    told.kill(told.ours[0], told.ours[1])
    mine = told.of(told.ours[0])
    assert (mine.kills, mine.team_kills, mine.team) == (1, 1, 1)


def test_somebody_who_comes_back_is_the_same_under_his_last_name() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.leave(told.ours[0])
    account = told.ours[0].person.account
    back = Player(Person("renamed", account), 9, team=Side.CT.value, is_in_game=True)
    told.book.chicken(back)
    told.book.decided(1, None)
    assert (told.of(back).name, told.of(back).kills, told.of(back).chicken_kills) == ("renamed", 1, 1)
    assert told.of(back).kast_rounds == 1
    assert told.of(back).rounds_survived == 0


def test_bots_have_tallies_by_name() -> None:
    told = Told()
    bots = [Player(Person(name, 0), n, team=Side.CT.value) for n, name in enumerate(["Han", "Leo"])]
    told.book.round_started(1, bots, told.theirs)
    told.kill(bots[0], told.theirs[0])
    assert (told.of(bots[0]).player_id, told.of(bots[0]).kills, told.of(bots[1]).kills) == ("BOT:Han", 1, 0)


# Rounds that are told again, or never were


def test_round_started_again_replaces_itself() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.start(1)
    assert (told.of(told.ours[0]).kills, told.of(told.ours[0]).rounds_played) == (0, 1)


def test_earlier_round_started_again_replaces_itself() -> None:
    told = Told()
    told.kill(told.ours[0], told.theirs[0])
    told.book.decided(1, None)
    told.start(2)
    told.book.decided(1, None)
    told.start(1)
    assert (told.of(told.ours[0]).kills, told.of(told.ours[0]).rounds_played, told.book.rounds_played()) == (0, 2, 1)


def test_rewind_forgets_rounds_above_and_the_open_one() -> None:
    told = Told()
    for number in (1, 2, 3):
        told.start(number)
        told.kill(told.ours[0], told.theirs[0])
        told.book.decided(1, told.ours[0])
    told.start(4)
    told.kill(told.ours[0], told.theirs[0])
    told.book.rewind(2)
    tally = told.of(told.ours[0])
    assert (tally.kills, tally.mvps, tally.rounds_played, told.book.rounds_played()) == (2, 2, 2, 2)


def test_rewind_to_the_present_keeps_the_round_just_decided() -> None:
    told = Told()
    told.book.decided(1, None)
    told.book.rewind(1)
    told.kill(told.ours[0], told.theirs[0])
    assert (told.of(told.ours[0]).rounds_played, told.of(told.ours[0]).kills, told.book.rounds_played()) == (1, 0, 1)


def test_rewind_forgets_an_open_round_of_a_lower_number() -> None:
    told = Told()
    told.book.rewind(5)
    assert (told.book.tallies(), told.book.rounds_played()) == ([], 0)


def test_tallies_handed_out_do_not_change_later() -> None:
    told = Told()
    before = told.of(told.ours[0])
    told.kill(told.ours[0], told.theirs[0])
    assert (before.kills, before.weapon_kills) == (0, {})


# Other games


def test_round_with_respawns_says_nothing_as_a_whole() -> None:
    told = Told(2, has_respawns=True)
    ann, eve = told.ours[0], told.theirs[0]
    told.kill(eve, told.ours[1])
    told.kill(ann, eve)
    told.kill(ann, eve)
    told.book.assist(ann, eve, is_flash=False)
    told.leave(told.ours[1])
    told.book.decided(1, ann)
    tally = told.of(ann)
    whole = (tally.first_kills, tally.trade_kills, tally.double_kills, tally.kast_rounds, tally.clutch_kills)
    assert whole == (0, 0, 0, 0, 0)
    assert (tally.kills, tally.assists, tally.mvps, clutches(tally)) == (2, 1, 1, [0] * 5)
    assert (told.of(eve).deaths, told.of(eve).first_deaths, told.of(told.ours[1]).traded_deaths) == (2, 0, 0)


def test_everybody_is_an_enemy_in_a_free_for_all() -> None:
    told = Told(is_free_for_all=True, has_respawns=True)
    ann, bob, _ = told.ours
    told.kill(ann, bob)
    told.kill(ann, ann)
    told.book.hit(ann, bob, "ak47", 10)
    told.book.blinded(bob, ann)
    tally = told.of(ann)
    assert (tally.team, tally.kills, tally.team_kills, tally.deaths, tally.damage) == (0, 1, 0, 1, 10)
    assert tally.enemies_flashed == 1


def test_free_for_all_without_respawns_has_no_teams_to_trade_or_clutch_for() -> None:
    told = Told(2, is_free_for_all=True)
    told.kill(told.theirs[0], told.ours[0])
    told.kill(told.ours[1], told.theirs[0])
    told.kill(told.ours[1], told.theirs[1])
    told.kill(told.ours[1], told.theirs[1], after_ms=0)
    told.book.decided(1, None)
    tally = told.of(told.ours[1])
    assert (tally.trade_kills, tally.clutch_kills, clutches(tally), tally.kast_rounds) == (0, 0, [0] * 5, 1)


def test_late_comer_in_a_free_for_all_has_no_team() -> None:
    told = Told(is_free_for_all=True, has_respawns=True)
    late = people(Side.CT, "late")[0]
    told.kill(late, told.ours[0])
    assert (told.of(late).team, told.of(late).kills) == (0, 1)


# Laws

Act = tuple[str, int, int]
acts = st.lists(st.tuples(st.sampled_from(["kill", "fall", "leave", "decide"]), st.integers(0, 5), st.integers(0, 5)))
games = st.lists(acts, min_size=1, max_size=4)


def play(told: Told, number: int, round_acts: list[Act]) -> int:
    """Play a round in which only the living die; answers how many died by no one's hand."""
    told.start(number)
    everybody = [*told.ours, *told.theirs]
    alive, falls = set(range(6)), 0
    for act, one, other in round_acts:
        if act == "decide":
            told.book.decided(one % 3 or None, everybody[other])
        elif other not in alive:
            continue
        elif act == "leave":
            told.leave(everybody[other])
            alive.discard(other)
        else:
            alive.discard(other)
            if act == "fall" or one == other:
                told.die(everybody[other])
                falls += 1
            else:
                told.kill(everybody[one], everybody[other])
    told.book.decided(None, None)
    return falls


@given(games)
def test_every_death_is_a_kill_a_team_kill_or_a_fall(rounds: list[list[Act]]) -> None:
    told = Told()
    falls = sum([play(told, number, each) for number, each in enumerate(rounds, start=1)])
    tallies = told.book.tallies()
    assert sum(t.deaths for t in tallies) == sum(t.kills + t.team_kills for t in tallies) + falls


@given(games)
def test_counts_stay_within_their_bounds(rounds: list[list[Act]]) -> None:
    told = Told()
    for number, each in enumerate(rounds, start=1):
        play(told, number, each)
    tallies = told.book.tallies()
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
def test_rewinding_equals_never_having_played_more(rounds: list[list[Act]], draw: st.DataObject) -> None:
    kept = draw.draw(st.integers(1, len(rounds)))
    long, short = Told(), Told()
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
def test_map_is_the_sum_of_its_rounds(rounds: list[list[Act]]) -> None:
    whole, kills = Told(), 0
    for number, each in enumerate(rounds, start=1):
        play(whole, number, each)
        alone = Told()
        play(alone, 1, each)
        kills += sum(tally.kills for tally in alone.book.tallies())
    assert sum(tally.kills for tally in whole.book.tallies()) == kills
