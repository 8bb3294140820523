"""Restore a match from a backup: log and set everything in one tick."""

from __future__ import annotations

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import Suicide, SwitchedTeam
from cs2_protocol.log_lines.world_lines import WorldTriggered
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.fights.economy import Economy
from cs2_simulator.play.flow.backups import Backup, restore_player
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.player import SPECTATOR, Player
from cs2_simulator.play.watcher import RoundEnd

DRAW = RoundEnd(None, "Round_Draw")
"""The logged end of the interrupted round, which does not count as played."""


def reload_match(arena: Arena, standing: Standing, economy: Economy, backup: Backup) -> None:
    """Kill all players, move them to their sides in the backup, and restore score, money and equipment."""
    arena.book.rewind(backup.rounds_played)
    players = arena.playing
    sides = {player: _side_in_backup(standing, backup, player) for player in players}
    for player in players:
        if player.is_alive:
            arena.log.write(Suicide(player.token, player.position, "world"))
        arena.log.write(SwitchedTeam(player.teamless_token, player.team, SPECTATOR))
    for player in players:
        arena.log.write(SwitchedTeam(player.teamless_token, SPECTATOR, sides[player]))
        player.team = sides[player].value
    for player in arena.absent:  # without lines: a guess
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
            restore_player(player, player_backup)


def _side_in_backup(standing: Standing, backup: Backup, player: Player) -> Side:
    """Return the player's side in the backup, or that of their team if the backup does not include them."""
    player_backup = backup.players.get(player.person.player_id)
    if player_backup is not None:
        return Side(player_backup.team)
    side = Side(player.team)
    return side if standing.team1_side is backup.team1_side else side.other
