"""Derive the ids of series and maps from those of their match, so that writing them again changes nothing."""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Final

_SHORT: Final = 6
"""Characters of the id in the name of a server: enough to tell servers of the same day apart."""

_KEPT: Final = 4096
"""Ids of maps that are kept: those of a thousand series, which are needed with every write."""


@lru_cache(_KEPT)
def map_id(game_id: str, number: int) -> str:
    """The UUID of a map, from its number in the series."""
    return str(uuid.uuid5(uuid.UUID(game_id), f"map {number}"))


def series_uuid(game_id: str) -> str:
    """The UUID of a series."""
    return str(uuid.uuid5(uuid.UUID(game_id), "series"))


def series_id(server_id: str) -> str:
    """`ser_` and the server id without its prefix; sorts by time."""
    return f"ser_{server_id.removeprefix('srv_')}"


def server_name(region_name: str, server_id: str) -> str:
    """The display name of a server."""
    return f"{region_name} {server_id[-_SHORT:]}"
