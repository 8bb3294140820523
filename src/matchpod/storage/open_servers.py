"""Read the matches of an organization that are in progress, and count those that ended lately."""

from __future__ import annotations

import msgspec

from matchpod.core.server_status import OPEN_PHASES
from matchpod.ports import Database
from matchpod.storage import rows
from matchpod.storage.servers import ServerRow


class EndedCounts(msgspec.Struct, frozen=True):
    """How many matches ended in a period."""

    ended: int
    """All of them, including those that failed."""
    failed: int


_PHASES = ", ".join(f"'{phase}'" for phase in OPEN_PHASES)
_IS_OPEN = f"phase IN ({_PHASES}) AND phase <> 'released' AND phase <> 'ending'"
"""The same twice: the second part is the condition of the index, the first makes databases prefer it to others."""


async def open_of(db: Database, org_id: str) -> list[ServerRow]:
    """Return the servers of an organization whose match has no outcome, newest first."""
    # Sorted here: to avoid sorting, SQLite would read all servers of the organization in the order of another index.
    rest = f"FROM servers WHERE org_id = :org_id AND {_IS_OPEN}"
    found = await rows.read_all(db, ServerRow, rest, {"org_id": org_id})
    return sorted(found, key=lambda row: (-row.created_at_ms, row.id))


async def count_ended(db: Database, org_id: str, since_ms: int) -> EndedCounts:
    """Count the matches of an organization that ended at or after a time."""
    found = await db.read(
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN status = 'failed' THEN 1 ELSE 0 END), 0) FROM servers"
        " WHERE org_id = :org_id AND ended_at_ms >= :since_ms",
        {"org_id": org_id, "since_ms": since_ms},
    )
    return EndedCounts(*msgspec.convert(found[0], tuple[int, int]))
