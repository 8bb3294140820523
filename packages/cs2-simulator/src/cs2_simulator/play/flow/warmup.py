"""Run the warmup: its announcement, its countdown and the play during it.

`Warmup_Start` is logged two seconds after a warmup begins, or immediately at a map load, but never during a pause. If
it was not logged, `Warmup_End` is not logged either, as in the log of a real knife round.
"""

from __future__ import annotations

from collections.abc import Callable

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import WorldTriggered
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.deathmatch import play_warmup
from cs2_simulator.play.flow.pauses import Pauses
from cs2_simulator.play.flow.slot import TaskSlot
from cs2_simulator.play.player import Player

ANNOUNCE_MS = 2000

MIN_FREE_FOR_ALL_PLAYERS = 2
"""Number of players needed for the countdown in a free-for-all deathmatch. In other modes, each side needs one
player."""


class Warmup:
    def __init__(self, arena: Arena, pauses: Pauses, on_time_over: Callable[[], None]) -> None:
        self._arena = arena
        self._pauses = pauses
        self._on_time_over = on_time_over
        self._is_on = False
        self._is_announced = False
        self._announcement = TaskSlot(arena.agenda)
        self._countdown = TaskSlot(arena.agenda)
        self._play = TaskSlot(arena.agenda)
        self._plays = 0

    def begin(self, *, is_announced: bool = False) -> None:
        """Begin a warmup. `is_announced` is true if `Warmup_Start` was already logged, as after a map load."""
        self.stop()
        self._is_on = True
        self._is_announced = is_announced
        self.update()

    def end(self) -> None:
        """End the warmup because of a command or its countdown. Log the end if the start was logged."""
        if self._is_announced:
            self._arena.log.write(WorldTriggered("Warmup_End"))
        self.stop()

    def stop(self) -> None:
        """Stop the warmup without logging its end."""
        self._is_on = self._is_announced = False
        for slot in (self._announcement, self._countdown, self._play):
            slot.cancel()

    def restart_countdown(self) -> None:
        """Restart the countdown with the current warmup length."""
        self._countdown.cancel()
        self.update()

    def update(self) -> None:
        """Start or cancel play, announcement and countdown after players, pauses or settings have changed."""
        if not self._is_on:
            return
        arena = self._arena
        if arena.variables.is_on("sim_quiet") or all(player.person.is_bot for player in arena.playing):
            self._play.cancel()
        elif not self._play.is_active:
            self._plays += 1
            self._play.run(play_warmup(arena, arena.rng("warmup", arena.map_number, self._plays)))
        if self._is_announced or self._pauses.is_on:
            self._announcement.cancel()
        elif not self._announcement.is_active:
            self._announcement.call_in(ANNOUNCE_MS, self._announce)
        if not self._should_count_down():
            self._countdown.cancel()
        elif not self._countdown.is_active:
            self._countdown.call_in(int(arena.variables.number("mp_warmuptime") * 1000), self._on_time_over)

    def _announce(self) -> None:
        self._is_announced = True
        self._arena.log.write(WorldTriggered("Warmup_Start"))

    def _should_count_down(self) -> bool:
        arena, variables = self._arena, self._arena.variables
        if variables.is_on("mp_warmup_pausetimer") or self._pauses.is_on:
            return False
        if variables.mode_name == "deathmatch" and variables.is_on("mp_teammates_are_enemies"):
            return sum(map(_is_human, arena.playing)) >= MIN_FREE_FOR_ALL_PLAYERS
        return all(any(map(_is_human, arena.players_on(side))) for side in Side)


def _is_human(player: Player) -> bool:
    return not player.person.is_bot
