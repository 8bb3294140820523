"""Read what a fleet lists for a sweep."""

from __future__ import annotations

from matchpod.ports import Fleet


async def own_ids(fleet: Fleet) -> list[str]:
    """Return the ids of the servers that the fleet knows to be its own."""
    return [one.server_id for one in await fleet.servers() if one.is_own]
