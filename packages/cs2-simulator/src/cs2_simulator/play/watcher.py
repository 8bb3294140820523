"""Define the observer interface of the game, which for example the plugin, the visitors and the machine implement."""

from __future__ import annotations

from dataclasses import dataclass

from cs2_protocol.game import Side
from cs2_simulator.play.player import Player


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round ended. `notice` is the X of `SFUI_Notice_X`; a draw has no side."""

    side: Side | None
    notice: str
    mvp: Player | None = None


class Watcher:
    """Observer of game events, called in the tick of the event after its lines were logged. Does nothing by default."""

    def map_loaded(self, map_name: str) -> None:
        """A map was loaded (`Started`); no player is connected yet."""

    def map_closing(self) -> None:
        """The map is about to be unloaded; all players were just disconnected."""

    def player_connected(self, player: Player) -> None:
        """A player connected."""

    def player_entered(self, player: Player) -> None:
        """A player finished loading the map."""

    def player_joined(self, player: Player) -> None:
        """A player joined a team."""

    def player_left(self, player: Player, reason: str) -> None:
        """A player disconnected; `reason` is the text in the log."""

    def player_chatted(self, player: Player, text: str) -> None:
        """A player wrote a chat message."""

    def warmup_began(self) -> None:
        """Warmup began or was restarted."""

    def warmup_ending(self) -> None:
        """Warmup is about to end."""

    def round_restarting(self) -> None:
        """The freeze time of the next round is about to begin."""

    def went_live(self) -> None:
        """The match went live: the freeze time of its first round begins."""

    def freeze_began(self, round_number: int) -> None:
        """The freeze time of a round of the match began."""

    def round_started(self, round_number: int) -> None:
        """The freeze time ended and the round started."""

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """A round ended and is included in the scores. Called for knife rounds too, with number 0."""

    def restored(self, rounds_played: int) -> None:
        """A backup was restored; `rounds_played` is the number of rounds played before it."""

    def map_ended(self) -> None:
        """`Game Over` was logged."""
