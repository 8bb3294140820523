"""Decide which matches need a person's attention, and why, from the known facts about a match at one moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import msgspec

from matchpod.core.events import ChatMessage, GameEvent, MapEnded, Paused, Unpaused
from matchpod.core.views.progress import PublicPhase
from matchpod.core.views.shown_text import sanitize

ROSTER_MS: Final = 120_000
"""An incomplete roster needs attention once the remaining time to join is at most this number of ms."""
RECONNECT_MS: Final = 20_000
"""Time in ms for which a player may be away from a live map without a notice. Most reconnect in less time."""
PAUSED_MS: Final = 300_000
PENDING_MS: Final = 60_000
CALL_MS: Final = 600_000
"""Time in ms for which a player's call for an admin is shown."""
CALL_WORD: Final = "!admin"
PENDING: Final = "pending"
TRIES: Final = "tries"
"""TRIES and PENDING are the kinds of attention whose cause is usually the region of the match."""
SEVERAL_TRIES: Final = 2
"""If at least this number of matches needed a second or later server, the region is assumed to be the cause."""
LEADS: Final = "leads"
"""The kind of attention for anti-cheat detections."""

_SIGNALS: Final = frozenset({Paused, Unpaused, MapEnded, ChatMessage})
_JOINING: Final = (PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.BETWEEN_MAPS)
_IN_PLAY: Final = (PublicPhase.LIVE, PublicPhase.PAUSED)
_WITH_SERVER: Final = (PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.STARTING, *_IN_PLAY, PublicPhase.BETWEEN_MAPS)
_BEFORE_COUNTER: Final = re.compile(r"( for|, time left|,)$")


class Urgency(IntEnum):
    """How soon a person should look at a match. A higher value means sooner."""

    NOTE = 1
    SOON = 2
    NOW = 3


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """A reason to look at a match. `text` is constant; a counter runs up from `since_ms` or down to `until_ms`."""

    urgency: Urgency
    kind: str
    text: str
    since_ms: int | None = None
    until_ms: int | None = None
    quote: str = ""
    """Untrusted text written by a player."""

    @property
    def words(self) -> str:
        """The text for places that show no counter."""
        text = _BEFORE_COUNTER.sub("", self.text)
        return f"{text}: {self.quote}" if self.quote else text


