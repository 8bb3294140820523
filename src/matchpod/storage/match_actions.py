"""Store actions that users have requested on matches, and the state of each action."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.match.actions import ActionState
from matchpod.core.server_status import ServerPhase
from matchpod.ports import Database, Row, Statement
from matchpod.storage import rows

_OPEN: Final = "state IN ('requested', 'sent')"


class ActionRow(msgspec.Struct, frozen=True, kw_only=True):
    """An action that was requested on a match; the fields are the columns."""

    id: str
    server_id: str
    state: ActionState = ActionState.REQUESTED
    detail: str | None = None
    requested_at_ms: int
    changed_at_ms: int
    created_by: str
    """Id of the API key or session that requested the action; for a command, the actor name of the command line."""
    request: bytes
    """The body of the request, as JSON."""


def insert(row: ActionRow) -> Statement:
    """Store a new action; NothingChangedError unless its match is running.

    Run this statement after the one that appends to the match's log. If another transaction is ending the match, that
    statement waits for it, so this statement sees that the match has ended.
    """
    return Statement(
        f"INSERT INTO match_actions ({rows.column_list(ActionRow)})"
        " SELECT :id, :server_id, :state, :detail, :requested_at_ms, :changed_at_ms, :created_by, :request"
        f" FROM servers WHERE id = :server_id AND phase = '{ServerPhase.RUNNING}'",
        rows.to_params(row),
        must_change=True,
    )


def change(action_id: str, state: ActionState, detail: str | None, now_ms: int) -> Statement:
    """Store the new state of an action; no effect if the action is no longer open."""
    return Statement(
        "UPDATE match_actions SET state = :state, detail = :detail, changed_at_ms = :now_ms"
        f" WHERE id = :id AND {_OPEN}",
        {"id": action_id, "state": state, "detail": detail, "now_ms": now_ms},
    )


def fail_open(server_id: str, detail: str, now_ms: int) -> Statement:
    """Mark all open actions of a match as failed. Run it after the statement that appends the last log entry."""
    return Statement(
        "UPDATE match_actions SET state = :failed, detail = :detail, changed_at_ms = :now_ms"
        f" WHERE server_id = :server_id AND {_OPEN}",
        {"server_id": server_id, "failed": ActionState.FAILED, "detail": detail, "now_ms": now_ms},
    )


async def of_server(db: Database, server_id: str) -> list[ActionRow]:
    """Return the actions of a match, newest first."""
    rest = "FROM match_actions WHERE server_id = :server_id ORDER BY id DESC"
    return await rows.read_all(db, ActionRow, rest, {"server_id": server_id})


async def get(db: Database, server_id: str, action_id: str) -> ActionRow | None:
    """Return an action of a match; None if the match has no action with this id."""
    rest = "FROM match_actions WHERE id = :id AND server_id = :server_id"
    return await rows.read_first(db, ActionRow, rest, {"id": action_id, "server_id": server_id})


async def waiting(db: Database) -> list[tuple[str, int]]:
    """Return the matches with an action that was not sent yet, each with the number of the match's newest log entry."""
    found: list[Row] = await db.read(
        "SELECT raw_log_heads.server_id, raw_log_heads.seq FROM raw_log_heads WHERE raw_log_heads.server_id IN"
        " (SELECT server_id FROM match_actions WHERE state = 'requested')"
    )
    return msgspec.convert(found, list[tuple[str, int]])
