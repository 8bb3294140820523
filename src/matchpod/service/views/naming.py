"""Derive the ids of series and maps from those of their match, so that writing them again changes nothing."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

_SHORT: Final = 6
"""Characters of the id in the name of a server: enough to tell servers of the same day apart."""

_KEPT: Final = 4096
"""Ids of maps that are kept: those of a thousand series, which are needed with every write."""


@lru_cache(_KEPT)
def map_id(game_id: str, number: int) -> str:
    """The UUID of a map, from its number in the series."""
    return _uuid5(game_id, f"map {number}")


def series_uuid(game_id: str) -> str:
    """The UUID of a series."""
    return _uuid5(game_id, "series")


def series_id(server_id: str) -> str:
    """`ser_` and the server id without its prefix; sorts by time."""
    return f"ser_{server_id.removeprefix('srv_')}"


def server_name(region_name: str, server_id: str) -> str:
    """The display name of a server."""
    return f"{region_name} {server_id[-_SHORT:]}"


def _uuid5(namespace: str, name: str) -> str:
    """The same as `uuid.uuid5`, in a third of its time: each match has several of these ids."""
    space = bytes.fromhex(namespace.replace("-", ""))
    digest = bytearray(hashlib.sha1(space + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
