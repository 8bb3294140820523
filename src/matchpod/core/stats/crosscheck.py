"""Do our numbers agree with the game's own? Differences are reported, never corrected.

Our count stands because it has the last round and every round after a restore; the game's block lacks the former.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from matchpod.core.events import GameCount
from matchpod.core.model import PlayerId
from matchpod.core.stats.derived import hs_percent
from matchpod.core.stats.player_line import PlayerLine

# A map with more differences than this has one cause; the first ones show it.
MAX_DISCREPANCIES = 100


class Discrepancy(msgspec.Struct, frozen=True, gc=False):
    """After this round, our total and the game's differ for a player."""

    round_number: int
    player_id: PlayerId
    field: str
    ours: float
    game: float


class _Column(msgspec.Struct, frozen=True):
    """One number that both sides count, and how far apart the two may be."""

    field: str
    ours: Callable[[PlayerLine], float]
    game: Callable[[GameCount], float]
    share: float = 0.0
    slack: float = 0.0


# Not compared: mvps (the game is our source) and blind kills (its meaning is not certain).
_COLUMNS = (
    _Column("kills", lambda line: line.kills, lambda game: game.kills),
    _Column("deaths", lambda line: line.deaths, lambda game: game.deaths),
    _Column("assists", lambda line: line.all_assists, lambda game: game.assists),
    # The game prints two decimals; the slack is one of the last and room for the float.
    _Column(
        "hs_percent", lambda line: hs_percent(line.headshots, line.kills), lambda game: game.hs_percent, slack=0.0101
    ),
    # Over a real match the game lacked 1 of 16 living enemies, for no reason that the log tells.
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
    # Exact over a real match of 10,341 damage; the room is for falls and lost lines.
    _Column("damage", lambda line: line.damage, lambda game: game.damage, share=0.02, slack=5),
    # The game leaves out a grenade that hits somebody in flight: 9 of 1,834 in a real match.
    _Column("utility_damage", lambda line: line.utility_damage, lambda game: game.utility_damage, share=0.05, slack=5),
)


def compare(
    lines: Iterable[PlayerLine],
    players: Iterable[GameCount],
    known: list[Discrepancy],
    *,
    round_number: int,
) -> list[Discrepancy]:
    """The differences after a round that are new against `known`: one that stays the same is told once."""
    ours_by_player = {line.player_id: line for line in lines}
    told = {(found.player_id, found.field): found.ours - found.game for found in known}
    news: list[Discrepancy] = []
    for player in players:
        line = ours_by_player.get(player.player_id) or PlayerLine(player_id=player.player_id)
        for column in _COLUMNS:
            ours, game = column.ours(line), column.game(player)
            if ours == game:
                continue
            room = column.share * abs(game) + column.slack
            before = told.get((player.player_id, column.field), 0.0)
            if abs(ours - game) > room and abs(ours - game - before) > room:
                news.append(Discrepancy(round_number, player.player_id, column.field, ours, game))
    return news[: max(0, MAX_DISCREPANCIES - len(known))]
