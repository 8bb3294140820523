"""Manage coaches as MatchZy does. CS2 has no coaches: they are players whom the plugin kills in each round.

A coach is killed a second before the end of freeze time, unless the match is paused. If a coach is still alive when the
round starts, the plugin moves them to the spectators, which kills them, and back a little later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Suicide
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.fights.economy import give_bomb, strip
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.player import SPECTATOR, Player

WINGMAN = "scrimcomp2v2"
"""The mode in which the plugin has no coaches."""

MIN_FREEZE_S = 2
KILL_BEFORE_S = 1
MOVE_AFTER_MS = 1_500
MOVE_BACK_MS = 10


class Coaches:
    def __init__(self, arena: Arena, door: Door, is_paused: Callable[[], bool]) -> None:
        self._arena = arena
        self._door = door
        self._is_paused = is_paused
        self._kill = TaskSlot(arena.agenda)

    def appoint(self, player: Player) -> None:
        if self._arena.variables.mode_name != WINGMAN:
            player.is_coach = True
            player.money = 0

    def dismiss(self, player: Player) -> None:
        if player.is_coach:
            player.is_coach = False
            player.money = 0

    def forget(self) -> None:
        """Dismiss all coaches without notifying them."""
        self._kill.cancel()
        for player in self._arena.players:
            player.is_coach = False

    def spare(self) -> None:
        """Do not kill the coaches in this freeze time."""
        self._kill.cancel()

    def freeze_began(self) -> None:
        """Remove money, weapons and the bomb of the coaches, and schedule their death."""
        arena, coaches = self._arena, self._seated()
        self._kill.cancel()
        for coach in coaches:
            coach.money = 0
            if coach.has_bomb:
                coach.has_bomb = False
                for player in arena.alive_on(Side.T)[:1]:
                    give_bomb(arena, player)
            strip(coach)
        if coaches:
            freeze_s = max(arena.variables.whole("mp_freezetime"), MIN_FREEZE_S)
            self._kill.call_in((freeze_s - KILL_BEFORE_S) * 1000, self._kill_all)

    def round_started(self) -> None:
        """Move coaches who are still alive to the spectators and back."""
        for coach in self._seated():
            if coach.is_alive:
                self._arena.agenda.call_in(MOVE_AFTER_MS, partial(self._move_out, coach))

    def _kill_all(self) -> None:
        arena = self._arena
        for coach in self._seated():
            if coach.is_alive and not self._is_paused():
                arena.log.write(Suicide(coach.token, coach.position, "world"))
                coach.is_alive = False
                coach.health = 0
                if coach.is_in_buy_zone:
                    coach.is_in_buy_zone = False
                    arena.plan_last_line(coach)

    def _move_out(self, coach: Player) -> None:
        side = coach.side
        if coach.is_coach and side is not None:
            self._door.join(coach, SPECTATOR, is_forced=True)
            self._arena.agenda.call_in(MOVE_BACK_MS, lambda: self._door.join(coach, side))

    def _seated(self) -> list[Player]:
        return [player for player in self._arena.players if player.is_coach and player.is_playing]
