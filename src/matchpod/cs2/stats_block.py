"""Parse the game's own `round_stats` block, printed line by line at the start of freeze time.

The block is not valid JSON: commas are missing, and the host name is not escaped. The labels of columns 0 to 20 are
right. The labels of later columns are wrong and differ between builds, so later columns are ignored.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.log_lines.world_grammar import STATS_BEGIN, STATS_END
from cs2_protocol.log_lines.world_lines import StatsField, StatsMark, StatsPlayer
from cs2_protocol.steam_id import MAX_ACCOUNT, from_account
from matchpod.core.events import GameCount

COLUMNS_READ = 21
MAX_ROWS = 128
"""Maximum number of rows read per block. A server has at most 64 players, so a longer block is invalid."""

MAX_DIGITS = 10
"""Maximum number of digits of an account id or an amount of money."""


class StatsBlock(msgspec.Struct):
    """The block that is being parsed, if one is open."""

    is_open: bool = False
    round_number: int = 0
    rows: list[GameCount] = []
    money: dict[PlayerId, int] = {}

    def read_mark(self, line: StatsMark) -> bool:
        """Handle a line that opens or closes the block. Return True if the block is complete and can be used."""
        if line.mark == STATS_BEGIN:
            self.is_open, self.round_number, self.rows, self.money = True, 0, [], {}
        elif line.mark == STATS_END and self.is_open:
            self.is_open = False
            return self.round_number > 0
        return False

    def read_field(self, line: StatsField) -> None:
        """Store the number of the round that is about to start."""
        if line.name == "round_number" and line.value.isascii() and line.value.isdigit() and len(line.value) < 6:
            self.round_number = int(line.value)

    def read_player(self, line: StatsPlayer) -> None:
        """Append a player's row. Bots and the GOTV client (CSTV) have account 0 and are skipped."""
        row = _read_row(line.columns)
        if self.is_open and row is not None and len(self.rows) < MAX_ROWS:
            self.rows.append(row)
            self.money[row.player_id] = row.money

    def read_money(self, line: StatsPlayer) -> None:
        """Store only the money of a player, because the other columns do not count before the map is live."""
        account, _, money, *_ = (*line.columns.split(",", 3), "", "", "")
        account, money = account.strip(), money.strip()
        is_number = account.isdecimal() and money.isdecimal() and max(len(account), len(money)) <= MAX_DIGITS
        if self.is_open and is_number and 0 < int(account) <= MAX_ACCOUNT and len(self.money) < MAX_ROWS:
            self.money[from_account(int(account))] = int(money)


def _read_row(columns: str) -> GameCount | None:
    cells = columns.split(",")
    if len(cells) < COLUMNS_READ:
        return None
    try:
        account = int(cells[0])
        numbers = [float(cell) for cell in cells[2:COLUMNS_READ]]
    except ValueError:
        return None
    if not 0 < account <= MAX_ACCOUNT or not all(abs(number) < 1e9 for number in numbers):
        return None
    money, kills, deaths, assists, damage, hs_percent, _kdr, adr, mvps, flashed, utility, *rest = numbers
    triple, quad, ace, clutch, first, pistol, sniper, blind = (int(number) for number in rest)
    return GameCount(
        from_account(account), int(money), int(kills), int(deaths), int(assists), damage, hs_percent, adr, int(mvps),
        int(flashed), utility, triple, quad, ace, clutch, first, pistol, sniper, blind,
    )  # fmt: skip
