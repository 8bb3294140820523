"""Who is ready to play? The players' own word, by their number on the server, and whether it is enough to start."""

from __future__ import annotations

from collections.abc import Sequence

from matchpod.core.model import Side
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.player import SPECTATOR, Player
from matchpod.simulator.plugin.match_file import MatchFile


class ReadyList:
    """Everyone on the server with his word."""

    def __init__(self) -> None:
        self._words: dict[int, bool] = {}
        self._forced: list[Side] = []

    def __len__(self) -> int:
        return len(self._words)

    @property
    def is_everybody(self) -> bool:
        """True when nobody is unready; also when nobody is there."""
        return all(self._words.values())

    def say(self, player: Player, *, is_ready: bool) -> None:
        """Take somebody's word."""
        self._words[player.user_id] = is_ready

    def force(self, arena: Arena, side: Side, least: int) -> None:
        """Somebody speaks for his whole side, if it has enough people for that."""
        players = arena.on(side)
        if len(players) >= least:
            self._forced.append(side)
            for player in players:
                self.say(player, is_ready=True)

    def forget(self, player: Player) -> None:
        """Somebody has left."""
        self._words.pop(player.user_id, None)

    def clear(self) -> None:
        """Nobody is ready any more."""
        self._forced.clear()
        self._words = dict.fromkeys(self._words, False)

    def is_enough(self, arena: Arena, match: MatchFile, least: int) -> bool:
        """True when the match starts by itself: both sides complete and ready, or somebody spoke for them."""
        if match.min_spectators_to_ready:
            watching = [player for player in arena.players if player.team == SPECTATOR]
            if not self._are_all_ready(watching, match.min_spectators_to_ready):
                return False
        return all(self._is_side_ready(arena, side, match.players_per_team, least) for side in (Side.CT, Side.T))

    def _is_side_ready(self, arena: Arena, side: Side, needed: int, least: int) -> bool:
        players = arena.on(side)
        # The least number counts only where somebody spoke for the side; else everyone must be there.
        return self._are_all_ready(players, needed) or (side in self._forced and self._ready(players) >= max(1, least))

    def _are_all_ready(self, players: Sequence[Player], needed: int) -> bool:
        return 0 < len(players) == self._ready(players) and len(players) >= needed

    def _ready(self, players: Sequence[Player]) -> int:
        return sum(self._words.get(player.user_id, False) for player in players)
