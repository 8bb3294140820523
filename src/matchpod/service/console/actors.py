"""Name keys and sessions by their ids, as people know them."""

from __future__ import annotations

from matchpod.ports import Database
from matchpod.storage import api_keys


async def actor_name(db: Database, actor: str | None) -> str:
    """Return the name or beginning of a key, or `a link` for a session that was begun with one; empty for None."""
    if actor is None:
        return ""
    key = await api_keys.get(db, actor)
    return "a link" if key is None else key.name or f"{key.prefix}…"
