"""Track which players are ready, and decide whether the match can start."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import SPECTATOR, Player
from cs2_simulator.plugin.match_file import MatchFile


class ReadyList:
    """The ready state of each player on the server, by user id, and the sides that were forced to be ready."""

    def __init__(self) -> None:
        self._is_ready: dict[int, bool] = {}
        self._forced: list[Side] = []

    def __len__(self) -> int:
        return len(self._is_ready)

    @property
    def is_everyone_ready(self) -> bool:
        """True if all players are ready. Also true if there are no players."""
        return all(self._is_ready.values())

    def set_ready(self, player: Player, *, is_ready: bool) -> None:
        self._is_ready[player.user_id] = is_ready

    def force(self, arena: Arena, side: Side, match: MatchFile) -> None:
        """Make everyone on a side ready, even if players are missing.

        Ignored if the side has fewer than `min_ready` people.
        """
        people = arena.everyone_on(side)
        if len(people) >= match.min_ready:
            self._forced.append(side)
            for player in people:
                self.set_ready(player, is_ready=True)

    def remove(self, player: Player) -> None:
        self._is_ready.pop(player.user_id, None)

    def clear(self) -> None:
        """Make everyone unready. Forced sides stay forced: MatchZy resets them only at the end of a match."""
        self._is_ready = dict.fromkeys(self._is_ready, False)

    def reset(self) -> None:
        self.clear()
        self._forced.clear()

    def can_start(self, arena: Arena, match: MatchFile) -> bool:
        """True if enough spectators are ready, and each side is either complete with everyone ready, or forced.

        A forced side still needs `min_ready` ready people. Coaches count like players, as in MatchZy.
        """
        watching = [player for player in arena.players if player.is_in_game and player.team == SPECTATOR]
        need = match.min_ready_spectators
        return all(self._is_side_ready(arena, side, match) for side in Side) and (
            not need or need <= len(watching) == self._count(watching)
        )

    def _is_side_ready(self, arena: Arena, side: Side, match: MatchFile) -> bool:
        people = [player for player in arena.everyone_on(side) if not player.person.is_bot]
        ready = self._count(people)
        is_complete = match.players_per_team <= len(people) == ready
        return bool(people) and (is_complete or (side in self._forced and ready >= match.min_ready))

    def _count(self, people: list[Player]) -> int:
        return sum(self._is_ready.get(player.user_id, False) for player in people)
