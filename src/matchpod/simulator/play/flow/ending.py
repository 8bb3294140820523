"""How does a map end? Awards and `Game Over` at once, and long after them the noise of a server that starts anew."""

from __future__ import annotations

from collections.abc import Sequence

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_lines import SwitchedTeam
from matchpod.cs2.log_lines.player_token import player_token
from matchpod.cs2.log_lines.world_lines import GameOver
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.flow.accolades import accolades
from matchpod.simulator.play.flow.standing import Phase, Standing
from matchpod.simulator.play.player import UNASSIGNED, Player

PENDING = "STEAM_ID_PENDING"
"""The id of those the game no longer counts as connected."""

NO_MAP_GROUP = ""
"""A server that was told a map has no group of maps: `Game Over` then has two blanks in a row."""

MS_PER_MINUTE = 60_000


def write_game_over(arena: Arena, standing: Standing, played_ms: int) -> None:
    """Everything between the last money line and the end of the map."""
    write = arena.log.write
    for line in accolades(arena):
        write(line)
    standing.write_status()
    ct, t = standing.side_score(Side.CT), standing.side_score(Side.T)
    # Rounded: a real map of 9:56 minutes is logged as 10.
    minutes = round(played_ms / MS_PER_MINUTE)
    write(GameOver(arena.variables.mode_name, NO_MAP_GROUP, arena.map_name, ct, t, minutes))
    standing.phase = Phase.OVER
    arena.book.close()


def deathmatch_score(arena: Arena, *, is_free_for_all: bool) -> tuple[int, int]:
    """The kills of each team; nothing where there are no teams."""
    if is_free_for_all:
        return 0, 0
    tallies = arena.book.tallies()
    one, two = (sum(tally.kills for tally in tallies if tally.team == team) for team in (1, 2))
    return one, two


def take_off_teams(arena: Arena, played: Sequence[Player]) -> None:
    """Everybody who was on a side at the end stands on none, also those who have left since."""
    for player in played:
        if player.side is None:
            continue
        token = player_token(player.person.name, player.user_id, PENDING, None)
        arena.log.write(SwitchedTeam(token, player.team, UNASSIGNED))
        player.team = UNASSIGNED
        player.is_alive = False
