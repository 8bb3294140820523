"""How does money come and go? One change of one player's money, told to the log where money is logged."""

from __future__ import annotations

from matchpod.cs2.log_lines.player_lines import MoneyChange
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.player import Player


def change_money(arena: Arena, player: Player, change: int, cause: str | None = None) -> None:
    """Pay or charge a player. The line prints the whole change even where the limit cuts it; no line without effect."""
    variables = arena.variables
    before = player.money
    if change > 0:
        after = max(before, min(before + change, variables.whole("mp_maxmoney")))
    else:
        after = max(before + change, 0)
    if after == before:  # who has the most already gets no line: seen of every player at 16000
        return
    player.money = after
    if variables.is_on("mp_logmoney"):
        arena.log.write(MoneyChange(player.money_token, before, change, after, cause))
