"""What is a story? Something people do in one live match, told by watching it; each match begins its story anew.

How far into a match things happen is bounded by how short it can be, so that every story works for any number of
rounds; a deathmatch has no rounds to count and goes by time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from matchpod.simulator.agenda import Planned, Script
from matchpod.simulator.play.people.crowd import Crowd
from matchpod.simulator.play.player import Player
from matchpod.simulator.play.watcher import Watcher

DEATHMATCH = "deathmatch"


class Story(Watcher):
    """Watches a match from `went_live` on and lets people do something in it."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._plans: list[Planned] = []

    def close(self) -> None:
        """The match is over or begins anew: whatever is still planned does not happen."""
        for planned in self._plans:
            planned.cancel()
        self._plans.clear()

    @property
    def is_deathmatch(self) -> bool:
        """True where there are no rounds."""
        return self._crowd.arena.variables.mode_name == DEATHMATCH

    @property
    def max_rounds(self) -> int:
        """How many rounds regulation has; 0 for no limit."""
        return self._crowd.arena.variables.whole("mp_maxrounds")

    def dice(self, *purpose: object) -> Random:
        """Chance for a purpose of this story on this map."""
        arena = self._crowd.arena
        return arena.dice("visitors", type(self).__name__, arena.map_name, *purpose)

    def within_match(self, round_number: int) -> int:
        """The round itself, or the last one that is played for certain in a match too short for it."""
        return min(round_number, self.max_rounds // 2 + 1) if self.max_rounds > 0 else round_number

    def later(self, wait_ms: int, act: Callable[[], None]) -> None:
        """Plan an act."""
        self._keep(self._crowd.arena.agenda.call_in(wait_ms, act))

    def run(self, script: Script[None]) -> None:
        """Run a script; it should begin with a wait, for its first step comes in the midst of what is being told."""
        self._keep(self._crowd.arena.agenda.start(script))

    def say_in(self, wait_ms: int, player: Player, text: str, *, is_team_only: bool = False) -> None:
        """Let a player say something after a while, if he is still here."""
        self.later(wait_ms, partial(self._crowd.door.say, player, text, is_team_only=is_team_only))

    def _keep(self, planned: Planned) -> None:
        self._plans = [kept for kept in self._plans if not kept.is_over]
        self._plans.append(planned)
