"""Store the sessions of people who use the console, and the links that begin one. Only hashes of secrets are stored."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import msgspec

from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import rows
from matchpod.storage.api_keys import ApiKey


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session: of a person of an organization, or of an operator."""

    id: str
    token_hash: str
    org_id: str | None
    """None if it is the session of an operator."""
    key_id: str | None
    """The key that it was begun with, and ends with; None if it was begun with a link."""
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    user_agent: str


class ConsoleLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that begins one session."""

    token_hash: str
    org_id: str | None
    expires_at_ms: int


_SESSION_AND_KEY = ", ".join(
    [f"console_sessions.{name}" for name in ConsoleSession.__struct_fields__]
    + [f"api_keys.{name}" for name in ApiKey.__struct_fields__]
)
_SELECT = f"SELECT {_SESSION_AND_KEY} FROM console_sessions LEFT JOIN api_keys ON api_keys.id = console_sessions.key_id"
_WIDTH = len(ConsoleSession.__struct_fields__)


def insert(session: ConsoleSession) -> Statement:
    """Insert a session."""
    return rows.insert("console_sessions", session)


async def by_hash(db: Database, token_hash: str) -> tuple[ConsoleSession, ApiKey | None] | None:
    """Return the session with this hash, even if it has expired, and the key that it was begun with."""
    found = await db.read_one(f"{_SELECT} WHERE token_hash = :token_hash", {"token_hash": token_hash})
    return None if found is None else _session_and_key(found)


async def by_ids(db: Database, session_ids: Sequence[str]) -> builtins.list[tuple[ConsoleSession, ApiKey | None]]:
    """Return the sessions with these ids with their keys, including expired ones, in any order."""
    listed, params = rows.parameter_list("id", session_ids)
    return [_session_and_key(row) for row in await db.read(f"{_SELECT} WHERE console_sessions.id IN {listed}", params)]


async def mark_seen(db: Database, session_ids: Sequence[str], now_ms: int) -> None:
    """Record that sessions were used."""
    listed, params = rows.parameter_list("id", session_ids)
    update = f"UPDATE console_sessions SET seen_at_ms = :now_ms WHERE id IN {listed}"
    await db.write([Statement(update, {**params, "now_ms": now_ms})])


async def list(db: Database, org_id: str | None) -> builtins.list[tuple[ConsoleSession, ApiKey | None]]:
    """Return the sessions of an organization or of operators with their keys, including expired ones, newest first."""
    condition = "console_sessions.org_id IS NULL" if org_id is None else "console_sessions.org_id = :org_id"
    sql = f"{_SELECT} WHERE {condition} ORDER BY console_sessions.created_at_ms DESC, console_sessions.id LIMIT 200"
    return [_session_and_key(row) for row in await db.read(sql, {} if org_id is None else {"org_id": org_id})]


def end_oldest(org_id: str | None, key_id: str | None, *, keep: int) -> Statement:
    """End the oldest sessions that were begun with a key, or with links, except the newest ones."""
    conditions = ["org_id IS NULL" if org_id is None else "org_id = :org_id"]
    conditions.append("key_id IS NULL" if key_id is None else "key_id = :key_id")
    params: dict[str, Value] = {"keep": keep}
    params |= {} if org_id is None else {"org_id": org_id}
    params |= {} if key_id is None else {"key_id": key_id}
    return Statement(
        "DELETE FROM console_sessions WHERE id IN (SELECT id FROM console_sessions"
        f" WHERE {' AND '.join(conditions)} ORDER BY created_at_ms DESC, id LIMIT 1000 OFFSET :keep)",
        params,
    )


def end(session_id: str) -> Statement:
    """End a session; nothing happens if it has ended."""
    return Statement("DELETE FROM console_sessions WHERE id = :id", {"id": session_id})


async def delete_expired(db: Database, *, now_ms: int, seen_before_ms: int) -> None:
    """Delete the sessions and links that can no longer be used."""
    await db.write(
        [
            Statement(
                "DELETE FROM console_sessions WHERE expires_at_ms <= :now_ms OR seen_at_ms <= :seen_before_ms",
                {"now_ms": now_ms, "seen_before_ms": seen_before_ms},
            ),
            Statement("DELETE FROM console_links WHERE expires_at_ms <= :now_ms", {"now_ms": now_ms}),
        ]
    )


def insert_link(link: ConsoleLink) -> Statement:
    """Insert a link."""
    return rows.insert("console_links", link)


async def consume_link(db: Database, token_hash: str) -> ConsoleLink | None:
    """Delete a link and return it; None if it does not exist, so that only one caller gets it."""
    columns = rows.column_list(ConsoleLink)
    sql = f"DELETE FROM console_links WHERE token_hash = :token_hash RETURNING {columns}"
    found = await rows.write_one(db, sql, {"token_hash": token_hash})
    return rows.from_row(ConsoleLink, found[0]) if found else None


def _session_and_key(row: Row) -> tuple[ConsoleSession, ApiKey | None]:
    key = rows.from_row(ApiKey, row[_WIDTH:]) if row[_WIDTH] is not None else None
    return rows.from_row(ConsoleSession, row[:_WIDTH]), key
