"""Send and parse announcements (PostgreSQL NOTIFY) between processes that share a database.

A payload consists of words separated by spaces. An announcement saves the receiver waiting for its next poll. It may be
lost: while a process reconnects, and always if a connection pooler does not forward notifications.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from matchpod.ports import Database

CHANNEL: Final = "matchpod"
"""The channel, which all schemas of a database share. A process ignores server ids that it does not know, because they
may belong to another schema."""


DUE: Final = "due"
"""Announces due matches that other processes should claim: new ones, or those of a stopping or dead process."""


async def announce_due(db: Database) -> None:
    """Announce that matches are due. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": DUE})


async def announce_entry(db: Database, server_id: str, seq: int) -> None:
    """Announce that a log entry was stored. PostgreSQL only."""
    await db.read("SELECT pg_notify(:channel, :word)", {"channel": CHANNEL, "word": f"{server_id}:{seq}"})


def entries_in(announcement: str) -> Iterator[tuple[str, int]]:
    """Parse an announcement (`srv_1:12 srv_2:5`); yield each server id with the number of its newest log entry."""
    for word in announcement.split():
        server_id, _, seq = word.rpartition(":")
        if server_id and seq.isdecimal():
            yield server_id, int(seq)
