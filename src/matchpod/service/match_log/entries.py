"""Append entries to the log of a match.

Everything that changes a match is an entry: what its server and plugins send, what its console lists, and what the
service does to it. An entry is committed first, then passed to the runner of the match if that is in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import raw_log
from matchpod.storage.raw_log import RawEntry

NO_HEADERS: Final = b"{}"


class EntryKind(StrEnum):
    """What an entry holds."""

    LOG = "log"
    """A post of log lines."""
    REPORT = "report"
    """A report of the match plugin."""
    DETECTION = "detection"
    """A report of an anti-cheat plugin."""
    SHOTS = "shots"
    """A plugin's count of shots."""
    PRESENCE = "presence"
    """The players on the server according to its console: names by player id."""
    CONFIGURING = "configuring"
    """The server is being configured: what is played from here on does not count."""
    CONFIGURED = "configured"
    """The server has our settings: what is played from here on counts."""
    RESUMED = "resumed"
    """Posts before this entry may have been missed: deadlines wait until the server has had time to repeat them."""
    ENDED = "ended"
    """The match has its outcome: later entries do not count, no matter when they are read."""


async def append(
    db: Database,
    server_id: str,
    kind: EntryKind,
    *,
    received_ms: int,
    body: bytes = b"",
    headers: bytes = NO_HEADERS,
    publish: Callable[[RawEntry], None],
) -> None:
    """Commit an entry, then publish it."""
    rows = await db.write(raw_log.append(server_id, kind, received_ms=received_ms, headers=headers, body=body))
    ((seq,),) = msgspec.convert(rows[-1], list[tuple[int]])
    publish(RawEntry(server_id=server_id, seq=seq, kind=kind, received_ms=received_ms, headers=headers, body=body))


def mark(server_id: str, kind: EntryKind, now_ms: int) -> list[Statement]:
    """Statements that append an entry without a body, to be written with others."""
    return raw_log.append(server_id, kind, received_ms=now_ms, headers=NO_HEADERS, body=b"")
