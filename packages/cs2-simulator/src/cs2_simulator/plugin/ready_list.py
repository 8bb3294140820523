"""Track which players are ready, and decide whether the match can start."""

from __future__ import annotations

from collections.abc import Sequence

from cs2_protocol.game import Side
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import SPECTATOR, Player
from cs2_simulator.plugin.match_file import MatchFile


class ReadyList:
    """Ready state of each player on the server, by user id."""

    def __init__(self) -> None:
        self._is_ready: dict[int, bool] = {}
        self._forced: list[Side] = []

    def __len__(self) -> int:
        return len(self._is_ready)

    @property
    def is_everyone_ready(self) -> bool:
        """True if no player is unready; also true if there are no players."""
        return all(self._is_ready.values())

    def set_ready(self, player: Player, *, is_ready: bool) -> None:
        """Mark a player as ready or unready."""
        self._is_ready[player.user_id] = is_ready

    def force(self, arena: Arena, side: Side, min_ready: int) -> None:
        """Mark all players of a side as ready, if it has at least `min_ready` players."""
        players = arena.players_on(side)
        if len(players) >= min_ready:
            self._forced.append(side)
            for player in players:
                self.set_ready(player, is_ready=True)

    def remove(self, player: Player) -> None:
        """Remove a player who left."""
        self._is_ready.pop(player.user_id, None)

    def clear(self) -> None:
        """Mark all players as unready."""
        self._forced.clear()
        self._is_ready = dict.fromkeys(self._is_ready, False)

    def can_start(self, arena: Arena, match: MatchFile, min_ready: int) -> bool:
        """True if each side is complete and ready or was forced ready, and enough spectators are ready."""
        if match.min_spectators_to_ready:
            spectators = [player for player in arena.players if player.team == SPECTATOR]
            if not self._are_all_ready(spectators, match.min_spectators_to_ready):
                return False
        return all(self._is_side_ready(arena, side, match.players_per_team, min_ready) for side in (Side.CT, Side.T))

    def _is_side_ready(self, arena: Arena, side: Side, needed: int, min_ready: int) -> bool:
        players = [player for player in arena.players_on(side) if not player.person.is_bot]
        # The minimum applies only to a side that was forced ready; otherwise all players must be present.
        is_forced = side in self._forced and self._count_ready(players) >= max(1, min_ready)
        return self._are_all_ready(players, needed) or is_forced

    def _are_all_ready(self, players: Sequence[Player], needed: int) -> bool:
        return 0 < len(players) == self._count_ready(players) and len(players) >= needed

    def _count_ready(self, players: Sequence[Player]) -> int:
        return sum(self._is_ready.get(player.user_id, False) for player in players)
