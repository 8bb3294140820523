"""What processes that share a PostgreSQL database announce to each other (NOTIFY): words, separated by spaces.

An announcement saves waiting for the next poll. It may be missed: while a process reconnects, or always behind a proxy
that does not pass announcements on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from matchpod.ports import Database

CHANNEL: Final = "matchpod"
"""The same for all schemas of a database: server ids of another one are unknown and ignored."""


DUE: Final = "due"
"""A match is due that the process which created it leaves to others."""


async def announce_due(db: Database) -> None:
    """Announce that a match is due. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": DUE})


async def announce_entry(db: Database, server_id: str, seq: int) -> None:
    """Announce that an entry was stored. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": f"{server_id}:{seq}"})


def entries_in(announcement: str) -> Iterator[tuple[str, int]]:
    """Return the servers for which entries were stored, and the number of the newest: `srv_1:12 srv_2:5`."""
    for word in announcement.split():
        server_id, _, seq = word.rpartition(":")
        if server_id and seq.isdecimal():
            yield server_id, int(seq)
