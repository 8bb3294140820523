"""Choose on which sides the teams begin the maps of a series, so that no team always begins as CT.

A caller may give the sides of all maps. Otherwise team1 begins the first map as CT, and the teams alternate. In a
series of several maps, the last map begins with a knife round. Servers without the match plugin have no knife rounds;
there the sides of the last map are derived from a hash of the server id: random, but the same whenever they are
computed.
"""

from __future__ import annotations

import hashlib

import msgspec

from cs2_protocol.game import Side
from matchpod.core.model import GameSettings, SidesBy, StartSides

_FIXED = (StartSides.TEAM1_CT, StartSides.TEAM1_T)


def with_sides(settings: GameSettings, server_id: str) -> GameSettings:
    """Return the settings with the sides of all maps of a series; sides that the caller gave are kept."""
    if settings.sides or not settings.match_type.has_series:
        return settings
    return msgspec.structs.replace(settings, sides=_default_sides(settings, server_id))


def decided_by(settings: GameSettings, number: int, start_side: Side | None) -> SidesBy | None:
    """Return how the sides on map `number` were decided. `start_side` is the side on which team1 began.

    None if this is unknown, if no sides were requested, or if the players chose other sides, as they can without a
    roster.
    """
    wanted = settings.sides_on(number)
    if wanted is None or start_side is None:
        return None
    if wanted is StartSides.KNIFE:
        return SidesBy.KNIFE
    return SidesBy.GIVEN if wanted.team1_side is start_side else None


def _default_sides(settings: GameSettings, server_id: str) -> tuple[StartSides, ...]:
    sides = [_FIXED[index % 2] for index in range(settings.map_count)]
    if settings.series_format.length > 1:
        sides[-1] = StartSides.KNIFE if settings.uses_plugin else _draw(server_id)
    return tuple(sides)


def _draw(server_id: str) -> StartSides:
    return _FIXED[hashlib.sha256(server_id.encode()).digest()[0] % 2]
