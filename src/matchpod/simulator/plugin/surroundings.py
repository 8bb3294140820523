"""What does the plugin need around it? The game and the console of its server, as far as it uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from matchpod.core.model import Side
from matchpod.simulator.play.flow.standing import Phase


class CommandLine(Protocol):
    """The server's console."""

    has_plugin_match: Callable[[], bool]
    """The plugin's word on whether it has a match loaded."""

    def register(self, name: str, handler: Callable[[list[str]], str]) -> None:
        """Let a command be answered by a handler of its arguments."""

    def unknown(self, name: str) -> str:
        """The answer to a command that does not exist."""

    def execute(self, text: str, source: str) -> str:
        """Run commands, by the server itself where the source is empty."""


class MatchGame(Protocol):
    """The game that is played on the server."""

    @property
    def phase(self) -> Phase:
        """What is being played."""

    @property
    def team1_side(self) -> Side:
        """Where the first team stands: the one that `mp_teamname_1` names and that begins a map as CT."""

    @property
    def score(self) -> tuple[int, int]:
        """The score of the first team and the second."""

    def start_knife_round(self) -> None:
        """Make the next start one of a knife round."""

    def end_now(self) -> None:
        """Go back to warmup without an end of the map."""

    def backups(self) -> list[str]:
        """The files of rounds played, newest first."""

    def restore(self, file: str) -> bool:
        """Go back to one of them; False when there is no such file."""
