"""The parts of a server that commands and plugins operate on, and the type of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cs2_simulator.console.statements import ConsoleStatement
from cs2_simulator.log_stream import LogStream
from cs2_simulator.outside import Outside
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.door import Door
from cs2_simulator.play.flow.game import Game
from cs2_simulator.play.people.visitors import Visitors


@dataclass(slots=True)
class ServerParts:
    """The parts of one server that its console and its plugins use."""

    arena: Arena
    game: Game
    door: Door
    visitors: Visitors
    outside: Outside
    stream: LogStream
    has_plugin_match: Callable[[], bool] = lambda: False
    """True if the plugin has loaded a match. Then only the people of this match are expected, not random ones."""


@dataclass(frozen=True, slots=True)
class Command:
    """A console command; `run` returns the output."""

    run: Callable[[ServerParts, ConsoleStatement], str]
    configures: bool = True
    """True if the command sets up the server. Each such command restarts the countdown until players connect."""


def lines(*texts: str) -> str:
    """Join texts into console output, one line each."""
    return "".join(f"{text}\n" for text in texts)


def no_op(_parts: ServerParts, _statement: ConsoleStatement) -> str:
    """Do nothing. For commands of the game that have no effect here."""
    return ""
