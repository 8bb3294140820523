"""Send and parse announcements (NOTIFY) between processes that share a PostgreSQL database: words separated by spaces.

An announcement saves waiting for the next poll. Announcements may be lost: while a process reconnects, or always behind
a connection pooler that does not forward them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from matchpod.ports import Database

CHANNEL: Final = "matchpod"
"""The channel for all schemas of a database. Server ids of another schema are unknown, and ignored."""


DUE: Final = "due"
"""The word for a due match that the process which created it leaves to other processes."""


async def announce_due(db: Database) -> None:
    """Announce that a match is due. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": DUE})


async def announce_entry(db: Database, server_id: str, seq: int) -> None:
    """Announce that a log entry was stored. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": f"{server_id}:{seq}"})


def entries_in(announcement: str) -> Iterator[tuple[str, int]]:
    """Yield the servers in an announcement such as `srv_1:12 srv_2:5`, each with the number of its newest log entry."""
    for word in announcement.split():
        server_id, _, seq = word.rpartition(":")
        if server_id and seq.isdecimal():
            yield server_id, int(seq)
