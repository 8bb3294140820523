"""Define the entries of a match's log.

Everything that changes a match is an entry: log posts of its server, reports of its plugins, lists of players from its
console, and markers that the service writes. An entry is committed first. Then it is passed to the runner of the match,
if this process drives the match.
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
    """The kind of an entry."""

    LOG = "log"
    """A post with log lines of the server."""
    REPORT = "report"
    """A report of the match plugin."""
    DETECTION = "detection"
    """A report of an anti-cheat plugin."""
    SHOTS = "shots"
    """A plugin's count of shots."""
    PRESENCE = "presence"
    """The players on the server, according to its console: names by player id."""
    CONFIGURING = "configuring"
    """The service begins to configure the server. Play after this entry does not count."""
    CONFIGURED = "configured"
    """The server has the settings of the match. Play after this entry counts."""
    PREPARED = "prepared"
    """The service has sent all settings to a server with the match plugin, so the plugin may begin the match."""
    DEADLINE = "deadline"
    """A deadline has passed. Deadlines fire only when an entry of this kind is applied."""
    RESUMED = "resumed"
    """A process has resumed the match. Posts before this entry may be missing, so deadlines wait until the server has
    had time to resend them."""
    OBSERVED = "observed"
    """Nothing was received for a while, although a process drove the match. The entry makes this time count toward
    deadlines."""
    ACTION = "action"
    """A caller or an operator has requested an action on the match."""
    ACTION_SENT = "action_sent"
    """An action is about to be sent to the server. After this entry, it may have been executed. The body is the
    action's id."""
    ACTION_ANSWERED = "action_answered"
    """The server's answer to an action."""
    OVER_QUOTA = "over_quota"
    """The server has sent more bytes than may be stored per match, so the match fails."""
    SET_ASIDE = "set_aside"
    """An entry that could not be applied, and whose kind was replaced with this one. It counts as lost, like a gap in
    the log."""
    ENDED = "ended"
    """The outcome of the match was stored. Entries after this entry never count."""


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
    """`ServerRow.attempt` of the server that sent the entry; empty if the service wrote the entry."""


def action_body(content: ActionRequest | ActionAnswer | str) -> bytes:
    """Encode the body of an entry about an action: the request, the answer, or the id of the action.

    The content is nested in an object, because version 0.3.0 reads entries of unknown kinds as detections. It ignores
    objects without the fields of a detection.
    """
    return msgspec.json.encode({"action": content})


def read_action_body(body: bytes, content: type[T]) -> T | None:
    """Decode the body of an entry about an action; None if this version cannot decode it."""
    try:
        found: dict[str, T] = msgspec.json.decode(body, type=dict[str, content])  # type: ignore[valid-type]
    except msgspec.DecodeError:
        return None
    return found.get("action")


def mark(server_id: str, kind: EntryKind, now_ms: int) -> list[Statement]:
    """Return the statements that append an entry without a body."""
    return statements_of(server_id, NewEntry(kind=kind, received_ms=now_ms))


def statements_of(server_id: str, new: NewEntry) -> list[Statement]:
    """Return the statements that append an entry.

    When executed, the first statement returns the number of the entry and the total stored bytes of the match.
    """
    return raw_log.append(
        server_id,
        new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )


def stored_entry(server_id: str, seq: int, new: NewEntry) -> RawEntry:
    """Return a new entry as the entry that was stored with the number `seq`."""
    return RawEntry(
        server_id=server_id,
        seq=seq,
        kind=new.kind,
        received_ms=new.received_ms,
        headers=new.headers,
        body=new.body,
        attempt=new.attempt,
    )
