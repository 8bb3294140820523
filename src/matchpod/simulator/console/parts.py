"""The parts of a server that console commands operate on, and the type of a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from matchpod.simulator.console.statements import ConsoleStatement
from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.game import Game
from matchpod.simulator.play.people.visitors import Visitors


class ListedListener(Protocol):
    """A log listener as the console lists it."""

    @property
    def url(self) -> str:
        """The URL that receives the log."""

    @property
    def has_pending_request(self) -> bool:
        """True while a request is in flight."""

    @property
    def acknowledged_tick(self) -> int:
        """The last acknowledged tick."""


class LogListeners(Protocol):
    """The listeners that receive the log."""

    is_on: bool
    """State of `log on` and `log off`. Initially off, as in the game."""

    records_early: bool
    """True if lines are recorded while there are no listeners."""

    def add(self, url: str, delay_ms: int = 0) -> None:
        """Add a listener that receives the log delayed by `delay_ms`. Does nothing if it exists."""

    def remove(self, url: str) -> bool:
        """Remove a listener. Return False if the URL is not a listener."""

    def remove_all(self) -> None:
        """Remove all listeners."""

    def list(self) -> Sequence[ListedListener]:
        """The listeners in the order they were added."""


@dataclass(slots=True)
class ServerParts:
    """The parts of one server that its console uses."""

    arena: Arena
    game: Game
    door: Door
    visitors: Visitors
    outside: Outside
    listeners: LogListeners
    has_plugin_match: Callable[[], bool]
    """Returns whether the plugin has a match loaded, which then determines the expected players."""


@dataclass(frozen=True, slots=True)
class Command:
    """A console command; `run` returns the output."""

    run: Callable[[ServerParts, ConsoleStatement], str]
    configures: bool = True
    """True if the command is part of setting up the server, which postpones the arrival of players."""


def lines(*texts: str) -> str:
    """Join texts into console output, one line each."""
    return "".join(f"{text}\n" for text in texts)


def no_op(_parts: ServerParts, _statement: ConsoleStatement) -> str:
    """Do nothing. For commands of the game that have no effect here."""
    return ""
