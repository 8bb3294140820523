"""Store claims: who takes care of a match that needs attention. All users of the organization see name and note."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import rows


class MatchClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on a match; the fields are the columns."""

    server_id: str
    org_id: str
    name: str
    note: str
    claimed_by: str
    """Id of the API key; if the session was started without a key, the session's id."""
    claimed_at_ms: int


async def of_organization(db: Database, org_id: str, since_ms: int) -> list[MatchClaim]:
    """Return an organization's claims that were made since a time."""
    rest = "FROM match_claims WHERE org_id = :org_id AND claimed_at_ms >= :since_ms"
    return await rows.read_all(db, MatchClaim, rest, {"org_id": org_id, "since_ms": since_ms})


def claim(given: MatchClaim) -> Statement:
    """Store a claim; it replaces an earlier claim on the same match."""
    columns = given.__struct_fields__
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "server_id")
    sql = (
        f"INSERT INTO match_claims ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"
        f" ON CONFLICT (server_id) DO UPDATE SET {changed}"
    )
    return Statement(sql, rows.to_params(given))


def release(org_id: str, server_id: str) -> Statement:
    """Delete the claim on a match; NothingChangedError if there is none."""
    sql = "DELETE FROM match_claims WHERE server_id = :server_id AND org_id = :org_id RETURNING server_id"
    return Statement(sql, {"server_id": server_id, "org_id": org_id}, must_change=True)
