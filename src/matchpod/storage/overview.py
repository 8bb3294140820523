"""Read servers of all organizations, and their callbacks, for operators."""

from __future__ import annotations

from typing import Final

from matchpod.core.server_status import ServerStatus
from matchpod.ports import Database, Value
from matchpod.storage.outbox import CallbackRow
from matchpod.storage.rows import column_list, from_row
from matchpod.storage.servers import ServerRow

_SERVER_COLUMNS: Final = column_list(ServerRow)
_CALLBACK_COLUMNS: Final = column_list(CallbackRow)


async def newest_servers(db: Database, *, status: ServerStatus | None, limit: int) -> list[ServerRow]:
    """Return servers with one status or any, newest first: an id begins with its creation time."""
    params: dict[str, Value] = {"limit": limit}
    where = ""
    if status is not None:
        where = " WHERE status = :status"
        params["status"] = status.value
    rows = await db.read(f"SELECT {_SERVER_COLUMNS} FROM servers{where} ORDER BY id DESC LIMIT :limit", params)
    return [from_row(ServerRow, row) for row in rows]


async def callback_of(db: Database, server_id: str) -> CallbackRow | None:
    """Return the callback of a match; None while the match is in progress or if the caller asked for none."""
    rows = await db.read(
        f"SELECT {_CALLBACK_COLUMNS} FROM callbacks WHERE server_id = :server_id", {"server_id": server_id}
    )
    return from_row(CallbackRow, rows[0]) if rows else None
