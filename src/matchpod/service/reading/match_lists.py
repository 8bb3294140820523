"""List matches with their teams, maps and scores, for the console. A page needs a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from matchpod.core.match import series as series_rules
from matchpod.core.match.played_map import MapStatus
from matchpod.core.model import MatchType, Winner
from matchpod.core.requests.match_list_query import MatchListQuery
from matchpod.ports import Database
from matchpod.service.reading.deathmatch_winners import DeathmatchWinner, read_winner
from matchpod.service.reading.endings import endings_of
from matchpod.service.reading.match_head import Ending, MatchHead, summarize
from matchpod.service.reading.stored_progress import decoded_settings
from matchpod.service.row_views import view_of
from matchpod.storage import history
from matchpod.storage.history import MapRow
from matchpod.storage.list_positions import ListPositions
from matchpod.storage.match_lists import list_matches
from matchpod.storage.outbox import results_of
from matchpod.storage.servers import ServerSummary


class MatchMap(msgspec.Struct, frozen=True, kw_only=True):
    """A map of a match, as requested and as played."""

    id: str
    map_number: int
    map_name: str
    played_map_name: str | None
    status: MapStatus
    team1_score: int
    team2_score: int
    winner: str | None
    started_at_ms: int | None
    finished_at_ms: int | None
    is_needed: bool

    @property
    def name(self) -> str:
        """The name of the map that was played or, if unknown, of the map that was requested."""
        return self.played_map_name or self.map_name

    @property
    def has_score(self) -> bool:
        """True if the map is being played or was played."""
        return self.status in (MapStatus.LIVE, MapStatus.FINISHED) or self.team1_score + self.team2_score > 0


class MatchItem(MatchHead, frozen=True, kw_only=True):
    """A match in a list. `team1` and `team2` are None in a deathmatch."""

    game_mode: str
    team1: str | None
    team2: str | None
    maps: tuple[MatchMap, ...]
    """The maps that were or may still be played, in order, without maps that the series no longer needs."""
    played_s: int | None
    """Total duration in seconds of the match's ended maps; None before the first map has ended."""
    maps_won: tuple[int, int]
    """Number of maps that each team has won, including the `mapsWon` of the create request."""

    deathmatch_winner: DeathmatchWinner | None = None
    """Who won a deathmatch that has finished; None in other modes."""

    @property
    def winner(self) -> Winner | None:
        """The team that won, or a tie. None before the match has finished, if canceled, and in a free-for-all."""
        return winner_of(self, self.maps, self.maps_won, self.deathmatch_winner)

    @property
    def missing_count(self) -> int:
        """Number of listed players whose absence caused the cancellation; 0 if there was another cause."""
        return len(self.absent_players or self.missing_players or ())


def winner_of(
    ending: Ending, maps: Sequence[MatchMap], maps_won: tuple[int, int], deathmatch: DeathmatchWinner | None
) -> Winner | None:
    """Return the team that won a match, or a tie. None if the match has not finished or has no teams."""
    if ending.forfeited_to is not None:
        return Winner(ending.forfeited_to)
    if deathmatch is not None:
        return deathmatch.team
    if ending.ended_at_ms is None or ending.reason is not None or not any(played.winner for played in maps):
        return None
    return Winner.of(*maps_won)


class MatchesPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the matches that a query selects, and the total number of these matches."""

    page: int
    page_size: int
    total: int
    items: tuple[MatchItem, ...]


async def read_page(
    db: Database, org_id: str, query: MatchListQuery, positions: ListPositions | None = None
) -> MatchesPage:
    """Return a page of the matches of an organization, newest first."""
    total, found = await list_matches(db, org_id, query, positions=positions)
    return MatchesPage(page=query.page, page_size=query.page_size, total=total, items=await read_items(db, found))


async def read_items(db: Database, found: Sequence[ServerSummary]) -> tuple[MatchItem, ...]:
    """Return the matches of these rows, in the same order."""
    endings = await endings_of(db, [(row.id, row) for row in found])
    winners = await _deathmatch_winners(db, found)
    maps: defaultdict[str, list[MapRow]] = defaultdict(list)
    for played in await history.maps_of_servers(db, [row.id for row in found]) if found else ():
        maps[played.server_id].append(played)
    return tuple(
        _item(row, ending, maps[row.id], winners.get(row.id)) for row, ending in zip(found, endings, strict=True)
    )


async def _deathmatch_winners(db: Database, found: Sequence[ServerSummary]) -> dict[str, DeathmatchWinner | None]:
    """Return who won the deathmatches that have finished, by server id."""
    settings = {row.id: decoded_settings(row.settings) for row in found if row.has_ended and row.reason is None}
    ids = [server_id for server_id, one in settings.items() if one.match_type is MatchType.DEATHMATCH]
    results = await results_of(db, ids) if ids else {}
    return {server_id: read_winner(result, settings[server_id]) for server_id, result in results.items()}


def _item(row: ServerSummary, ending: Ending, maps: Sequence[MapRow], winner: DeathmatchWinner | None) -> MatchItem:
    durations = [played.duration_s for played in maps if played.duration_s is not None]
    first = maps[0] if maps else None
    won = series_rules.maps_won([Winner(played.winner) for played in maps if played.winner is not None])
    return MatchItem(
        **asdict(summarize(row, ending)),
        game_mode="" if first is None else first.game_mode,
        team1=None if first is None else first.team1_name,
        team2=None if first is None else first.team2_name,
        maps=tuple(view_of(MatchMap, played) for played in maps if played.is_needed),
        played_s=sum(durations) if durations else None,
        maps_won=decoded_settings(row.settings).maps_won.plus(*won),
        deathmatch_winner=winner,
    )
