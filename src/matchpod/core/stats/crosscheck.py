"""Compare our statistics with those the game prints. Differences are reported, never corrected.

Our counts take precedence: they include the last round, which the game's block lacks, and handle restored rounds.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from matchpod.core.model import PlayerId
from matchpod.core.stats.derived import adr, hs_percent
from matchpod.core.stats.game_count import GameCount
from matchpod.core.stats.player_line import PlayerLine

# Most discrepancies stored per map: more than this have a common cause, which the first ones show.
MAX_DISCREPANCIES = 100


class Discrepancy(msgspec.Struct, frozen=True, gc=False):
    """A difference between our total and the game's for one player after a round."""

    round_number: int
    player_id: PlayerId
    field: str
    ours: float
    game: float


# The compared columns, each with its tolerance: a share of the game's value plus a fixed slack. Not compared: mvps (the
# game is our source) and blind kills (meaning not verified).
_TOLERANCES: dict[str, tuple[float, float]] = {
    "kills": (0, 0),
    "deaths": (0, 0),
    "assists": (0, 0),
    # The game prints two decimals; the slack is one unit of the last decimal plus a rounding error.
    "hs_percent": (0, 0.0101),
    # In a real match the game counted 15 of 16 blinded living enemies; the log does not show why.
    "enemies_flashed": (0.1, 1),
    "triple_kills": (0, 0),
    "quad_kills": (0, 0),
    "aces": (0, 0),
    "clutch_kills": (0, 0),
    "first_kills": (0, 0),
    "pistol_kills": (0, 0),
    "sniper_kills": (0, 0),
    # Exact in a real match with 10,341 damage; the tolerance is for fall damage and lost lines.
    "damage": (0.02, 5),
    # The game omits direct hits by a thrown grenade: 9 of 1,834 damage in a real match.
    "utility_damage": (0.05, 5),
}

# A restore of a backup rolls back all columns but `dmg`: on a real match 6 of 10 differences were of that column, while
# adr agreed. The game prints adr in whole numbers.
_AFTER_RESTORE = {name: value for name, value in _TOLERANCES.items() if name != "damage"} | {"adr": (0.02, 1.0)}


def compare(
    lines: Iterable[PlayerLine],
    players: Iterable[GameCount],
    known: list[Discrepancy],
    *,
    round_number: int,
    was_restored: bool = False,
) -> list[Discrepancy]:
    """Return new and changed differences above tolerance; with `known` there are at most MAX_DISCREPANCIES."""
    ours_by_player = {line.player_id: line for line in lines}
    reported = {(found.player_id, found.field): found.ours - found.game for found in known}
    new: list[Discrepancy] = []
    for player in players:
        line = ours_by_player.get(player.player_id) or PlayerLine(player_id=player.player_id)
        for field, (share, slack) in (_AFTER_RESTORE if was_restored else _TOLERANCES).items():
            ours, game = _our_count(line, field), getattr(player, field)
            if ours == game:
                continue
            tolerance = share * abs(game) + slack
            before = reported.get((player.player_id, field), 0.0)
            if abs(ours - game) > tolerance and abs(ours - game - before) > tolerance:
                new.append(Discrepancy(round_number, player.player_id, field, ours, game))
    return new[: max(0, MAX_DISCREPANCIES - len(known))]


def _our_count(line: PlayerLine, field: str) -> float:
    match field:
        case "assists":
            return line.all_assists
        case "hs_percent":
            return hs_percent(line.headshots, line.kills)
        case "adr":
            return adr(line.damage, line.rounds_played)
        case _:
            count: float = getattr(line, field)
            return count
