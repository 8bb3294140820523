"""Define the counters of one player in one round. The simulator uses the same names for its own statistics."""

from __future__ import annotations

import msgspec


class PlayerRound(msgspec.Struct, array_like=True, gc=False):
    """One player's counters in one round. All are integers, so that the totals of a map are sums over its rounds.

    It is encoded as an array, which makes the snapshot of a map a third smaller.
    """

    rounds_played: int = 0
    kills: int = 0
    deaths: int = 0
    assists: int = 0
    flash_assists: int = 0
    headshots: int = 0
    damage: int = 0
    utility_damage: int = 0
    team_kills: int = 0
    pistol_kills: int = 0
    sniper_kills: int = 0
    knife_kills: int = 0
    chicken_kills: int = 0
    enemies_flashed: int = 0
    bomb_plants: int = 0
    bomb_defuses: int = 0
    he_thrown: int = 0
    flash_thrown: int = 0
    smoke_thrown: int = 0
    molly_thrown: int = 0
    decoy_thrown: int = 0
    # The following counters are computed from the whole round by `round_totals`.
    first_kills: int = 0
    first_deaths: int = 0
    trade_kills: int = 0
    traded_deaths: int = 0
    clutch_kills: int = 0
    clutch1v1: int = 0
    clutch1v2: int = 0
    clutch1v3: int = 0
    clutch1v4: int = 0
    clutch1v5: int = 0
    double_kills: int = 0
    triple_kills: int = 0
    quad_kills: int = 0
    aces: int = 0
    kast_rounds: int = 0
