"""Build the body of the callback that a match sends when it ends.

The stored result is embedded byte for byte, so the callback equals a later GET of the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.model import PlayerId
from matchpod.core.outcome import Outcome
from matchpod.core.result import GAME, iso_time


class CallbackSubject(msgspec.Struct, frozen=True, kw_only=True):
    """The match of a callback; its session is the server's `gameId`."""

    server_id: str
    session_id: str
    external_match_id: str | None = None


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All callbacks, with their fields in the order in which they are sent."""

    event_type: str
    game_id: str
    external_match_id: str | None
    server_id: str
    session_id: str
    timestamp: str
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: CancelReason | msgspec.UnsetType = msgspec.UNSET
    missing_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET
    connected_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET


def match_over(subject: CallbackSubject, *, at_ms: int, result: bytes) -> bytes:
    """The callback of a finished match; the result is JSON."""
    body = _body("match_over", subject, at_ms)
    return msgspec.json.encode(msgspec.structs.replace(body, result=msgspec.Raw(result)))


def match_canceled(subject: CallbackSubject, outcome: Outcome) -> bytes:
    """The callback of a canceled match; the player lists are sent for an incomplete roster only."""
    body = _body("match_canceled", subject, outcome.at_ms)
    body = msgspec.structs.replace(body, reason=outcome.reason or msgspec.UNSET)
    if outcome.reason is CancelReason.INCOMPLETE_ROSTER:
        body = msgspec.structs.replace(
            body, missing_players=outcome.missing_players, connected_players=outcome.connected_players
        )
    return msgspec.json.encode(body)


def _body(event_type: str, subject: CallbackSubject, at_ms: int) -> _Body:
    return _Body(
        event_type=event_type,
        game_id=GAME,
        external_match_id=subject.external_match_id,
        server_id=subject.server_id,
        session_id=subject.session_id,
        timestamp=iso_time(at_ms),
    )
