"""The entries of a match's log.

Everything that changes a match is an entry: posts of its server and plugins, the players that its console lists, and
markers of the service. An entry is committed first. Then it is passed to the runner of the match, if this process
drives the match.
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
    """The kind of content of an entry."""

    LOG = "log"
    """A post of log lines."""
    REPORT = "report"
    """A report of the match plugin."""
    DETECTION = "detection"
    """A report of an anti-cheat plugin."""
    SHOTS = "shots"
    """A plugin's count of shots."""
    PRESENCE = "presence"
    """The players on the server, as its console lists them: names by player id."""
    CONFIGURING = "configuring"
    """The configuration of the server begins. Play after this entry does not count."""
    CONFIGURED = "configured"
    """The server has the settings of the match. Play after this entry counts."""
    PREPARED = "prepared"
    """All settings have been sent to a server with the match plugin, so its match may begin."""
    DEADLINE = "deadline"
    """Deadlines that have passed fire at this entry, and at no entry of another kind."""
    RESUMED = "resumed"
    """Posts before this entry may be missing. Deadlines wait until the server has had time to resend these posts."""
    OBSERVED = "observed"
    """Nothing was received for a while, although a process drove the match. This time counts toward deadlines."""
    ACTION = "action"
    """A person requested an action on the match."""
    ACTION_SENT = "action_sent"
    """The id of an action that is about to be sent to the server. From here on, it may have been executed."""
    ACTION_ANSWERED = "action_answered"
    """The server's answer to an action."""
    OVER_QUOTA = "over_quota"
    """The server has sent more bytes than may be stored per match, so the match fails."""
    SET_ASIDE = "set_aside"
    """An entry that could not be applied. It counts as lost, like a gap in the log."""
    ENDED = "ended"
    """The match has its outcome. Entries after this one never count."""


SENT_BY_SERVER: Final = frozenset(
    {EntryKind.LOG, EntryKind.REPORT, EntryKind.DETECTION, EntryKind.SHOTS, EntryKind.PRESENCE}
)
"""The kinds of entries from a server, its plugins or its console. The service writes all other entries."""


class NewEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is not stored yet."""

    kind: EntryKind
    received_ms: int
    body: bytes = b""
    headers: bytes = NO_HEADERS
    attempt: str = ""
    """`ServerRow.attempt` of the server that sent the entry; empty if the service writes it."""


def action_body(content: ActionRequest | ActionAnswer | str) -> bytes:
    """Encode the body of an entry about an action: the request, the answer, or the id of the action.

    The content is nested, because version 0.3.0 reads entries of unknown kinds as detections. It finds no detection in
    a nested object.
    """
    return msgspec.json.encode({"action": content})


def read_action_body(body: bytes, content: type[T]) -> T | None:
    """Decode the body of an entry about an action; None if another version wrote it, and this one cannot decode it."""
    try:
        found: dict[str, T] = msgspec.json.decode(body, type=dict[str, content])  # type: ignore[valid-type]
    except msgspec.DecodeError:
        return None
    return found.get("action")


def mark(server_id: str, kind: EntryKind, now_ms: int) -> list[Statement]:
    """Return the statements that append an entry without a body, to be executed with others."""
    return statements_of(server_id, NewEntry(kind=kind, received_ms=now_ms))


def statements_of(server_id: str, new: NewEntry) -> list[Statement]:
    """Return the statements that append an entry. The first returns its number and the match's total stored bytes."""
    return raw_log.append(
        server_id,
        new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )


def stored_entry(server_id: str, seq: int, new: NewEntry) -> RawEntry:
    """Return the entry as it is stored under a number."""
    return RawEntry(
        server_id=server_id,
        seq=seq,
        kind=new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )
