"""What are the ids of a match's series and maps? Made from the match's own: writing them again changes nothing."""

from __future__ import annotations

import uuid
from typing import Final

_SHORT: Final = 6
"""Characters of a server's id in its name: enough to tell the servers of one evening apart."""


def map_id(game_id: str, number: int) -> str:
    """The UUID of a map of the match, by its place in the series."""
    return str(uuid.uuid5(uuid.UUID(game_id), f"map {number}"))


def series_uuid(game_id: str) -> str:
    """The UUID of the match's series."""
    return str(uuid.uuid5(uuid.UUID(game_id), "series"))


def series_id(server_id: str) -> str:
    """`ser_` and the rest of the server's id: short, and sorted by time."""
    return f"ser_{server_id.removeprefix('srv_')}"


def server_name(region_name: str, server_id: str) -> str:
    """What people call the server of a match."""
    return f"{region_name} {server_id[-_SHORT:]}"
