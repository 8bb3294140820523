"""List the servers of an organization for the API, each with the stored state of its maps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from matchpod.core.model import MatchType, Winner
from matchpod.core.views.result_shapes import MapState, Score, SeriesScore
from matchpod.core.views.series_maps import loaded_number
from matchpod.ports import Database
from matchpod.service.access.actor_names import actor_names
from matchpod.service.reading.endings import endings_of
from matchpod.service.reading.history_views import ListPage
from matchpod.service.reading.match_head import ServerItem, StoredMaps, server_item
from matchpod.storage.match_lists import ListedMap, maps_of_listed
from matchpod.storage.servers import ServerSummary


class ServersPage(ListPage, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching servers, and their total number."""

    items: Annotated[tuple[ServerItem, ...], Meta(description="The items of this page, newest first.")]


_NOTHING: Final = StoredMaps()
"""The maps of a match that was created by an early version, which stored no maps."""


async def stored_maps(db: Database, server_ids: Sequence[str]) -> dict[str, StoredMaps]:
    """Return, by server id, the stored state of the maps of matches, with a single query."""
    by_server: defaultdict[str, list[ListedMap]] = defaultdict(list)
    for listed in await maps_of_listed(db, server_ids) if server_ids else ():
        by_server[listed.server_id].append(listed)
    return {server_id: _maps_of(found) for server_id, found in by_server.items()}


async def server_items(db: Database, rows: Sequence[ServerSummary]) -> tuple[ServerItem, ...]:
    """Return the views of servers in the same order, with their maps, how their matches ended, and their creators."""
    endings = await endings_of(db, [(row.id, row) for row in rows])
    maps = await stored_maps(db, [row.id for row in rows])
    names = await actor_names(db, (row.created_by for row in rows))
    return tuple(
        server_item(row, ending, maps.get(row.id, _NOTHING), created_by_name=names.get(row.created_by or ""))
        for row, ending in zip(rows, endings, strict=True)
    )


def _maps_of(found: Sequence[ListedMap]) -> StoredMaps:
    states = tuple(_state(listed) for listed in found if listed.is_needed)
    won = found[0].team1_maps_won, found[0].team2_maps_won
    return StoredMaps(
        map_number=loaded_number(states),
        series_score=None if won[0] is None or won[1] is None else SeriesScore(won[0], won[1]),
        maps=states,
    )


def _state(row: ListedMap) -> MapState:
    return MapState(
        name=row.map_name,
        number=row.map_number,
        status=row.status,
        score=None if row.game_mode == MatchType.DEATHMATCH else Score(row.team1_score, row.team2_score),
        winner=None if row.winner is None else Winner(row.winner),
    )
