"""Store who did what: log-ins and acts in the console, newest first in lists."""

from __future__ import annotations

import builtins

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import rows


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One act."""

    id: str
    """Sorts by time."""
    org_id: str | None
    """The organization that it concerns; None if it concerns the whole installation."""
    at_ms: int
    actor: str
    """The id of the session or key, or `command line`."""
    action: str
    target: str
    """What it was done to: an id, or empty."""
    detail: str
    """One sentence, or empty; without secrets."""


def insert(row: AuditRow) -> Statement:
    """Insert an act."""
    return rows.insert("audit_log", row)


async def list(
    db: Database, org_id: str | None, *, before_id: str | None = None, limit: int
) -> builtins.list[AuditRow]:
    """Return the acts in an organization, or those without one, newest first; only those before `before_id`."""
    conditions = ["org_id IS NULL" if org_id is None else "org_id = :org_id"]
    params: dict[str, str | int | None] = {"limit": limit}
    if org_id is not None:
        params["org_id"] = org_id
    if before_id is not None:
        conditions.append("id < :before_id")
        params["before_id"] = before_id
    rest = f"FROM audit_log WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT :limit"
    return await rows.read_all(db, AuditRow, rest, params)


def delete_before(at_ms: int) -> Statement:
    """Delete the acts before a time."""
    return Statement("DELETE FROM audit_log WHERE at_ms < :at_ms", {"at_ms": at_ms})
