"""Store console sessions, and the links that start a session. Secrets are stored as hashes only.

The name of a session's user is kept after the end of the session, because the audit log shows it.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from matchpod.ports import Database, Row, Statement, Value
from matchpod.storage import rows
from matchpod.storage.api_keys import ApiKey


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """A console session of an operator, or of a user of an organization."""

    id: str
    token_hash: str
    org_id: str | None
    """The user's organization; None for an operator."""
    key_id: str | None
    """Id of the API key that the session was started with; None if a link started it. The session ends with the key."""
    created_at_ms: int
    seen_at_ms: int
    expires_at_ms: int
    user_agent: str
    name: str | None = None
    """Name of the person for whom the session's link was created; None if unknown."""
    role: str | None = None
    """Role that the link granted; None for owners and operators, and for sessions started with a key."""
    address: str | None = None
    """IP address from which the session was started; None if an earlier version stored the session."""


class ConsoleLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that starts a session. It can be used only once."""

    token_hash: str
    org_id: str | None
    expires_at_ms: int
    name: str | None = None
    """Name of the person for whom the link was created; None if unknown."""
    role: str | None = None
    """Role that the link grants; None for owners and operators."""


_SESSION = ", ".join(f"console_sessions.{name}" for name in ConsoleSession.__struct_fields__)
_KEY = ", ".join(f"api_keys.{name}" for name in ApiKey.__struct_fields__)
_TABLES = "FROM console_sessions LEFT JOIN api_keys ON api_keys.id = console_sessions.key_id"
_SELECT = f"SELECT {_SESSION}, {_KEY} {_TABLES}"
_WIDTH = len(ConsoleSession.__struct_fields__)


def insert(session: ConsoleSession) -> Statement:
    return rows.insert("console_sessions", session)


def insert_person(session_id: str, name: str, now_ms: int) -> Statement:
    """Store the name of a session's user, separately from the session because it is kept longer."""
    sql = "INSERT INTO console_people (session_id, name, at_ms) VALUES (:session_id, :name, :now_ms)"
    return Statement(sql, {"session_id": session_id, "name": name, "now_ms": now_ms})


async def people(db: Database, session_ids: Sequence[str]) -> dict[str, str]:
    """Return, by session id, the names of the users; sessions whose user is unknown are left out."""
    listed, params = rows.parameter_list("id", session_ids)
    found = await db.read(f"SELECT session_id, name FROM console_people WHERE session_id IN {listed}", params)
    return dict(msgspec.convert(found, builtins.list[tuple[str, str]]))


async def delete_people(db: Database, *, before_ms: int) -> None:
    """Delete the user names of sessions that were started before a time."""
    await db.write([Statement("DELETE FROM console_people WHERE at_ms < :before_ms", {"before_ms": before_ms})])


async def by_hash(db: Database, token_hashes: Sequence[str]) -> tuple[ConsoleSession, ApiKey | None] | None:
    """Return the session with one of these token hashes, even if it has expired, and the API key that started it."""
    listed, params = rows.parameter_list("hash", token_hashes)
    found = await db.read_one(f"{_SELECT} WHERE token_hash IN {listed}", params)
    return None if found is None else _session_and_key(found)


async def by_ids(db: Database, session_ids: Sequence[str]) -> builtins.list[tuple[ConsoleSession, ApiKey | None]]:
    """Return the sessions with these ids, even if expired, each with the API key that started it, in any order."""
    listed, params = rows.parameter_list("id", session_ids)
    return [_session_and_key(row) for row in await db.read(f"{_SELECT} WHERE console_sessions.id IN {listed}", params)]


async def mark_seen(db: Database, session_ids: Sequence[str], now_ms: int) -> None:
    """Record when these sessions were last used."""
    listed, params = rows.parameter_list("id", session_ids)
    update = f"UPDATE console_sessions SET seen_at_ms = :now_ms WHERE id IN {listed}"
    await db.write([Statement(update, {**params, "now_ms": now_ms})])


class ActiveSessions(msgspec.Struct, frozen=True, kw_only=True):
    """A filter for active sessions: those of one organization, or those of operators."""

    org_id: str | None
    key_id: str | None = None
    """Id of an API key or of a session; if given, select only sessions started with that key, or only that session."""
    now_ms: int
    seen_after_ms: int

    @property
    def where(self) -> str:
        """The FROM and WHERE clauses of a query."""
        key_is_active = "revoked_at_ms IS NULL AND (api_keys.expires_at_ms IS NULL OR api_keys.expires_at_ms > :now_ms)"
        conditions = [
            "console_sessions.org_id IS NULL" if self.org_id is None else "console_sessions.org_id = :org_id",
            "console_sessions.expires_at_ms > :now_ms",
            "seen_at_ms > :seen_after_ms",
            f"(key_id IS NULL OR (api_keys.id IS NOT NULL AND {key_is_active}))",
        ]
        if self.key_id is not None:
            conditions.append("(key_id = :key_id OR console_sessions.id = :key_id)")
        return f"{_TABLES} WHERE {' AND '.join(conditions)}"

    @property
    def params(self) -> dict[str, Value]:
        return {name: value for name, value in asdict(self).items() if value is not None}


async def list(db: Database, which: ActiveSessions, *, offset: int, limit: int) -> builtins.list[ConsoleSession]:
    """Return one page of the selected sessions, newest first."""
    order = "console_sessions.created_at_ms DESC, console_sessions.id LIMIT :limit OFFSET :offset"
    sql = f"SELECT {_SESSION} {which.where} ORDER BY {order}"
    found = await db.read(sql, {**which.params, "limit": limit, "offset": offset})
    return [rows.from_row(ConsoleSession, row) for row in found]


async def count(db: Database, which: ActiveSessions) -> int:
    """Return the number of sessions on all pages together."""
    return await rows.read_number(db, f"SELECT COUNT(*) {which.where}", which.params)


def end_oldest(org_id: str | None, key_id: str | None, *, keep: int) -> Statement:
    """End the sessions started with an API key (if `key_id` is None, by links), except the newest `keep` sessions."""
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
    """End a session; no effect if it has already ended."""
    return Statement("DELETE FROM console_sessions WHERE id = :id", {"id": session_id})


def end_others(which: ActiveSessions, *, kept: str) -> Statement:
    """End the selected sessions except `kept`, and return the ids of those ended; NothingChangedError if none."""
    listed = f"id IN (SELECT console_sessions.id {which.where})"
    sql = f"DELETE FROM console_sessions WHERE {listed} AND id <> :kept RETURNING id"
    return Statement(sql, {**which.params, "kept": kept}, must_change=True)


async def delete_expired(db: Database, *, now_ms: int, seen_before_ms: int) -> None:
    """Delete expired sessions and links, and sessions last used at or before `seen_before_ms`."""
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
    return rows.insert("console_links", link)


async def consume_link(db: Database, token_hashes: Sequence[str]) -> ConsoleLink | None:
    """Delete the link with one of these hashes and return it, or None. Only one of several callers gets it."""
    listed, params = rows.parameter_list("hash", token_hashes)
    sql = f"DELETE FROM console_links WHERE token_hash IN {listed} RETURNING {rows.column_list(ConsoleLink)}"
    found = await rows.write_one(db, sql, params)
    return rows.from_row(ConsoleLink, found[0]) if found else None


def _session_and_key(row: Row) -> tuple[ConsoleSession, ApiKey | None]:
    key = rows.from_row(ApiKey, row[_WIDTH:]) if row[_WIDTH] is not None else None
    return rows.from_row(ConsoleSession, row[:_WIDTH]), key
