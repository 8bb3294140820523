"""What can a test see of a game server by itself, past the service? Its console, and its log as a second listener."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.e2e.service.callback_receiver import CallbackReceiver
from tests.e2e.simulator.rcon_client import RconClient

_PLAYER = re.compile(rb'"[^"\n]*<[0-9]+><\[U:1:([0-9]+)\]><[^>\n]*>" ([^\n]*)')
_FIRST_ID64 = 76561197960265728


def ask(server: Mapping[str, Any], *commands: str) -> list[str]:
    """What the console of a running server answers to each command, with the password that the service returned."""
    return ask_at(server["port"], server["rconPassword"], *commands)


def ask_at(port: int, password: str, *commands: str) -> list[str]:
    """What the console at a port answers to each command."""
    with RconClient(port) as console:
        assert console.log_in(password)
        return [console.run(command) for command in commands]


class OverheardLog:
    """The log of a server from now on, sent to us by the server itself."""

    def __init__(self, server: Mapping[str, Any], receiver: CallbackReceiver) -> None:
        self._path = f"/log/{server['serverId']}"
        self._receiver = receiver
        ask(server, f'logaddress_add_http "{receiver.url(self._path)}"')

    @property
    def text(self) -> bytes:
        """All of it."""
        return b"".join(post.body for post in self._receiver.at(self._path))

    def players_with(self, words: bytes) -> list[str]:
        """The ids of the players of whom a line says this, in order and as often as it does."""
        found = _PLAYER.findall(self.text)
        return [str(_FIRST_ID64 + int(account)) for account, said in found if words in said]
