"""Track which players are ready, and decide whether the match can start."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import Player


class ReadyList:
    """Ready state of each player on the server, by user id."""

    def __init__(self) -> None:
        self._is_ready: dict[int, bool] = {}

    def __len__(self) -> int:
        return len(self._is_ready)

    @property
    def is_everyone_ready(self) -> bool:
        """True if no player is unready; also true if there are no players."""
        return all(self._is_ready.values())

    def set_ready(self, player: Player, *, is_ready: bool) -> None:
        self._is_ready[player.user_id] = is_ready

    def remove(self, player: Player) -> None:
        self._is_ready.pop(player.user_id, None)

    def clear(self) -> None:
        self._is_ready = dict.fromkeys(self._is_ready, False)

    def can_start(self, arena: Arena, players_per_team: int) -> bool:
        """True if each side is complete and all its players are ready."""
        for side in (Side.CT, Side.T):
            people = [player for player in arena.players_on(side) if not player.person.is_bot]
            ready = sum(self._is_ready.get(player.user_id, False) for player in people)
            if not max(1, players_per_team) <= len(people) == ready:
                return False
        return True
