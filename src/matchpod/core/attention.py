"""Decide which matches need a person's attention, and say why. Pure: everything is computed from a situation."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import msgspec

from matchpod.core.progress import PublicPhase

ROSTER_S: Final = 120
"""An incomplete roster needs attention when this much of the join time is left."""
SILENT_S: Final = 15
PAUSED_S: Final = 300
PENDING_S: Final = 60

_IN_PLAY: Final = (PublicPhase.LIVE, PublicPhase.PAUSED)
_WITH_SERVER: Final = (PublicPhase.WAITING_FOR_PLAYERS, PublicPhase.STARTING, *_IN_PLAY, PublicPhase.BETWEEN_MAPS)


class Urgency(IntEnum):
    """How soon a person should look; higher is sooner."""

    NOTE = 1
    SOON = 2
    NOW = 3


class Attention(msgspec.Struct, frozen=True):
    """A reason to look at a match."""

    urgency: Urgency
    kind: str
    text: str


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a match at a moment; times are in ms."""

    now_ms: int
    phase: PublicPhase
    missing: int = 0
    """Listed players who are not on the server."""
    joined_until_ms: int | None = None
    """When the time to join ends, while it runs."""
    heard_ms: int | None = None
    """When the server last sent something."""
    paused_since_ms: int | None = None
    pending_since_ms: int | None = None
    """Since when it waits for a free server."""
    tries: int = 0
    """Servers that were tried before this one."""
    lost_rounds: int = 0
    """Rounds whose log is incomplete."""
    leads: int = 0
    """Leads of the anti-cheat."""
    calls: int = 0
    """How often players asked for an admin."""
    is_callback_given_up: bool = False


def attention_of(situation: Situation) -> tuple[Attention, ...]:
    """Return all reasons to look at a match, the most urgent first."""
    found = [reason for rule in _RULES if (reason := rule(situation)) is not None]
    return tuple(sorted(found, key=lambda reason: -reason.urgency))


def _roster(now: Situation) -> Attention | None:
    if now.phase is not PublicPhase.WAITING_FOR_PLAYERS or not now.missing or now.joined_until_ms is None:
        return None
    left_s = max(0, (now.joined_until_ms - now.now_ms) // 1000)
    if left_s > ROSTER_S:
        return None
    return Attention(Urgency.NOW, "roster", f"{_players(now.missing)} missing, {_minutes(left_s)} left")


def _silence(now: Situation) -> Attention | None:
    if now.phase not in _WITH_SERVER or now.heard_ms is None or now.now_ms - now.heard_ms < SILENT_S * 1000:
        return None
    return Attention(Urgency.NOW, "silence", f"nothing heard for {_minutes((now.now_ms - now.heard_ms) // 1000)}")


def _gone(now: Situation) -> Attention | None:
    if now.phase is not PublicPhase.LIVE or not now.missing:
        return None
    return Attention(Urgency.NOW, "gone", f"{_players(now.missing)} gone during a live map")


def _call(now: Situation) -> Attention | None:
    if not now.calls or now.phase is PublicPhase.ENDED:
        return None
    times = "" if now.calls == 1 else f", {now.calls} times"
    return Attention(Urgency.NOW, "call", f"a player asked for an admin{times}")


def _pause(now: Situation) -> Attention | None:
    if now.phase is not PublicPhase.PAUSED or now.paused_since_ms is None:
        return None
    paused_s = (now.now_ms - now.paused_since_ms) // 1000
    return Attention(Urgency.SOON, "pause", f"paused for {_minutes(paused_s)}") if paused_s >= PAUSED_S else None


def _pending(now: Situation) -> Attention | None:
    if now.pending_since_ms is None:
        return None
    waited_s = (now.now_ms - now.pending_since_ms) // 1000
    if waited_s < PENDING_S:
        return None
    return Attention(Urgency.SOON, "pending", f"waiting for a free server for {_minutes(waited_s)}")


def _tries(now: Situation) -> Attention | None:
    if not now.tries or now.phase is not PublicPhase.ALLOCATING:
        return None
    return Attention(Urgency.SOON, "tries", f"try {now.tries + 1} of starting a server")


def _callback(now: Situation) -> Attention | None:
    return Attention(Urgency.SOON, "callback", "callback given up") if now.is_callback_given_up else None


def _loss(now: Situation) -> Attention | None:
    if not now.lost_rounds:
        return None
    rounds = "1 round" if now.lost_rounds == 1 else f"{now.lost_rounds} rounds"
    return Attention(Urgency.NOTE, "loss", f"log of {rounds} is incomplete")


def _leads(now: Situation) -> Attention | None:
    if not now.leads:
        return None
    return Attention(Urgency.NOTE, "leads", "1 anti-cheat lead" if now.leads == 1 else f"{now.leads} anti-cheat leads")


_RULES: Final = (_roster, _silence, _gone, _call, _pause, _pending, _tries, _callback, _loss, _leads)


def _players(count: int) -> str:
    return "1 player" if count == 1 else f"{count} players"


def _minutes(seconds: int) -> str:
    """Return a duration as people read it: `42 s`, `2:05`."""
    return f"{seconds} s" if seconds < 60 else f"{seconds // 60}:{seconds % 60:02}"
