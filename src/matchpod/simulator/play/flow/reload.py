"""How does a match go back to a backup? All that a restore says and sets right, in one tick."""

from __future__ import annotations

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import Suicide, SwitchedTeam
from matchpod.cs2.log_lines.world_lines import WorldTriggered
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.fights.economy import Economy
from matchpod.simulator.play.flow.backups import Backup, give_back
from matchpod.simulator.play.flow.standing import Phase, Standing
from matchpod.simulator.play.player import SPECTATOR, Player
from matchpod.simulator.play.watcher import RoundEnd

DRAW = RoundEnd(None, "Round_Draw")
"""What the round that is broken off counts as; it is none of those played."""


def reload_match(arena: Arena, standing: Standing, economy: Economy, backup: Backup) -> None:
    """Everybody dies, is taken from his side and put back on the one of the backup; then the match is as it was."""
    arena.book.rewind(backup.rounds_played)
    players = arena.playing
    sides = {player: _side_then(standing, backup, player) for player in players}
    for player in players:
        if player.is_alive:
            arena.log.write(Suicide(player.token, player.position, "world"))
        arena.log.write(SwitchedTeam(player.teamless_token, player.team, SPECTATOR))
    for player in players:
        arena.log.write(SwitchedTeam(player.teamless_token, SPECTATOR, sides[player]))
        player.team = sides[player].value
    standing.set_to(Phase.LIVE, score=backup.score, rounds_played=backup.rounds_played, team1_side=backup.team1_side)
    arena.log.write(WorldTriggered("Match_Reloaded", arena.map_name))
    standing.write_teams()
    standing.write_round_end(DRAW)
    economy.start_half(arena)
    economy.restore(backup.economy)
    for player in players:
        kept = backup.belongings.get(player.person.player_id)
        if kept is not None:
            give_back(player, kept)


def _side_then(standing: Standing, backup: Backup, player: Player) -> Side:
    """Where he stood; who was not there goes with his team."""
    kept = backup.belongings.get(player.person.player_id)
    if kept is not None:
        return kept.side
    side = Side(player.team)
    return side if standing.team1_side is backup.team1_side else side.other
