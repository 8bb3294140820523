"""Access a game server without the service: execute console commands and receive a copy of its log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matchpod_gameserver.rcon import ask
from tests.e2e.service.callback_receiver import CallbackReceiver

TIMEOUT_S = 120.0
"""Time for one command, far more than any takes on a slow machine."""


def execute(server: Mapping[str, Any], *commands: str) -> list[str]:
    """Execute commands on a running server, with the password that the service returned; return their output."""
    return execute_at(server["port"], server["rconPassword"], *commands)


def execute_at(port: int, password: str, *commands: str) -> list[str]:
    """Execute commands on the server at a port; return their output."""
    return [ask(("127.0.0.1", port), password, command, TIMEOUT_S) for command in commands]


class CapturedLog:
    """The log of a server from now on, which the server also sends to our receiver."""

    def __init__(self, server: Mapping[str, Any], receiver: CallbackReceiver) -> None:
        self._path = f"/log/{server['serverId']}"
        self._receiver = receiver
        execute(server, f'logaddress_add_http "{receiver.url(self._path)}"')

    @property
    def text(self) -> bytes:
        """Return everything received so far."""
        return b"".join(post.body for post in self._receiver.at(self._path))
