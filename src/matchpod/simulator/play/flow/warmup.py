"""When does warmup begin and end? Its announcement, its countdown and what people do meanwhile.

`Warmup_Start` comes two seconds after the lines that open a warmup, and never while a pause holds the game; a warmup
that was never announced ends without `Warmup_End`, as in the log of a real knife round.
"""

from __future__ import annotations

from collections.abc import Callable

from matchpod.core.model import Side
from matchpod.cs2.log_lines.world_lines import WorldTriggered
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.deathmatch import play_warmup
from matchpod.simulator.play.flow.pauses import Pauses
from matchpod.simulator.play.flow.slot import Slot

ANNOUNCE_MS = 2000

DUEL = 2
"""A deathmatch of all against all needs this many people; where there are sides, each needs one."""


class Warmup:
    """The warmup of the map being played, if it is in one."""

    def __init__(self, arena: Arena, pauses: Pauses, time_over: Callable[[], None]) -> None:
        self._arena = arena
        self._pauses = pauses
        self._time_over = time_over
        self._is_on = False
        self._is_announced = False
        self._announcement = Slot(arena.agenda)
        self._countdown = Slot(arena.agenda)
        self._play = Slot(arena.agenda)
        self._plays = 0

    def begin(self, *, is_announced: bool = False) -> None:
        """A warmup was opened."""
        self.stop()
        self._is_on = True
        self._is_announced = is_announced
        self.look_again()

    def end(self) -> None:
        """It ends by a command or its time: say so."""
        if self._is_announced:
            self._arena.log.write(WorldTriggered("Warmup_End"))
        self.stop()

    def stop(self) -> None:
        """It is no longer of interest, whatever came instead."""
        self._is_on = self._is_announced = False
        for slot in (self._announcement, self._countdown, self._play):
            slot.cancel()

    def restart_countdown(self) -> None:
        """The length of warmup was changed: it counts from now."""
        self._countdown.cancel()
        self.look_again()

    def look_again(self) -> None:
        """Somebody came or went, or a setting changed: let run what should run now, and nothing else."""
        if not self._is_on:
            return
        arena = self._arena
        if not arena.playing:
            self._play.cancel()
        elif not self._play.is_taken:
            self._plays += 1
            self._play.run(play_warmup(arena, arena.dice("warmup", arena.map_number, self._plays)))
        if self._is_announced or self._pauses.is_on:
            self._announcement.cancel()
        elif not self._announcement.is_taken:
            self._announcement.call_in(ANNOUNCE_MS, self._announce)
        if not self._is_running_out():
            self._countdown.cancel()
        elif not self._countdown.is_taken:
            self._countdown.call_in(int(arena.variables.number("mp_warmuptime") * 1000), self._time_over)

    def _announce(self) -> None:
        self._is_announced = True
        self._arena.log.write(WorldTriggered("Warmup_Start"))

    def _is_running_out(self) -> bool:
        arena, variables = self._arena, self._arena.variables
        if variables.is_on("mp_warmup_pausetimer") or self._pauses.is_on:
            return False
        if variables.mode_name == "deathmatch" and variables.is_on("mp_teammates_are_enemies"):
            return len(arena.playing) >= DUEL
        return bool(arena.on(Side.CT)) and bool(arena.on(Side.T))
