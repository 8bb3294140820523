"""Track the money and equipment of the players in the current round.

A round's economy begins with its freeze time. The money at the start is in the game's `round_stats` block, printed
just after; in a real match of 15 rounds it equals the `before` of each player's first `money change`. What players
spend is in the causes of those lines, and what they carry in `left buyzone` lines. After lost lines nothing is counted
until the next freeze time.
"""

from __future__ import annotations

import msgspec

from matchpod.core.events import EconomyCounted
from matchpod.core.model import PlayerId
from matchpod.cs2.log_lines.player_lines import LeftBuyzone, MoneyChange
from matchpod.cs2.prices import equipment_value

MAX_PLAYERS = 128
"""Most players whose money is kept. A server has at most 64; ids may be forged."""

_PURCHASE = "purchase:"
_SELLBACK = "acquire: sellback"


class Economy(msgspec.Struct):
    """Money and equipment since the start of freeze time."""

    is_known: bool = False
    """False until the first freeze time, and after lost lines."""
    is_play: bool = False
    """Freeze time is over, and the round is not decided."""
    is_changed: bool = False
    """Not all is in an event yet."""
    has_money_lines: bool = False
    money: dict[PlayerId, int] = {}
    spent: dict[PlayerId, int] = {}
    equipment: dict[PlayerId, int | None] = {}
    """None if an item is not known."""

    def start_freeze(self) -> None:
        """Begin the economy of the next round."""
        self.is_known = True
        self.is_play = self.is_changed = self.has_money_lines = False
        self.money, self.spent, self.equipment = {}, {}, {}

    def forget(self) -> None:
        """Stop counting until the next freeze time, because lines were lost."""
        self.start_freeze()
        self.is_known = False

    def set_money(self, money: dict[PlayerId, int]) -> None:
        """Set the money at the start of the round, as printed by the game."""
        if self.is_known and not self.is_play:
            self.money, self.is_changed = money, True

    def change_money(self, line: MoneyChange) -> None:
        """Count a purchase or sellback; other lines show that changes are logged."""
        player_id = line.player.player_id
        if not self.is_known or not player_id:
            return
        if player_id not in self.money:
            if len(self.money) >= MAX_PLAYERS:
                return
            self.money[player_id], self.is_changed = line.before, True
        if not self.has_money_lines:
            self.has_money_lines = self.is_changed = True
        cause = line.cause
        if cause is not None and (cause.startswith(_PURCHASE) or cause == _SELLBACK):
            self.spent[player_id] = self.spent.get(player_id, 0) - line.change
            self.is_changed = True

    def leave_buyzone(self, at_ms: int, line: LeftBuyzone, round_number: int) -> EconomyCounted | None:
        """Return the value of what a player carries at the first exit of the round; None if there is nothing new."""
        player_id = line.player.player_id
        is_new = player_id not in self.equipment and len(self.equipment) < MAX_PLAYERS
        if not (self.is_play and is_new and player_id and line.items):
            return None
        value = self.equipment[player_id] = equipment_value(line.items)
        return None if value is None else EconomyCounted(at_ms, round_number, equipment={player_id: value})

    def money_event(self, at_ms: int, round_number: int) -> EconomyCounted:
        """Return the money at the start of the round, and what was spent so far."""
        self.is_changed = False
        return EconomyCounted(
            at_ms, round_number, dict(self.money), dict(self.spent), has_money_lines=self.has_money_lines
        )
