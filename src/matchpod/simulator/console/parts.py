"""What can the console reach? The parts of a server that its commands work on, and the shape of a command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from matchpod.simulator.console.statements import Statement
from matchpod.simulator.outside import Outside
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.door import Door
from matchpod.simulator.play.flow.game import Game
from matchpod.simulator.play.people.visitors import Visitors


class ListedListener(Protocol):
    """An address that gets the log, as the console lists it."""

    @property
    def url(self) -> str:
        """Where the log goes."""

    @property
    def has_pending_request(self) -> bool:
        """True while a post is under way."""

    @property
    def acknowledged_tick(self) -> int:
        """The last tick that arrived."""


class LogListeners(Protocol):
    """Who gets the log."""

    is_on: bool
    """`log on`: off at first, as in the game."""

    records_early: bool
    """Lines are kept before anybody listens."""

    def add(self, url: str, delay_ms: int = 0) -> None:
        """Send the log there, so much later than it happens; adding an address twice changes nothing."""

    def remove(self, url: str) -> bool:
        """Send the log there no more; False when it never was."""

    def remove_all(self) -> None:
        """Send the log nowhere."""

    def list(self) -> Sequence[ListedListener]:
        """Who gets the log, in the order they came."""


@dataclass(slots=True)
class Parts:
    """One server as its console sees it."""

    arena: Arena
    game: Game
    door: Door
    visitors: Visitors
    outside: Outside
    listeners: LogListeners
    has_plugin_match: Callable[[], bool]
    """Whether the plugin says who will come."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a word of the console does: an act that answers what the console prints."""

    run: Callable[[Parts, Statement], str]
    configures: bool = True
    """Somebody sets the server up: who was about to come waits a little longer."""


def lines(*texts: str) -> str:
    """Texts as the console prints them, each on its line."""
    return "".join(f"{text}\n" for text in texts)


def nothing(_parts: Parts, _statement: Statement) -> str:
    """For commands of the game that change nothing here."""
    return ""
