"""Track the money and equipment of the players in the current round.

A round's economy begins with its freeze time. The game's `round_stats` block, printed just after the start of freeze
time, has the money of each player; in a real match of 15 rounds it equals the `before` of the player's first `money
change`. The causes of `money change` lines show what players buy, and `left buyzone` lines what they carry. After lost
lines, nothing is counted until the next freeze time.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.log_lines.player_lines import LeftBuyzone, MoneyChange
from matchpod.core.events import EconomyCounted
from matchpod.cs2.prices import equipment_value

MAX_PLAYERS = 128
"""Maximum number of players whose money is tracked. A server has at most 64, but a log can contain forged ids."""

_PURCHASE = "purchase: "
_CHARS = len(_PURCHASE)
_SELLBACK = "acquire: sellback"


def is_purchase(line: MoneyChange) -> bool:
    """True if the player bought something."""
    return line.cause is not None and line.cause[:_CHARS] == _PURCHASE


class EconomyReader(msgspec.Struct):
    """The money and equipment of players since the start of freeze time."""

    is_known: bool = False
    """False before the first freeze time, and from a loss of lines until the next freeze time."""
    is_play: bool = False
    """True from the end of freeze time until the round is decided."""
    is_changed: bool = False
    """True if `event` has not yet returned the latest changes."""
    has_money_lines: bool = False
    money: dict[PlayerId, int] = {}
    spent: dict[PlayerId, int] = {}
    equipment: dict[PlayerId, int | None] = {}
    """Equipment value per player; None if the price of an item is unknown."""

    def start_freeze(self) -> None:
        """Discard the economy of the previous round, and begin that of the next round."""
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
            self.money, self.is_changed = dict(money), True

    def change_money(self, line: MoneyChange) -> None:
        """Store unknown money; count a purchase or a return. Any line shows that the server logs money changes."""
        player_id, cause = line.player.player_id, line.cause
        if player_id not in self.money:
            if not player_id or len(self.money) >= MAX_PLAYERS:
                return
            self.money[player_id], self.is_changed = line.before, True
        if cause is not None and (cause[:_CHARS] == _PURCHASE or cause == _SELLBACK):
            spent = self.spent
            spent[player_id] = spent[player_id] - line.change if player_id in spent else -line.change
            self.is_changed = self.has_money_lines = True
        elif not self.has_money_lines:
            self.is_changed = self.has_money_lines = True

    def leave_buyzone(self, line: LeftBuyzone) -> bool:
        """Record a player's equipment value when they first leave the buy zone in a round; True if it was recorded."""
        player_id = line.player.player_id
        equipment, items = self.equipment, line.items
        if player_id in equipment or not (player_id and items) or len(equipment) >= MAX_PLAYERS:
            return False
        equipment[player_id] = equipment_value(items)
        self.is_changed = True
        return True

    def event(self, at_ms: int, round_number: int, *, without: Mapping[PlayerId, None]) -> EconomyCounted:
        """Return all known values of the round as an event, without the people in `without`."""
        self.is_changed = False
        money, spent = (
            {who: n for who, n in amounts.items() if who not in without} for amounts in (self.money, self.spent)
        )
        equipment = {player_id: value for player_id, value in self.equipment.items() if value is not None}
        return EconomyCounted(at_ms, round_number, money, spent, equipment, has_money_lines=self.has_money_lines)
