"""Store all rulings on matches, and a copy of the current ruling in the match's row in `servers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from matchpod.core.rulings import RuledWinner
from matchpod.ports import Database, Statement
from matchpod.storage import rows

MAX_LISTED: Final = 100
"""Maximum number of rulings listed per match, far more than any dispute needs."""


class RulingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A ruling on a match; the fields are the columns."""

    id: str
    """Ids sort by time."""
    server_id: str
    org_id: str
    winner: RuledWinner
    reason: str | None
    person: str | None
    """Name of the person who decided, on the caller's platform, as given in the request."""
    ruled_at_ms: int
    ruled_by: str
    """Id of the API key; if the session was started without a key, the session's id; `command line` for a command."""
    withdrawn_at_ms: int | None = None
    withdrawn_by: str | None = None


def add(row: RulingRow, current: bytes) -> list[Statement]:
    """Store a ruling and make it current; `current` is its JSON. NothingChangedError if the match has not ended.

    A match without a result counts as acknowledged once it has a ruling.
    """
    # Update the server's row first: its lock serializes concurrent rulings on the match.
    change = Statement(
        "UPDATE servers SET ruling = :current,"
        " acknowledged_by = CASE WHEN reason IS NULL OR acknowledged_at_ms IS NOT NULL THEN acknowledged_by"
        " ELSE :ruled_by END,"
        " acknowledged_at_ms = CASE WHEN reason IS NULL OR acknowledged_at_ms IS NOT NULL THEN acknowledged_at_ms"
        " ELSE CAST(:ruled_at_ms AS BIGINT) END"
        " WHERE id = :server_id AND ended_at_ms IS NOT NULL",
        {"current": current, "server_id": row.server_id, "ruled_by": row.ruled_by, "ruled_at_ms": row.ruled_at_ms},
        must_change=True,
    )
    return [change, rows.insert("rulings", row)]


def withdraw(server_id: str, ruling_id: str, current: bytes, *, at_ms: int, by: str) -> list[Statement]:
    """Withdraw the ruling whose JSON is `current`; NothingChangedError if it is not the match's current ruling."""
    return [
        Statement(
            "UPDATE servers SET ruling = NULL WHERE id = :server_id AND ruling = :current",
            {"server_id": server_id, "current": current},
            must_change=True,
        ),
        Statement(
            "UPDATE rulings SET withdrawn_at_ms = :at_ms, withdrawn_by = :by_key WHERE id = :id",
            {"id": ruling_id, "at_ms": at_ms, "by_key": by},
        ),
    ]


async def get(db: Database, ruling_id: str) -> RulingRow | None:
    """Return the ruling with this id, of any organization."""
    return await rows.read_first(db, RulingRow, "FROM rulings WHERE id = :id", {"id": ruling_id})


async def of_server(db: Database, server_id: str) -> list[RulingRow]:
    """Return the newest MAX_LISTED rulings on a match, newest first, including those that were withdrawn."""
    rest = "FROM rulings WHERE server_id = :server_id ORDER BY id DESC LIMIT :limit"
    return await rows.read_all(db, RulingRow, rest, {"server_id": server_id, "limit": MAX_LISTED})


async def current_of(db: Database, server_ids: Sequence[str]) -> dict[str, bytes]:
    """Return, by server id, the current rulings as JSON; servers without a ruling are left out."""
    if not server_ids:
        return {}
    listed, params = rows.parameter_list("id", server_ids)
    found = await db.read(f"SELECT id, ruling FROM servers WHERE id IN {listed} AND ruling IS NOT NULL", params)
    return dict(msgspec.convert(found, list[tuple[str, bytes]]))
