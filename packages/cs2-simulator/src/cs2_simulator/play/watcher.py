"""Define the observer interface of the game. Plugin, visitors and machine implement it, among others."""

from __future__ import annotations

from dataclasses import dataclass

from cs2_protocol.game import Side
from cs2_simulator.play.player import Player


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round ended. `notice` is the X of `SFUI_Notice_X`. A draw has no side."""

    side: Side | None
    notice: str
    mvp: Player | None = None


class Watcher:
    """Observes game events.

    Methods are called in the tick of the event, after its lines were logged, and do nothing by default.
    """

    def map_loaded(self, map_name: str) -> None:
        """A map was loaded (`Started` is logged). No player is connected yet."""

    def map_closing(self) -> None:
        """The map will be unloaded now. All players were just disconnected."""

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
        """Warmup ends now; its end is not logged yet."""

    def round_restarting(self) -> None:
        """The freeze time of the next round begins now."""

    def went_live(self) -> None:
        """The match went live: the freeze time of its first round begins."""

    def freeze_began(self, round_number: int) -> None:
        """The freeze time of a round of the match began."""

    def round_started(self, round_number: int) -> None:
        """The freeze time ended and the round started."""

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """A round ended. The scores include it. Also called for a knife round, with number 0."""

    def restored(self, rounds_played: int) -> None:
        """A round backup was restored. `rounds_played` is the number of rounds played before the backup was written."""

    def map_ended(self) -> None:
        """`Game Over` was logged."""
