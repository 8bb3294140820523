"""Read the matches of an organization that are in progress, and find those that finished lately."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.server_status import OPEN_PHASES
from matchpod.ports import Database
from matchpod.storage import rows
from matchpod.storage.servers import ServerRow, ServerSummary

_PHASES = ", ".join(f"'{phase}'" for phase in OPEN_PHASES)
_IS_OPEN = f"phase IN ({_PHASES}) AND phase <> 'released' AND phase <> 'ending'"
"""The same twice: the second part is the condition of the index, the first makes databases prefer it to others."""


async def open_of(db: Database, org_id: str) -> list[ServerRow]:
    """Return the servers of an organization whose match has no outcome, newest first."""
    # Sorted here: to avoid sorting, SQLite would read all servers of the organization in the order of another index.
    rest = f"FROM servers WHERE org_id = :org_id AND {_IS_OPEN}"
    found = await rows.read_all(db, ServerRow, rest, {"org_id": org_id})
    return sorted(found, key=lambda row: (-row.created_at_ms, row.id))


async def finished_ids(db: Database, org_id: str, since_ms: int, *, limit: int) -> list[str]:
    """Return the ids of the servers whose matches finished at or after a time, the last first."""
    found = await db.read(
        "SELECT id FROM servers WHERE org_id = :org_id AND ended_at_ms >= :since_ms AND reason IS NULL"
        " ORDER BY ended_at_ms DESC, id LIMIT :limit",
        {"org_id": org_id, "since_ms": since_ms, "limit": limit},
    )
    return [server_id for (server_id,) in msgspec.convert(found, list[tuple[str]])]


async def summaries_of(db: Database, server_ids: Sequence[str]) -> list[ServerSummary]:
    """Return the servers with these ids, in any order."""
    listed, params = rows.parameter_list("id", server_ids)
    return await rows.read_all(db, ServerSummary, f"FROM servers WHERE id IN {listed}", params)
