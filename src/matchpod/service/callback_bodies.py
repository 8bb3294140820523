"""What does a caller get when a match has ended? The bytes of the one callback, made once and stored.

A result is embedded byte for byte as it is stored, so that the callback and a later look-up say the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from matchpod.core.effects import CancelReason
from matchpod.core.model import PlayerId
from matchpod.core.result import GAME, iso_time


class CallbackSubject(msgspec.Struct, frozen=True, kw_only=True):
    """The match a callback is about; its session is the server's `gameId`."""

    server_id: str
    session_id: str
    external_match_id: str | None = None


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields in the order in which they are sent."""

    event_type: str
    game_id: str
    external_match_id: str | None
    server_id: str
    session_id: str
    timestamp: str
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    missing_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET
    connected_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET


def match_over(subject: CallbackSubject, *, at_ms: int, result: bytes) -> bytes:
    """The callback of a match that ended with this result, given as JSON."""
    body = _body("match_over", subject, at_ms)
    return msgspec.json.encode(msgspec.structs.replace(body, result=msgspec.Raw(result)))


def match_canceled(
    subject: CallbackSubject,
    *,
    at_ms: int,
    reason: str,
    missing_players: Sequence[PlayerId] = (),
    connected_players: Sequence[PlayerId] = (),
) -> bytes:
    """The callback of a match that ended without a result; only an incomplete roster tells who was missing."""
    body = msgspec.structs.replace(_body("match_canceled", subject, at_ms), reason=reason)
    if reason == CancelReason.INCOMPLETE_ROSTER:
        body = msgspec.structs.replace(body, missing_players=missing_players, connected_players=connected_players)
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