class Signals(msgspec.Struct):
    """The signals for admins in the log of a match: pauses, and calls for an admin. Times are on our clock."""

    paused_ms: int | None = None
    """When the current pause began; None for tactical timeouts, which end by themselves."""
    called_ms: int | None = None
    """When a player last asked for an admin."""
    call: str = ""
    """The chat message of the player who last asked for an admin."""

    def update(self, events: Sequence[GameEvent], now_ms: int) -> None:
        """Update the signals from game events."""
        for event in events:
            if type(event) not in _SIGNALS:  # a fast path for most events: this runs for every log line
                continue
            if isinstance(event, Paused | Unpaused) and event.is_timeout:
                continue  # a tactical timeout ends by itself
            if isinstance(event, Paused):
                self.paused_ms = now_ms if self.paused_ms is None else self.paused_ms
            elif isinstance(event, ChatMessage):
                if CALL_WORD in event.text.lower().split():
                    self.called_ms, self.call = now_ms, sanitize(f"{event.name}: {event.text}")
            else:
                self.paused_ms = None

    def answer(self) -> None:
        """Clear the call for an admin, because a person has responded by requesting an action on the match."""
        self.called_ms, self.call = None, ""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a match at the time `now_ms`."""

    now_ms: int
    phase: PublicPhase
    missing: int = 0
    """Listed players who are not on the server."""
    left_ms: tuple[int, ...] = ()
    """When the missing players left, for those whose time of leaving is known."""
    is_loading: bool = False
    """True if all listed players are connected, but at least one has not entered the map."""
    join_until_ms: int | None = None
    """When the time to join ends; None if it is not running."""
    silent_ms: int | None = None
    """When the server fell silent (`core.servers.server_loss.Silence`); None if it is not silent."""
    paused_ms: int | None = None
    """When the current pause began; None if the match is not paused."""
    called_ms: int | None = None
    """When a player last asked for an admin."""
    call: str = ""
    """The chat message of the player who last asked for an admin."""
    pending_ms: int | None = None
    """When the match began to wait for a free server; None if it is not waiting."""
    tries: int = 0
    """Number of servers that the match was given before its current server."""
    lost_rounds: int = 0
    """Number of rounds whose log is incomplete."""
    detections: int = 0
    """Number of anti-cheat detections, which are shown as leads."""
    is_callback_given_up: bool = False


def attention_of(situation: Situation) -> tuple[Attention, ...]:
    """Return all reasons to look at a match, the most urgent first."""
    found = [reason for rule in _RULES if (reason := rule(situation)) is not None]
    return tuple(sorted(found, key=lambda reason: -reason.urgency))


def urgency_of(reasons: Sequence[Attention]) -> int:
    """Return the highest urgency of these reasons, which `attention_of` has sorted; 0 if there are none."""
    return int(reasons[0].urgency) if reasons else 0


def _roster(now: Situation) -> Attention | None:
    until_ms = now.join_until_ms
    if now.phase not in _JOINING or not (now.missing or now.is_loading) or until_ms is None:
        return None
    if until_ms - now.now_ms > ROSTER_MS:
        return None
    text = f"{_players(now.missing)} missing, time left" if now.missing else "a player is still loading, time left"
    return Attention(urgency=Urgency.NOW, kind="roster", text=text, until_ms=until_ms)


def _silence(now: Situation) -> Attention | None:
    if now.phase not in _WITH_SERVER or now.silent_ms is None:
        return None
    return Attention(urgency=Urgency.NOW, kind="silence", text="nothing heard for", since_ms=now.silent_ms)


def _gone(now: Situation) -> Attention | None:
    if now.phase is not PublicPhase.LIVE:
        return None
    gone_ms = [left_ms for left_ms in now.left_ms if _is_past(now, left_ms, RECONNECT_MS)]
    unknown = now.missing - len(now.left_ms)
    if not gone_ms and not unknown:
        return None
    players = _players(len(gone_ms) + unknown)
    if unknown:  # at least one player has never joined
        return Attention(urgency=Urgency.NOW, kind="gone", text=f"{players} missing on a live map")
    return Attention(urgency=Urgency.NOW, kind="gone", text=f"{players} gone for", since_ms=min(gone_ms))


def _call(now: Situation) -> Attention | None:
    if now.called_ms is None or now.phase is PublicPhase.ENDED or _is_past(now, now.called_ms, CALL_MS):
        return None
    text = "a player asked for an admin,"
    return Attention(urgency=Urgency.NOW, kind="call", text=text, since_ms=now.called_ms, quote=now.call)


def _pause(now: Situation) -> Attention | None:
    if now.phase is not PublicPhase.PAUSED or not _is_past(now, now.paused_ms, PAUSED_MS):
        return None
    return Attention(urgency=Urgency.SOON, kind="pause", text="paused for", since_ms=now.paused_ms)


def _pending(now: Situation) -> Attention | None:
    if not _is_past(now, now.pending_ms, PENDING_MS):
        return None
    return Attention(urgency=Urgency.SOON, kind=PENDING, text="waiting for a free server for", since_ms=now.pending_ms)


def _tries(now: Situation) -> Attention | None:
    if not now.tries or now.phase is not PublicPhase.ALLOCATING:
        return None
    return Attention(urgency=Urgency.SOON, kind=TRIES, text=f"try {now.tries + 1} of starting a server")


def _callback(now: Situation) -> Attention | None:
    if not now.is_callback_given_up:
        return None
    return Attention(urgency=Urgency.SOON, kind="callback", text="callback given up")


def _loss(now: Situation) -> Attention | None:
    if not now.lost_rounds:
        return None
    rounds = "1 round" if now.lost_rounds == 1 else f"{now.lost_rounds} rounds"
    return Attention(urgency=Urgency.NOTE, kind="loss", text=f"log gap: {rounds} incomplete")


def _detections(now: Situation) -> Attention | None:
    if not now.detections:
        return None
    text = "1 anti-cheat lead" if now.detections == 1 else f"{now.detections} anti-cheat leads"
    return Attention(urgency=Urgency.NOTE, kind=LEADS, text=text)


_RULES: Final = (_roster, _silence, _gone, _call, _pause, _pending, _tries, _callback, _loss, _detections)


def _is_past(now: Situation, since_ms: int | None, limit_ms: int) -> bool:
    return since_ms is not None and now.now_ms - since_ms >= limit_ms


def _players(count: int) -> str:
    return "1 player" if count == 1 else f"{count} players"
