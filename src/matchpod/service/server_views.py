"""Build the API views of a server and its match from a row; decrypted secrets are passed in."""

from __future__ import annotations

import msgspec

from matchpod.core.result import iso_time
from matchpod.core.server_status import OPEN_PHASES, ServerStatus
from matchpod.core.validation import GAME_TYPE
from matchpod.storage.servers import ServerSummary


class ServerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server; `match` is omitted from the response to a creation."""

    server_id: str
    game_id: str
    region: str
    status: ServerStatus
    ip: str | None
    port: int | None
    callback_url: str | None
    external_match_id: str | None
    game_type: str
    created_at: str
    rcon_password: str | None
    match: msgspec.Raw | msgspec.UnsetType | None = msgspec.UNSET


class MatchView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A match; its result equals that of the callback byte for byte."""

    external_match_id: str | None
    server_id: str
    status: ServerStatus
    region: str
    created_at: str
    result: msgspec.Raw | None


def has_ended(row: ServerSummary) -> bool:
    """True once the match has an outcome, even if its server is not released yet."""
    return row.phase not in OPEN_PHASES


def server_view(
    row: ServerSummary, *, rcon_password: str | None, match: msgspec.Raw | msgspec.UnsetType | None = msgspec.UNSET
) -> ServerView:
    """The view of a server; its address only if it has been running, which proves that the address is right."""
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
        match=match,
    )


def match_view(row: ServerSummary, *, result: bytes | None) -> MatchView:
    """The view of a match with its stored result (JSON)."""
    return MatchView(
        external_match_id=row.external_match_id,
        server_id=row.id,
        status=row.status,
        region=row.region,
        created_at=iso_time(row.created_at_ms),
        result=None if result is None else msgspec.Raw(result),
    )
