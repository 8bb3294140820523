"""The interface of the console that the plugins depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


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
