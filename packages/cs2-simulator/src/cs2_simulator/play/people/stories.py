"""Define the base class of stories, which decide what people do in one live match. Each match starts a new story.

The events of a story are scheduled early enough for the shortest possible match, so a story works with any number of
rounds. In a deathmatch, which has no rounds, they are scheduled by time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from cs2_simulator.agenda import ScheduledTask, Script
from cs2_simulator.play.people.crowd import Crowd
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import Watcher

DEATHMATCH = "deathmatch"


class Story(Watcher):
    """Watches a match from the time when it goes live, and makes people act."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._tasks: list[ScheduledTask] = []

    def cancel(self) -> None:
        """Cancel all scheduled steps, because the match has ended or restarts."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    @property
    def is_deathmatch(self) -> bool:
        """True in a deathmatch, which has no rounds."""
        return self._crowd.arena.variables.mode_name == DEATHMATCH

    @property
    def max_rounds(self) -> int:
        """Number of rounds in regulation; 0 for no limit."""
        return self._crowd.arena.variables.whole("mp_maxrounds")

    def rng(self, *purpose: object) -> Random:
        """Return the random stream for a purpose of this story on this map."""
        arena = self._crowd.arena
        return arena.rng("visitors", type(self).__name__, arena.map_name, *purpose)

    def within_match(self, round_number: int) -> int:
        """Return `round_number`, or if a match may end before that round, the last round that is certainly played."""
        return min(round_number, self.max_rounds // 2 + 1) if self.max_rounds > 0 else round_number

    def call_in(self, wait_ms: int, callback: Callable[[], None]) -> None:
        self._add_task(self._crowd.arena.agenda.call_in(wait_ms, callback))

    def run(self, script: Script[None]) -> None:
        """Run a script. It should begin with a wait, because its first step runs while watchers are being notified."""
        self._add_task(self._crowd.arena.agenda.start(script))

    def say_in(self, wait_ms: int, player: Player, text: str, *, is_team_only: bool = False) -> None:
        """Let a player write a message after a delay, if still connected then."""
        self.call_in(wait_ms, partial(self._crowd.door.say, player, text, is_team_only=is_team_only))

    def _add_task(self, task: ScheduledTask) -> None:
        self._tasks = [pending for pending in self._tasks if not pending.is_over]
        self._tasks.append(task)
