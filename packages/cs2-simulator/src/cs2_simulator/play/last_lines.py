"""Log the last line of players who left, and of players who died in their buy zone: an empty `left buyzone`.

A real server prints it at the end of the tick, after a round end that the departure causes. From then on it no longer
knows the Steam id of the one who left. A bot is gone for good; the place of a player is kept.
"""

from __future__ import annotations

from functools import partial

from cs2_protocol.log_lines.player_lines import LeftBuyzone
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import Player


def plan_last_line(arena: Arena, player: Player) -> None:
    """Log the line later in this tick."""
    if player not in arena.buy_zone_exits:
        arena.buy_zone_exits.append(player)
        arena.agenda.call_in(0, partial(write_last_lines, arena))


def write_last_lines(arena: Arena) -> None:
    """Log the lines that are due. None of ten players who left after the end of a real match had one."""
    exits, arena.buy_zone_exits = arena.buy_zone_exits, []
    for player in exits:
        if player not in arena.players:
            player.forget_id()
            if player.person.is_bot and player in arena.absent:
                arena.absent.remove(player)
        if not arena.is_map_over and arena.variables.is_on("mp_logdetail_items"):
            arena.log.write(LeftBuyzone(player.token, ()))
