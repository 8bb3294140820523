"""Who is going to win the round? Decided before it is played, by skill and weapons, or by what the story wants.

A level end needs a hand only at its edge: a team that has won half of regulation wins no more of it. So every order of
wins stays possible, and no end but the level one.
"""

from __future__ import annotations

from math import exp
from random import Random

from matchpod.core.model import Side
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.arsenal import WEAPONS
from matchpod.simulator.play.player import Player
from matchpod.simulator.scenarios import Scenario

_ONE_SIDED_SHARE = 0.92
_CT_ADVANTAGE = 0.08
_SKILL_WEIGHT = 2.2
_MONEY_WEIGHT = 0.55
"""How much a difference of one average player, or of one full buy each, says about a round."""
_FULL_BUY = 4000
_ARMOR_WORTH = 800

_FIRST_DECISIVE_OVERTIME = 1
"""The second one, counted from 0, does not end level."""


def choose_winner(arena: Arena, dice: Random, *, round_number: int, team1_side: Side, score: tuple[int, int]) -> Side:
    """The side that wins the round; score is by team, before it."""
    chance = dice.random()
    favourite = Side.CT if chance < _ct_chance(arena) else Side.T
    match arena.scenario:
        case Scenario.ONE_SIDED:
            return team1_side if chance < _ONE_SIDED_SHARE else team1_side.other
        case Scenario.OVERTIME:
            return _toward_overtime(arena, favourite, team1_side, score)
        case Scenario.TIE:
            return _toward_level(arena, favourite, team1_side, score)
        case _:
            return favourite


def _toward_level(arena: Arena, favourite: Side, team1_side: Side, score: tuple[int, int]) -> Side:
    """Keep regulation on its way to a level end; with an odd number of rounds its last one is free."""
    half = arena.variables.whole("mp_maxrounds") // 2
    if score[0] >= half > score[1]:
        return team1_side.other
    if score[1] >= half > score[0]:
        return team1_side
    return favourite


def _toward_overtime(arena: Arena, favourite: Side, team1_side: Side, score: tuple[int, int]) -> Side:
    """Level after regulation; the first overtime goes as it goes, the second is decided."""
    regulation = arena.variables.whole("mp_maxrounds") // 2 * 2
    length = arena.variables.whole("mp_overtime_maxrounds")
    extra = sum(score) - regulation
    if extra < 0:
        return _toward_level(arena, favourite, team1_side, score)
    is_last_round = length > 0 and extra % length == length - 1
    if is_last_round and extra // length >= _FIRST_DECISIVE_OVERTIME and score[0] != score[1]:
        return team1_side if score[0] > score[1] else team1_side.other
    return favourite


def _ct_chance(arena: Arena) -> float:
    cts, ts = arena.on(Side.CT), arena.on(Side.T)
    seats = max(len(cts), len(ts), 1)
    skill = (sum(map(_skill, cts)) - sum(map(_skill, ts))) / seats
    worth = (sum(map(_worth, cts)) - sum(map(_worth, ts))) / seats / _FULL_BUY
    return 1 / (1 + exp(-(_CT_ADVANTAGE + _SKILL_WEIGHT * skill + _MONEY_WEIGHT * worth)))


def _skill(player: Player) -> float:
    return player.person.skill


def _worth(player: Player) -> int:
    """What he carries, in money."""
    guns = (player.primary, player.pistol)
    return sum(WEAPONS[gun].price for gun in guns if gun) + (_ARMOR_WORTH if player.armor else 0)
