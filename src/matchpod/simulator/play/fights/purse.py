"""Change a player's money and log it."""

from __future__ import annotations

from matchpod.cs2.log_lines.player_lines import MoneyChange
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.player import Player

SELLBACK = "acquire: sellback"


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
