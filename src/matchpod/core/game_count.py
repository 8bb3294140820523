"""Define the game's own statistics of one player, as printed before each round."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId


class GameCount(msgspec.Struct, frozen=True, gc=False):
    """The game's own statistics of one player over the rounds played. Columns with wrong labels are left out."""

    player_id: PlayerId
    money: int
    kills: int
    deaths: int
    assists: int
    damage: float
    hs_percent: float
    adr: float
    mvps: int
    enemies_flashed: int
    utility_damage: float
    triple_kills: int
    quad_kills: int
    aces: int
    clutch_kills: int
    first_kills: int
    pistol_kills: int
    sniper_kills: int
    blind_kills: int
