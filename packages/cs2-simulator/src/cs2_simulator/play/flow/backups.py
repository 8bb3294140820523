"""Store round backups: the state of the map and its players when a round's freeze time began."""

from __future__ import annotations

from dataclasses import dataclass

from cs2_protocol.game import Side
from cs2_simulator.play.player import Player

MAX_BACKUPS = 100
"""Maximum number of backups: more than a best of three with overtime writes. A real server keeps all on disk."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The state of a map between two rounds. Players who were not connected are not included."""

    map_name: str
    rounds_played: int
    score: tuple[int, int]
    team1_side: Side
    players: dict[str, Player]
    """Copies of the players on a side, by player id."""
    economy: dict[Side, int]
    """The snapshot made by `Economy.snapshot`."""


class Backups:
    def __init__(self) -> None:
        self._files: dict[str, Backup] = {}

    @property
    def last(self) -> str:
        return next(reversed(self._files), "")

    def names(self) -> list[str]:
        return list(reversed(self._files))

    def find(self, file: str) -> Backup | None:
        return self._files.get(file)

    def write(self, prefix: str, backup: Backup) -> None:
        """Store a backup, overwriting one of the same name, and drop the oldest if there are too many."""
        file = f"{prefix}_round{backup.rounds_played:02d}.txt"
        self._files.pop(file, None)
        self._files[file] = backup
        if len(self._files) > MAX_BACKUPS:
            del self._files[next(iter(self._files))]


def restore_player(player: Player, backup: Player) -> None:
    """Restore a player's money and equipment, as if the player had survived the previous round."""
    player.is_alive = True
    player.money = backup.money
    player.primary = backup.primary
    player.pistol = backup.pistol
    player.grenades[:] = backup.grenades
    player.armor = backup.armor
    player.has_helmet = backup.has_helmet
    player.has_kit = backup.has_kit
    player.has_taser = backup.has_taser
