"""Compare our statistics with the statistics that the game prints. Differences are reported, never corrected.

Our counts take precedence, because they include the last round, which is missing from the game's statistics, and handle
restored rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

import msgspec

from cs2_protocol.game import PlayerId
from matchpod.core.events import GameCount
from matchpod.core.stats.derived import adr, hs_percent
from matchpod.core.stats.player_round import PlayerRound

# Maximum number of discrepancies stored per map. If there are more, the first ones show their common cause.
MAX_DISCREPANCIES = 100


class Discrepancy(msgspec.Struct, frozen=True, gc=False):
    """A difference, after a round, between our total and the game's total for one player."""

    round_number: int
    player_id: PlayerId
    field: str
    ours: float
    game: float


# The compared statistics, each with its tolerance: a share of the game's value, plus a fixed slack.
# MVPs are not compared, because the game is our source for them; nor are blind kills, whose meaning is not verified.
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

# A restored backup rolls back all of the game's totals except `dmg`.
# In a real match, 6 of 10 differences after a restore were in `dmg`, while adr agreed.
# The game prints adr as an integer, and divides by all rounds of the map, even for late joiners.
_AFTER_RESTORE = {name: value for name, value in _TOLERANCES.items() if name != "damage"} | {"adr": (0.02, 1.0)}


# Compared columns whose counter in PlayerRound has the same name.
_SAME = (
    "kills", "deaths", "enemies_flashed", "triple_kills", "quad_kills", "aces", "clutch_kills", "first_kills",
    "pistol_kills", "sniper_kills", "damage", "utility_damage",
)  # fmt: skip
_COMPARED = (*_SAME, "assists", "hs_percent", "adr")
_counts = attrgetter(*_SAME, "assists", "flash_assists", "headshots")
_games = attrgetter(*_COMPARED)
_NONE = PlayerRound()


def compare(
    rows: Mapping[PlayerId, Sequence[PlayerRound]],
    players: Iterable[GameCount],
    known: list[Discrepancy],
    *,
    round_number: int,
    was_restored: bool = False,
) -> list[Discrepancy]:
    """Return the differences above the tolerance that are not in `known`, or have changed by more than the tolerance.

    Including `known`, there are at most MAX_DISCREPANCIES. `rows` has the counters of each player in all rounds. Only
    compared counters are summed, each with `sum`, for speed: this function runs every round.
    """
    tolerances = _AFTER_RESTORE if was_restored else _TOLERANCES
    reported = {(found.player_id, found.field): found.ours - found.game for found in known}
    new: list[Discrepancy] = []
    for player in players:
        columns = zip(*map(_counts, rows.get(player.player_id) or (_NONE,)), strict=True)
        *same, assists, flash_assists, headshots = map(sum, columns)
        kills, damage = same[0], same[_SAME.index("damage")]
        ours_by_field = (*same, assists + flash_assists, hs_percent(headshots, kills), adr(damage, round_number))
        for field, ours, game in zip(_COMPARED, ours_by_field, _games(player), strict=True):
            if ours == game or field not in tolerances:
                continue
            share, slack = tolerances[field]
            tolerance = share * abs(game) + slack
            before = reported.get((player.player_id, field), 0.0)
            if abs(ours - game) > tolerance and abs(ours - game - before) > tolerance:
                new.append(Discrepancy(round_number, player.player_id, field, ours, game))
    return new[: max(0, MAX_DISCREPANCIES - len(known))]
