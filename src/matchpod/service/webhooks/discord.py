"""Format events as messages for a Discord channel. New events are added to a message that waits to be sent.

Text from players and callers is escaped, so that it cannot format the message or mention users.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from matchpod.core.match.actions import ActionState
from matchpod.core.stored.stored_settings import read_settings
from matchpod.core.views import organization_event_shapes as events
from matchpod.core.views.attention import LEADS
from matchpod.core.views.organization_event_shapes import MatchEventBase, RaisedAttention
from matchpod.storage.servers import ServerRow

PAUSE_MS: Final = 60_000
"""Minimum time between two messages to the same webhook."""

GATHER_MS: Final = 5_000
"""Time for which a message waits for further events after its first event."""

MAX_MERGE_MS: Final = 60 * 60_000
"""New events are added to a waiting message if its next attempt is due within this time. Otherwise they go into a new
message, so that they do not wait for hours."""

MESSAGE_TYPE: Final = "message"
"""The event type of deliveries to Discord, each of which may contain several events."""

MAX_CONTENT: Final = 1_900
"""Maximum number of characters of a message's events. Discord allows 2,000 characters per message; the rest is reserved
for the line with the number of omitted events."""

_MORE: Final = re.compile(r"\n… and ([0-9]{1,9}) more$")
_MARKUP: Final = re.compile(r"([\\*_~`|<>\[\]()#:@-])")


class _Message(msgspec.Struct, frozen=True, kw_only=True):
    content: str
    allowed_mentions: dict[str, list[str]] = msgspec.field(default_factory=lambda: {"parse": []})


def message(line: str, before: bytes | None = None) -> bytes:
    """Return the body of a message with this line. `before` is the body of an unsent message to be extended."""
    if before is None:
        return msgspec.json.encode(_Message(content=line[:MAX_CONTENT]))
    content = msgspec.json.decode(before, type=_Message).content
    more = _MORE.search(content)
    if more is not None:
        content = f"{content[: more.start()]}\n… and {int(more[1]) + 1} more"
    elif len(content) + 1 + len(line) > MAX_CONTENT:
        content += "\n… and 1 more"
    else:
        content += f"\n{line}"
    return msgspec.json.encode(_Message(content=content))


def may_show(event: MatchEventBase) -> bool:
    """False for events that must not be shown in a channel: leads (signs of cheating), because they are not proof."""
    return not (isinstance(event, events.AttentionRaisedEvent) and event.attention.kind == LEADS)


def title_of(row: ServerRow) -> str:
    """Return the display name of a match: its teams, or an id."""
    settings = read_settings(row.settings)
    if settings.team1 is not None and settings.team2 is not None:
        return f"{_plain(settings.team1.name)} – {_plain(settings.team2.name)}"
    return _plain(row.external_match_id or row.id)


def line_of(event: MatchEventBase, title: str) -> str:
    """Return the message line of an event."""
    return f"**{title}**: {_words(event)}"


def _words(event: MatchEventBase) -> str:
    match event:
        case events.ServerRunningEvent():
            return f"the server is running at {event.ip}:{event.port}"
        case events.MapWentLiveEvent():
            return f"map {event.map_number}, {_plain(event.map_name)}, is live"
        case events.MapFinishedEvent():
            return f"map {event.map_number}{_name(event)} ended{_score(event)}"
        case events.MatchPausedEvent():
            return "paused"
        case events.MatchResumedEvent():
            return "play continues"
        case events.MatchEndedEvent(reason=None):
            return "the match has ended with a result" + (", by forfeit" if event.forfeit is True else "")
        case events.MatchEndedEvent():
            return f"the match ended without a result: {str(event.reason).replace('_', ' ')}"
        case events.MatchRuledEvent():
            return _ruling(event)
        case events.ActionChangedEvent():
            state = "done" if event.state is ActionState.DONE else "failed"
            detail = f": {_plain(event.detail)}" if event.state is ActionState.FAILED and event.detail else ""
            return f"action {event.action.value} {state}{detail}"
        case events.AttentionRaisedEvent():
            return f"needs attention: {_plain(event.attention.text)}{_time(event.attention)}"
        case events.DemoAvailableEvent():
            return f"the demo of map {event.map_number} is available"
        case _:
            raise ValueError(f"no message for {type(event).__name__}")


def _time(reason: RaisedAttention) -> str:
    """Return the start or end time in parentheses, to the minute; empty if there is no time."""
    if reason.since is not None:
        return f" (since {reason.since[11:16]} UTC)"
    return "" if reason.until is None else f" (until {reason.until[11:16]} UTC)"


def _name(event: events.MapFinishedEvent) -> str:
    names = [played.name for played in event.maps if played.number == event.map_number]
    return f", {_plain(names[0])}," if names else ""


def _score(event: events.MapFinishedEvent) -> str:
    maps = event.series_score
    score = "" if event.score is None else f" {event.score.team1}:{event.score.team2}"
    return score if maps is None else f"{score}, {maps.team1}:{maps.team2} in maps"


def _ruling(event: events.MatchRuledEvent) -> str:
    if event.ruling is None:
        return "the ruling was withdrawn"
    winner = {"none": "the match is void"}.get(event.ruling.winner.value, f"{event.ruling.winner.value} wins")
    reason = "" if event.ruling.reason is None else f", because {_plain(event.ruling.reason)}"
    return f"ruled: {winner}{reason}"


def _plain(text: str) -> str:
    """Escape Discord's markup, and replace line breaks with spaces."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
