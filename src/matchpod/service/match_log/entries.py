"""Append entries to the log of a match.

Everything that changes a match is an entry: what its server and plugins send, what its console lists, and what the
service does to it. An entry is committed first, then passed to the runner of the match if that is in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    PREPARED = "prepared"
    """All settings have been sent to a server that uses the match plugin: its match may begin."""
    DEADLINE = "deadline"
    """A deadline of the match has passed and fires here; no other entry fires one."""
    RESUMED = "resumed"
    """Posts before this entry may have been missed: deadlines wait until the server has had time to repeat them."""
    OBSERVED = "observed"
    """Nothing was received for a while, although the match was driven: this time counts for its deadlines."""
    OVER_QUOTA = "over_quota"
    """The server has sent more bytes than a match may store: the match fails."""
    SET_ASIDE = "set_aside"
    """An entry that was never applied to the end; it counts as lost, like a gap of the log."""
    ENDED = "ended"
    """The match has its outcome: later entries do not count, no matter when they are read."""


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is not stored yet."""

    kind: EntryKind
    received_ms: int
    body: bytes = b""
    headers: bytes = NO_HEADERS


async def append(db: Database, server_id: str, new: Sequence[NewEntry], *, publish: Callable[[RawEntry], None]) -> int:
    """Commit entries in one transaction, then publish them; return how many bytes the match has stored so far."""
    statements = [statement for one in new for statement in _statements(server_id, one)]
    rows = await db.write(statements)
    total = 0
    for one, returned in zip(new, rows[::2], strict=True):
        ((seq, total),) = msgspec.convert(returned, list[tuple[int, int]])
        publish(
            RawEntry(
                server_id=server_id,
                seq=seq,
                kind=one.kind,
                received_ms=one.received_ms,
                headers=one.headers,
                body=one.body,
            )
        )
    return total


def mark(server_id: str, kind: EntryKind, now_ms: int) -> list[Statement]:
    """Statements that append an entry without a body, to be written with others."""
    return _statements(server_id, NewEntry(kind=kind, received_ms=now_ms))


def _statements(server_id: str, new: NewEntry) -> list[Statement]:
    return raw_log.append(server_id, new.kind, received_ms=new.received_ms, headers=new.headers, body=new.body)
