"""Choose the winner of a round before it is played, by skill and weapons or by the scenario.

If the scenario needs a level score, a winner is forced only when necessary: a team that has won half of the rounds of
regulation loses the rest. So any order of wins is possible, but the final score is always level.
"""

from __future__ import annotations

from math import exp
from random import Random

from cs2_protocol.game import Side
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.arsenal import WEAPONS
from cs2_simulator.play.player import Player
from cs2_simulator.scenarios import Scenario

_ONE_SIDED_SHARE = 0.92
_CT_ADVANTAGE = 0.08
_SKILL_WEIGHT = 2.2
_MONEY_WEIGHT = 0.55
"""Weights of two differences between the sides, each per player: skill, and equipment as a share of a full buy."""
_FULL_BUY = 4000
_ARMOR_VALUE = 800

_FIRST_DECISIVE_OVERTIME = 1
"""Index, from 0, of the first overtime that must have a winner: the second overtime."""


def choose_winner(arena: Arena, rng: Random, *, team1_side: Side, score: tuple[int, int]) -> Side:
    """Return the side that wins the round. `score` is by team, before the round."""
    chance = rng.random()
    favourite = Side.CT if chance < _ct_chance(arena) else Side.T
    match arena.scenario:
        case Scenario.ONE_SIDED:
            return team1_side if chance < _ONE_SIDED_SHARE else team1_side.other
        case Scenario.OVERTIME:
            return _steer_to_overtime(arena, favourite, team1_side, score)
        case Scenario.TIE:
            return _steer_to_level(arena, favourite, team1_side, score)
        case _:
            return favourite


def _steer_to_level(arena: Arena, favourite: Side, team1_side: Side, score: tuple[int, int]) -> Side:
    """Choose winners so that regulation ends level.

    If its number of rounds is odd, the winner of the last round is not forced.
    """
    half = arena.variables.whole("mp_maxrounds") // 2
    if score[0] >= half > score[1]:
        return team1_side.other
    if score[1] >= half > score[0]:
        return team1_side
    return favourite


def _steer_to_overtime(arena: Arena, favourite: Side, team1_side: Side, score: tuple[int, int]) -> Side:
    """Choose winners so that regulation ends level. The first overtime is not forced; the second must have a winner."""
    regulation = arena.variables.whole("mp_maxrounds") // 2 * 2
    length = arena.variables.whole("mp_overtime_maxrounds")
    extra = sum(score) - regulation
    if extra < 0:
        return _steer_to_level(arena, favourite, team1_side, score)
    is_last_round = length > 0 and extra % length == length - 1
    if is_last_round and extra // length >= _FIRST_DECISIVE_OVERTIME and score[0] != score[1]:
        return team1_side if score[0] > score[1] else team1_side.other
    return favourite


def _ct_chance(arena: Arena) -> float:
    cts, ts = arena.players_on(Side.CT), arena.players_on(Side.T)
    team_size = max(len(cts), len(ts), 1)
    skill = (sum(map(_skill, cts)) - sum(map(_skill, ts))) / team_size
    value = (sum(map(_equipment_value, cts)) - sum(map(_equipment_value, ts))) / team_size / _FULL_BUY
    return 1 / (1 + exp(-(_CT_ADVANTAGE + _SKILL_WEIGHT * skill + _MONEY_WEIGHT * value)))


def _skill(player: Player) -> float:
    return player.person.skill


def _equipment_value(player: Player) -> int:
    guns = (player.primary, player.pistol)
    return sum(WEAPONS[gun].price for gun in guns if gun) + (_ARMOR_VALUE if player.armor else 0)
