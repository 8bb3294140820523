"""End a map: log the awards and `Game Over`, and later unassign the players when the server restarts the map."""

from __future__ import annotations

from collections.abc import Sequence

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_lines import SwitchedTeam
from cs2_protocol.log_lines.player_token import player_token
from cs2_protocol.log_lines.world_lines import GameOver
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.flow.accolades import accolades
from cs2_simulator.play.flow.standing import GamePhase, Standing
from cs2_simulator.play.player import PENDING_ID, UNASSIGNED, Player

NO_MAP_GROUP = ""
"""A server started with a map has no map group: `Game Over` then has two spaces in a row."""

MS_PER_MINUTE = 60_000


def write_game_over(arena: Arena, standing: Standing, played_ms: int) -> None:
    """Log the awards, the score and `Game Over`, set the phase to OVER and close the book."""
    write = arena.log.write
    for line in accolades(arena):
        write(line)
    standing.write_status()
    ct, t = standing.side_score(Side.CT), standing.side_score(Side.T)
    # Rounded: a real map of 9:56 minutes is logged as 10.
    minutes = round(played_ms / MS_PER_MINUTE)
    write(GameOver(arena.variables.mode_name, NO_MAP_GROUP, arena.map_name, ct, t, minutes))
    standing.phase = GamePhase.OVER
    arena.is_map_over = True
    arena.book.close()


def deathmatch_score(arena: Arena, *, is_free_for_all: bool) -> tuple[int, int]:
    if is_free_for_all:
        return 0, 0
    tallies = arena.book.tallies()
    one, two = (sum(tally.kills for tally in tallies if tally.team == team) for team in (1, 2))
    return one, two


def unassign_players(arena: Arena, played: Sequence[Player]) -> None:
    """Move all players who were on a side at the end to no team, including those who have left since."""
    for player in played:
        if player.side is None:
            continue
        token = player_token(player.person.name, player.user_id, PENDING_ID, None)
        arena.log.write(SwitchedTeam(token, player.team, UNASSIGNED))
        player.team = UNASSIGNED
        player.is_alive = False
