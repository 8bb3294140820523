"""Build the body of the callback that a match sends when it ends.

The stored result is embedded byte for byte, so it equals the result in the response to a later GET request.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cs2_protocol.game import PlayerId
from matchpod.core.effects import CancelReason
from matchpod.core.iso_dates import iso_time
from matchpod.core.model import GAME_TYPE
from matchpod.core.outcome import Outcome
from matchpod.core.views.marks import read_marks
from matchpod.storage.servers import ServerSummary


class _Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of a callback. The fields are sent in this order."""

    event_type: str
    game_id: str
    external_match_id: str | None
    server_id: str
    session_id: str
    timestamp: str
    labels: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    simulated: bool | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    forfeit: bool | msgspec.UnsetType = msgspec.UNSET
    reason: CancelReason | msgspec.UnsetType = msgspec.UNSET
    missing_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET
    connected_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET
    absent_players: Sequence[PlayerId] | msgspec.UnsetType = msgspec.UNSET
    log_complete: bool | msgspec.UnsetType = msgspec.UNSET


def callback_body(row: ServerSummary, outcome: Outcome, result: bytes | None) -> bytes:
    """Build the body of a callback, with the result (JSON) of a finished match, or the reason of a canceled match.

    The lists of players are only sent if the match was canceled because of an incomplete roster, `logComplete` if it
    was canceled during play, and `forfeit` if a team forfeited.
    """
    is_incomplete = outcome.reason is CancelReason.INCOMPLETE_ROSTER
    marks = read_marks(row.marks)
    body = _Body(
        event_type="match_canceled" if result is None else "match_over",
        game_id=GAME_TYPE,
        external_match_id=row.external_match_id,
        server_id=row.id,
        session_id=row.game_id,
        timestamp=iso_time(outcome.at_ms),
        labels=marks.labels,
        simulated=marks.simulated,
        result=msgspec.UNSET if result is None else msgspec.Raw(result),
        forfeit=msgspec.UNSET if outcome.forfeited_to is None else True,
        reason=outcome.reason or msgspec.UNSET,
        missing_players=outcome.missing_players if is_incomplete else msgspec.UNSET,
        connected_players=outcome.connected_players if is_incomplete else msgspec.UNSET,
        absent_players=outcome.absent_players if is_incomplete else msgspec.UNSET,
        log_complete=msgspec.UNSET if outcome.is_log_complete is None else outcome.is_log_complete,
    )
    return msgspec.json.encode(body)
