"""Build the API views of a list of servers from rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from matchpod.core.result_shapes import IsoTime
from matchpod.core.server_query import ServersQuery
from matchpod.core.validation import GAME_TYPE
from matchpod.service.endings import ConnectedPlayers, EndedAt, Ending, ErrorSentence, MissingPlayers, Reason
from matchpod.service.history.views import ListPage
from matchpod.service.row_views import view_of
from matchpod.service.server_views import AsGiven, PublicStatus, RegionCode, ServerId, StoredPhase, phase_of
from matchpod.storage.servers import ServerSummary


class ServerItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server in a list; get the server for its live match, its roster and its password."""

    server_id: ServerId
    game_id: Annotated[str, Meta(description="The UUID of this session; the `sessionId` of callbacks.")]
    region: RegionCode
    status: PublicStatus
    phase: StoredPhase
    ip: Annotated[str | None, Meta(description="The address players connect to; null until the server is running.")]
    port: Annotated[int | None, Meta(description="The game port; null until the server is running.")]
    callback_url: AsGiven
    external_match_id: AsGiven
    game_type: Annotated[str, Meta(description="Always `cs2`.")]
    created_at: IsoTime
    reason: Reason
    ended_at: EndedAt
    missing_players: MissingPlayers
    connected_players: ConnectedPlayers
    error: ErrorSentence


class ServersPage(ListPage, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching servers, and their total number."""

    items: Annotated[tuple[ServerItem, ...], Meta(description="The items of this page, newest first.")]


def servers_page(query: ServersQuery, total: int, found: Sequence[tuple[ServerSummary, Ending]]) -> ServersPage:
    """A page of servers, each with how its match ended."""
    items = tuple(_item(row, ending) for row, ending in found)
    return ServersPage(page=query.page, page_size=query.page_size, total=total, items=items)


def _item(row: ServerSummary, ending: Ending) -> ServerItem:
    was_running = row.running_at_ms is not None
    return view_of(
        ServerItem,
        row,
        server_id=row.id,
        phase=phase_of(row),
        ip=row.ip if was_running else None,
        port=row.port if was_running else None,
        game_type=GAME_TYPE,
        **asdict(ending),
    )
