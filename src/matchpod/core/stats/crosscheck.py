"""Compare our statistics with those the game prints. Differences are reported, never corrected.

Our counts take precedence: they include the last round, which the game's block lacks, and handle restored rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from matchpod.core.events import GameCount
from matchpod.core.model import PlayerId
from matchpod.core.stats.derived import hs_percent
from matchpod.core.stats.player_line import PlayerLine

# More differences than this on one map have a common cause, which the first ones show.
MAX_DISCREPANCIES = 100


class Discrepancy(msgspec.Struct, frozen=True, gc=False):
    """A difference between our total and the game's for one player after a round."""

    round_number: int
    player_id: PlayerId
    field: str
    ours: float
    game: float


class _Column(msgspec.Struct, frozen=True):
    """One statistic that both count, with its tolerance: a share of the game's value plus a fixed slack."""

    field: str
    ours: Callable[[PlayerLine], float]
    game: Callable[[GameCount], float]
    share: float = 0.0
    slack: float = 0.0


# Not compared: mvps (the game is our source) and blind kills (meaning not verified).
_COLUMNS = (
    _Column("kills", lambda line: line.kills, lambda game: game.kills),
    _Column("deaths", lambda line: line.deaths, lambda game: game.deaths),
    _Column("assists", lambda line: line.all_assists, lambda game: game.assists),
    # The game prints two decimals; the slack is one unit of the last plus a rounding error.
    _Column(
        "hs_percent", lambda line: hs_percent(line.headshots, line.kills), lambda game: game.hs_percent, slack=0.0101
    ),
    # In a real match the game counted 15 of 16 living enemies; the log does not show why.
    _Column(
        "enemies_flashed",
        lambda line: line.enemies_flashed,
        lambda game: game.enemies_flashed,
        share=0.1,
        slack=1,
    ),
    _Column("triple_kills", lambda line: line.triple_kills, lambda game: game.triple_kills),
    _Column("quad_kills", lambda line: line.quad_kills, lambda game: game.quad_kills),
    _Column("aces", lambda line: line.aces, lambda game: game.aces),
    _Column("clutch_kills", lambda line: line.clutch_kills, lambda game: game.clutch_kills),
    _Column("first_kills", lambda line: line.first_kills, lambda game: game.first_kills),
    _Column("pistol_kills", lambda line: line.pistol_kills, lambda game: game.pistol_kills),
    _Column("sniper_kills", lambda line: line.sniper_kills, lambda game: game.sniper_kills),
    # Exact in a real match with 10,341 damage; the tolerance is for fall damage and lost lines.
    _Column("damage", lambda line: line.damage, lambda game: game.damage, share=0.02, slack=5),
    # The game omits direct hits by a thrown grenade: 9 of 1,834 damage in a real match.
    _Column("utility_damage", lambda line: line.utility_damage, lambda game: game.utility_damage, share=0.05, slack=5),
)


def compare(
    lines: Iterable[PlayerLine],
    players: Iterable[GameCount],
    known: list[Discrepancy],
    *,
    round_number: int,
) -> list[Discrepancy]:
    """Return the differences after a round that are not in `known`; an unchanged difference is reported once."""
    ours_by_player = {line.player_id: line for line in lines}
    reported = {(found.player_id, found.field): found.ours - found.game for found in known}
    new: list[Discrepancy] = []
    for player in players:
        line = ours_by_player.get(player.player_id) or PlayerLine(player_id=player.player_id)
        for column in _COLUMNS:
            ours, game = column.ours(line), column.game(player)
            if ours == game:
                continue
            tolerance = column.share * abs(game) + column.slack
            before = reported.get((player.player_id, column.field), 0.0)
            if abs(ours - game) > tolerance and abs(ours - game - before) > tolerance:
                new.append(Discrepancy(round_number, player.player_id, column.field, ours, game))
    return new[: max(0, MAX_DISCREPANCIES - len(known))]
