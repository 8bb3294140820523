"""Interfaces of the game and the console that the plugin depends on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cs2_protocol.game import Side
from cs2_simulator.play.flow.standing import GamePhase


class PluginConsole(Protocol):
    """The server's console."""

    has_plugin_match: Callable[[], bool]
    """Returns True if the plugin has a match loaded."""

    def register(self, name: str, handler: Callable[[list[str]], str]) -> None:
        """Register a command; the handler receives its arguments and returns the output."""

    def unknown_command(self, name: str) -> str:
        """The output for a command that does not exist."""

    def execute(self, text: str, source: str) -> str:
        """Run console commands. An empty source means the server itself."""


class MatchGame(Protocol):
    """The game on the server."""

    @property
    def phase(self) -> GamePhase:
        """The current phase of the game."""

    @property
    def team1_side(self) -> Side:
        """Side of the first team: the one that `mp_teamname_1` names and that begins a map as CT."""

    @property
    def score(self) -> tuple[int, int]:
        """The score as (first team, second team)."""

    def start_knife_round(self) -> None:
        """Make the next start or restart begin a knife round."""

    def end_now(self) -> None:
        """Abort the match without `Game Over` and go to warmup."""

    def backups(self) -> list[str]:
        """Backup files of the played rounds, newest first."""

    def restore(self, file: str) -> bool:
        """Restore a backup. Return False if the current map has none with this name."""
