"""Build the API views of a server and its match from a row; decrypted secrets are passed in."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from matchpod.core.result import iso_time
from matchpod.core.result_shapes import IsoTime
from matchpod.core.server_status import OPEN_PHASES, ServerStatus
from matchpod.core.validation import GAME_TYPE
from matchpod.service.endings import (
    IN_PROGRESS,
    ConnectedPlayers,
    EndedAt,
    Ending,
    ErrorSentence,
    MissingPlayers,
    Reason,
)
from matchpod.storage.servers import ServerSummary

ServerId = Annotated[str, Meta(description="The id of the server, for get and cancel.")]
RegionCode = Annotated[str, Meta(description="The code of the region.")]
PublicStatus = Annotated[
    ServerStatus, Meta(description="Players may connect while it is `running`; `stopped` and `failed` are final.")
]
AsGiven = Annotated[str | None, Meta(description="As given at creation, or null.")]


class ServerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server; `match` is omitted from the response to a creation."""

    server_id: ServerId
    game_id: Annotated[str, Meta(description="The UUID of this session; the `sessionId` of callbacks.")]
    region: RegionCode
    status: PublicStatus
    ip: Annotated[str | None, Meta(description="The address players connect to; null until the server is running.")]
    port: Annotated[int | None, Meta(description="The game port; null until the server is running.")]
    callback_url: AsGiven
    external_match_id: AsGiven
    game_type: Annotated[str, Meta(description="Always `cs2`.")]
    created_at: IsoTime
    rcon_password: Annotated[
        str | None,
        Meta(
            description="The RCON password; null for keys that cannot create matches, for servers whose password "
            "belongs to their operator, and after the server has ended."
        ),
    ]
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    error: ErrorSentence
    match: Annotated[
        msgspec.Raw | msgspec.UnsetType | None,
        Meta(
            description="The current state of the match; null unless the server is running. "
            "Left out when a match is created."
        ),
    ] = msgspec.UNSET


class MatchView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A match; its result equals that of the callback byte for byte."""

    external_match_id: AsGiven
    server_id: ServerId
    status: PublicStatus
    region: RegionCode
    created_at: IsoTime
    result: Annotated[
        msgspec.Raw | None,
        Meta(
            description="Null while in progress and if canceled; otherwise the `result` of the `match_over` callback."
        ),
    ]
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    error: ErrorSentence


def has_ended(row: ServerSummary) -> bool:
    """True once the match has an outcome, even if its server is not released yet."""
    return row.phase not in OPEN_PHASES


def server_view(
    row: ServerSummary,
    *,
    rcon_password: str | None,
    ending: Ending = IN_PROGRESS,
    match: msgspec.Raw | msgspec.UnsetType | None = msgspec.UNSET,
) -> ServerView:
    """The view of a server. It has an address only if the server has been running, which proves the address right."""
    was_running = row.running_at_ms is not None
    return ServerView(
        server_id=row.id,
        game_id=row.game_id,
        region=row.region,
        status=row.status,
        ip=row.ip if was_running else None,
        port=row.port if was_running else None,
        callback_url=row.callback_url,
        external_match_id=row.external_match_id,
        game_type=GAME_TYPE,
        created_at=iso_time(row.created_at_ms),
        rcon_password=rcon_password,
        reason=ending.reason,
        ended_at=ending.ended_at,
        missing_players=ending.missing_players,
        connected_players=ending.connected_players,
        error=ending.error,
        match=match,
    )


def match_view(row: ServerSummary, *, result: bytes | None, ending: Ending = IN_PROGRESS) -> MatchView:
    """The view of a match with its stored result (JSON)."""
    return MatchView(
        external_match_id=row.external_match_id,
        server_id=row.id,
        status=row.status,
        region=row.region,
        created_at=iso_time(row.created_at_ms),
        result=None if result is None else msgspec.Raw(result),
        reason=ending.reason,
        ended_at=ending.ended_at,
        missing_players=ending.missing_players,
        connected_players=ending.connected_players,
        error=ending.error,
    )
