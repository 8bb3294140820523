"""Access a game server without the service: execute console commands and receive a copy of its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchpod_gameserver.rcon import ask

TIMEOUT_S = 120.0
"""Time for one command, far more than any takes on a slow machine."""


def execute(server: Mapping[str, Any], *commands: str) -> list[str]:
    """Execute commands on a running server, with the password that the service returned; return their output."""
    return execute_at(server["port"], server["rconPassword"], *commands)


def execute_at(port: int, password: str, *commands: str) -> list[str]:
    """Execute commands on the server at a port; return their output."""
    return [ask(("127.0.0.1", port), password, command, TIMEOUT_S) for command in commands]
