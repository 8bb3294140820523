"""Which rounds can be played again? The backups of a server: what stood where when a round's freeze time began."""

from __future__ import annotations

from dataclasses import dataclass

from matchpod.core.model import Side
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.player import Player

MAX_BACKUPS = 100
"""The newest that are kept: more than a best of three with overtime writes; a real server keeps all on its disk."""


@dataclass(frozen=True, slots=True)
class Belongings:
    """Where one player stood, and what he had."""

    side: Side
    money: int
    primary: str
    pistol: str
    grenades: tuple[str, ...]
    armor: int
    has_helmet: bool
    has_kit: bool
    has_taser: bool


@dataclass(frozen=True, slots=True)
class Backup:
    """A map between two rounds. Whoever was not there has nothing in it."""

    map_name: str
    rounds_played: int
    score: tuple[int, int]
    team1_side: Side
    belongings: dict[str, Belongings]
    economy: object
    """The streaks, in the economy's own words."""


class Backups:
    """The backups by file name."""

    def __init__(self) -> None:
        self._files: dict[str, Backup] = {}

    @property
    def last(self) -> str:
        """The newest file; empty when there is none."""
        return next(reversed(self._files), "")

    def names(self) -> list[str]:
        """The files, newest first."""
        return list(reversed(self._files))

    def find(self, file: str) -> Backup | None:
        """The backup of this name."""
        return self._files.get(file)

    def write(self, prefix: str, backup: Backup) -> None:
        """Keep a backup; one of the same name is overwritten, and the oldest goes when there are too many."""
        file = f"{prefix}_round{backup.rounds_played:02d}.txt"
        self._files.pop(file, None)
        self._files[file] = backup
        if len(self._files) > MAX_BACKUPS:
            del self._files[next(iter(self._files))]


def belongings_of(arena: Arena) -> dict[str, Belongings]:
    """What everyone on a side has now, by player id."""
    return {
        player.person.player_id: Belongings(
            side=Side(player.team),
            money=player.money,
            primary=player.primary,
            pistol=player.pistol,
            grenades=tuple(player.grenades),
            armor=player.armor,
            has_helmet=player.has_helmet,
            has_kit=player.has_kit,
            has_taser=player.has_taser,
        )
        for player in arena.playing
    }


def give_back(player: Player, kept: Belongings) -> None:
    """Let a player have again what he had; he counts as one who lived to keep it."""
    player.is_alive = True
    player.money = kept.money
    player.primary = kept.primary
    player.pistol = kept.pistol
    player.grenades[:] = kept.grenades
    player.armor = kept.armor
    player.has_helmet = kept.has_helmet
    player.has_kit = kept.has_kit
    player.has_taser = kept.has_taser
