"""Store round backups, and restore a match from a backup.

A backup is the state of a map and its players at the start of the freeze time of a round.
"""

from __future__ import annotations

from dataclasses import dataclass

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Attacked, Suicide, SwitchedTeam, Triggered
from cs2_protocol.log_lines.world_lines import WorldTriggered
from cs2_protocol.weapons import base_name
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.economy import Economy
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.player import SPECTATOR, Player
from cs2_simulator.play.watcher import RoundEnd

MAX_BACKUPS = 100
"""Maximum number of backups: more than a best of three with overtime creates. A real server has no limit."""

DRAW = RoundEnd(None, "Round_Draw")
"""The round end that is logged for the interrupted round. That round does not count as played."""


@dataclass(frozen=True, slots=True)
class Backup:
    """The state of a map between two rounds. Players who were not connected are not included."""

    map_name: str
    rounds_played: int
    score: tuple[int, int]
    team1_side: Side
    players: dict[str, Player]
    """Copies of the players who were on a side, by player id."""
    economy: dict[Side, int]
    """The loss streak per side, from `Economy.snapshot`."""


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
        """Store a backup, replacing a backup of the same name. If there are too many, remove the oldest."""
        file = f"{prefix}_round{backup.rounds_played:02d}.txt"
        self._files.pop(file, None)
        self._files[file] = backup
        if len(self._files) > MAX_BACKUPS:
            del self._files[next(iter(self._files))]


def reload_match(arena: Arena, standing: Standing, economy: Economy, backup: Backup) -> None:
    """In one tick, kill all players, move them to their sides in the backup, and restore score, money and equipment."""
    arena.book.rewind(backup.rounds_played)
    players = arena.playing
    sides = {player: _side_in_backup(standing, backup, player) for player in players}
    for player in players:
        if player.is_alive:
            _log_death(arena, player)
        arena.log.write(SwitchedTeam(player.teamless_token, player.team, SPECTATOR))
    for player in players:
        arena.log.write(SwitchedTeam(player.teamless_token, SPECTATOR, sides[player]))
        player.team = sides[player].value
    for player in arena.absent:  # moved without log lines, as real servers may do (a guess)
        if player.side is not None:
            player.team = _side_in_backup(standing, backup, player).value
    standing.set_to(
        GamePhase.LIVE, score=backup.score, rounds_played=backup.rounds_played, team1_side=backup.team1_side
    )
    arena.log.write(WorldTriggered("Match_Reloaded", arena.map_name))
    standing.write_teams()
    standing.write_round_end(DRAW)
    economy.start_half(arena)
    economy.restore(backup.economy)
    for player in players:
        player_backup = backup.players.get(player.person.player_id)
        if player_backup is not None:
            _restore_player(player, player_backup)


def _log_death(arena: Arena, player: Player) -> None:
    """Log the lines for a player killed by a restore: a hit on themselves with the weapon in hand, then a suicide."""
    token, place = player.token, player.position
    weapon = "c4" if player.has_bomb else base_name(player.primary or player.pistol or "knife")
    arena.log.write(
        Attacked(token, place, token, place, weapon, damage=1, damage_armor=0, health=0, armor=0, hitgroup="generic")
    )
    if player.has_bomb:
        arena.log.write(Triggered(token, "Dropped_The_Bomb"))
    arena.log.write(Suicide(token, place, "world"))


def _side_in_backup(standing: Standing, backup: Backup, player: Player) -> Side:
    """Return the player's side in the backup, or their team's side in the backup if it does not contain the player."""
    player_backup = backup.players.get(player.person.player_id)
    if player_backup is not None:
        return Side(player_backup.team)
    side = Side(player.team)
    return side if standing.team1_side is backup.team1_side else side.other


def _restore_player(player: Player, backup: Player) -> None:
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
