"""The entries of a match's log.

Everything that changes a match is an entry: what its server and plugins send, what its console lists, and what the
service does to it. An entry is committed first, then passed to the runner of the match if that is in this process.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from matchpod.core.match.actions import ActionAnswer, ActionRequest
from matchpod.ports import Statement
from matchpod.storage import raw_log
from matchpod.storage.raw_log import RawEntry

NO_HEADERS: Final = b"{}"

T = TypeVar("T")


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
    ACTION = "action"
    """A person asked for an action on the match."""
    ACTION_SENT = "action_sent"
    """An action is about to be sent to the server: its id. After this it may have been carried out."""
    ACTION_ANSWERED = "action_answered"
    """What the server answered to an action."""
    OVER_QUOTA = "over_quota"
    """The server has sent more bytes than a match may store: the match fails."""
    SET_ASIDE = "set_aside"
    """An entry that was never applied to the end; it counts as lost, like a gap of the log."""
    ENDED = "ended"
    """The match has its outcome: later entries do not count, no matter when they are read."""


SENT_BY_SERVER: Final = frozenset(
    {EntryKind.LOG, EntryKind.REPORT, EntryKind.DETECTION, EntryKind.SHOTS, EntryKind.PRESENCE}
)
"""What a server, its plugins or its console sent. The service writes all other entries."""


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is not stored yet."""

    kind: EntryKind
    received_ms: int
    body: bytes = b""
    headers: bytes = NO_HEADERS
    attempt: str = ""
    """`ServerRow.attempt` of the server that sent it; empty if the service writes it."""


def action_body(content: ActionRequest | ActionAnswer | str) -> bytes:
    """Encode the body of an entry about an action: what was asked for, what was answered, or the id.

    Version 0.3.0 reads an entry of an unknown kind as a detection, and finds none in a nested object.
    """
    return msgspec.json.encode({"action": content})


def read_action_body(body: bytes, content: type[T]) -> T | None:
    """Decode the body of an entry about an action; None if it is not of this version, which may not know the action."""
    try:
        found: dict[str, T] = msgspec.json.decode(body, type=dict[str, content])  # type: ignore[valid-type]
    except msgspec.DecodeError:
        return None
    return found.get("action")


def mark(server_id: str, kind: EntryKind, now_ms: int) -> list[Statement]:
    """Statements that append an entry without a body, to be written with others."""
    return statements_of(server_id, NewEntry(kind=kind, received_ms=now_ms))


def statements_of(server_id: str, new: NewEntry) -> list[Statement]:
    """Statements that append an entry; the first returns its number, and all bytes that the match has stored."""
    return raw_log.append(
        server_id,
        new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )


def stored_entry(server_id: str, seq: int, new: NewEntry) -> RawEntry:
    """The entry as it is stored under a number."""
    return RawEntry(
        server_id=server_id,
        seq=seq,
        kind=new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )
