"""Who wants to know what happens in the game? The plugin, the visitors, the machine: each overrides what it needs."""

from __future__ import annotations

from dataclasses import dataclass

from matchpod.core.model import Side
from matchpod.simulator.play.player import Player


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round was decided. `notice` is the X of `SFUI_Notice_X`; a draw has no side."""

    side: Side | None
    notice: str
    mvp: Player | None = None


class Watcher:
    """Told of everything, in the tick it happens, after its lines were written. Does nothing by itself."""

    def map_loaded(self, map_name: str) -> None:
        """A map was loaded (`Started`); nobody is on the server yet."""

    def map_closing(self) -> None:
        """The map is about to be left; everybody was just disconnected from it."""

    def player_connected(self, player: Player) -> None:
        """Somebody opened a connection."""

    def player_entered(self, player: Player) -> None:
        """Somebody finished loading."""

    def player_joined(self, player: Player) -> None:
        """Somebody took a team."""

    def player_left(self, player: Player, reason: str) -> None:
        """Somebody is gone, for the reason the log names."""

    def player_said(self, player: Player, text: str) -> None:
        """Somebody wrote into the chat."""

    def warmup_began(self) -> None:
        """Warmup began, or began anew."""

    def went_live(self) -> None:
        """The first round of the match is about to be played: its freeze time begins."""

    def freeze_began(self, round_number: int) -> None:
        """The freeze time of a round of the match began."""

    def round_started(self, round_number: int) -> None:
        """Freeze time is over."""

    def round_ended(self, round_number: int, end: RoundEnd) -> None:
        """A round was decided; the scores count it already. Knife rounds too: their number is 0."""

    def restored(self, rounds_played: int) -> None:
        """A backup was loaded."""

    def map_ended(self) -> None:
        """`Game Over` was written."""
