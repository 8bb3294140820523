"""Store tokens for overlay URLs, as hashes only. With such a token, the overlay of one match opens without a log-in."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import rows


class OverlayToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token for the overlay of one match."""

    token_hash: str
    server_id: str
    org_id: str
    created_at_ms: int


def insert(token: OverlayToken) -> Statement:
    return rows.insert("overlay_tokens", token)


async def by_hash(db: Database, token_hash: str) -> OverlayToken | None:
    rest = "FROM overlay_tokens WHERE token_hash = :token_hash"
    return await rows.read_first(db, OverlayToken, rest, {"token_hash": token_hash})


async def existing(db: Database, hashes: Sequence[str]) -> set[str]:
    """Return those of the hashes that are stored."""
    listed, params = rows.parameter_list("token_hash", hashes)
    found = await db.read(f"SELECT token_hash FROM overlay_tokens WHERE token_hash IN {listed}", params)
    return {str(token_hash) for (token_hash,) in found}


def end(server_id: str) -> Statement:
    """Delete all tokens of a match; NothingChangedError if it has none."""
    delete = "DELETE FROM overlay_tokens WHERE server_id = :server_id RETURNING token_hash"
    return Statement(delete, {"server_id": server_id}, must_change=True)
