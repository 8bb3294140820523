"""Store the audit log: log-ins, and what people, API keys and the command line did. Lists are newest first."""

from __future__ import annotations

import builtins
from collections.abc import Collection
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows

PRUNE_ROWS: Final = 1_000
"""Maximum number of log rows deleted per transaction, few enough that other writers hardly wait."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """Ids sort by time."""
    org_id: str | None
    """The organization that was acted on; None if the act concerns the whole installation."""
    at_ms: int
    actor: str
    """Id of the session or API key that acted; `command line` for commands."""
    action: str
    target: str
    """Id of the object that was changed or used; empty if there is none."""
    detail: str
    """A sentence with details, without secrets; may be empty."""


def insert(row: AuditRow) -> Statement:
    return rows.insert("audit_log", row)


def set_detail(act_id: str, detail: str) -> Statement:
    """Replace the detail of a log row; NothingChangedError if the row was deleted."""
    sql = "UPDATE audit_log SET detail = :detail WHERE id = :id"
    return Statement(sql, {"id": act_id, "detail": detail}, must_change=True)


async def list(
    db: Database, org_id: str | None, *, before_id: str | None = None, limit: int
) -> builtins.list[AuditRow]:
    """Return the log rows of an organization, newest first; if `org_id` is None, those of no organization.

    If `before_id` is given, return only rows that are older than this row.
    """
    conditions = ["org_id IS NULL" if org_id is None else "org_id = :org_id"]
    params: dict[str, str | int | None] = {"limit": limit}
    if org_id is not None:
        params["org_id"] = org_id
    if before_id is not None:
        conditions.append("id < :before_id")
        params["before_id"] = before_id
    rest = f"FROM audit_log WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT :limit"
    return await rows.read_all(db, AuditRow, rest, params)


async def newest_of(db: Database, action: str, *, limit: int) -> builtins.list[tuple[AuditRow, str | None]]:
    """Return the newest log rows with this action, of all organizations, each with the name of its organization."""
    columns = ", ".join(f"audit_log.{name}" for name in AuditRow.__struct_fields__)
    found = await db.read(
        f"SELECT {columns}, organizations.name FROM audit_log"
        " LEFT JOIN organizations ON organizations.id = audit_log.org_id"
        " WHERE action = :action ORDER BY audit_log.id DESC LIMIT :limit",
        {"action": action, "limit": limit},
    )
    return [(rows.from_row(AuditRow, row[:-1]), msgspec.convert(row[-1], str | None)) for row in found]


async def details_of(db: Database, org_id: str | None, action: str, actors: Collection[str]) -> dict[str, str]:
    """Return, by actor, the detail of a log row with this action; actors without such a row are left out."""
    if not actors:
        return {}
    names, given = rows.parameter_list("actor", sorted(actors))
    params: dict[str, Value] = {**given, "action": action}
    condition = "org_id IS NULL" if org_id is None else "org_id = :org_id"
    if org_id is not None:
        params["org_id"] = org_id
    sql = f"SELECT actor, detail FROM audit_log WHERE {condition} AND action = :action AND actor IN {names}"
    return dict(msgspec.convert(await db.read(sql, params), builtins.list[tuple[str, str]]))


async def first_detail(db: Database, org_id: str, action: str, *, target: str) -> str | None:
    """Return the detail of an organization's oldest log row with this action and target; None if there is none."""
    found = await db.read(
        "SELECT detail FROM audit_log WHERE org_id = :org_id AND action = :action AND target = :target"
        " ORDER BY id LIMIT 1",
        {"org_id": org_id, "action": action, "target": target},
    )
    return msgspec.convert(found[0][0], str) if found else None


async def newest(db: Database, *, limit: int) -> builtins.list[AuditRow]:
    """Return the newest log rows of all organizations, and of no organization, newest first."""
    return await rows.read_all(db, AuditRow, "FROM audit_log ORDER BY id DESC LIMIT :limit", {"limit": limit})


async def prune(db: Database, before_id: str, *, limit: int = PRUNE_ROWS) -> int:
    """Delete the log rows before an id, at most `limit` per transaction; return how many were deleted."""
    delete = (
        "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE id < :before_id LIMIT :limit) RETURNING id"
    )
    deleted, count = 0, limit
    while count == limit:
        count = len(await rows.write_one(db, delete, {"before_id": before_id, "limit": limit}))
        deleted += count
    return deleted


async def count_prunable(db: Database, before_id: str) -> int:
    """Return the number of log rows that `prune` would delete."""
    sql = "SELECT COUNT(*) FROM audit_log WHERE id < :before_id"
    return await rows.read_number(db, sql, {"before_id": before_id})
