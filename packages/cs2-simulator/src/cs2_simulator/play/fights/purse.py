"""Change a player's money and log it."""

from __future__ import annotations

from cs2_protocol.log_lines.player_lines import MoneyChange
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.player import Player

SELLBACK = "acquire: sellback"


def reward_for_departure(arena: Arena, leaver: Player) -> None:
    """Pay a living enemy for the death of a player who leaves alive, as for a kill.

    4 of 4 cases in a real log, for bots too. It had one enemy: which of several is paid is a guess.
    """
    enemies = [
        player for player in arena.players if player.is_alive and player.is_playing and player.team != leaver.team
    ]
    if arena.book.is_open and arena.variables.is_on("mp_playercashawards") and enemies and not arena.is_map_over:
        enemy = arena.rng("departure", leaver.person.player_id).choice(enemies)
        change_money(arena, enemy, arena.variables.whole("cash_player_killed_enemy_default"))


def change_money(
    arena: Arena, player: Player, change: int, cause: str | None = None, *, is_tracked: bool = True
) -> None:
    """Pay or charge a player. The full change is logged even if the limit cuts it; a change without effect is not."""
    variables = arena.variables
    before = player.money
    if change > 0:
        after = max(before, min(before + change, variables.whole("mp_maxmoney")))
    else:
        after = max(before + change, 0)
    if after == before:  # as in a real log, where no player at 16000 gets a line
        return
    player.money = after
    if variables.is_on("mp_logmoney"):
        arena.log.write(MoneyChange(player.money_token, before, change, after, cause, is_tracked))
