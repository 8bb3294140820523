"""Build the API views of series and maps from rows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import asdict

from matchpod.core.history_query import EventsQuery, ListQuery
from matchpod.core.played_map import MapStatus
from matchpod.core.result import iso_time
from matchpod.core.stats.leaderboard import LeaderboardPlayer
from matchpod.storage.history import MapRow, MapStats, SeriesRow


class SeriesMap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A map in a list of series."""

    id: str
    map_number: int
    map_name: str
    status: MapStatus


class SeriesDetailMap(SeriesMap, frozen=True, kw_only=True, rename="camel"):
    """A map of one series."""

    team1_score: int
    team2_score: int
    winner: str | None
    player_count: int
    started_at: str | None
    finished_at: str | None
    duration: int | None


class SeriesSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a series in lists and details; `winnerTeam` is the name of the team."""

    id: str
    series_id: str
    server_id: str
    server_name: str
    format: str
    team1_name: str
    team2_name: str
    team1_maps_won: int
    team2_maps_won: int
    status: MapStatus
    game_mode: str
    started_at: str | None
    finished_at: str | None
    duration: int | None
    winner_team: str | None


class SeriesItem(SeriesSummary, frozen=True, kw_only=True, rename="camel"):
    """A series in a list."""

    maps: tuple[SeriesMap, ...]


class SeriesDetail(SeriesSummary, frozen=True, kw_only=True, rename="camel"):
    """A series with the scores of its maps."""

    maps: tuple[SeriesDetailMap, ...]


class SeriesPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching series, and their total number."""

    page: int
    page_size: int
    total: int
    items: tuple[SeriesItem, ...]


class MapSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A map in a list."""

    id: str
    server_id: str
    server_name: str
    map: str
    game_mode: str
    team1_name: str | None
    team2_name: str | None
    team1_score: int
    team2_score: int
    status: MapStatus
    started_at: str | None
    finished_at: str | None
    duration: int | None
    player_count: int


class MapDetail(MapSummary, frozen=True, kw_only=True, rename="camel"):
    """A map with its players, as in the result of its match, and its anti-cheat detections."""

    series_id: str | None
    map_number: int
    winner: str | None
    players: msgspec.Raw
    anti_cheat: msgspec.Raw
    stats_version: int


class MapsPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching maps, and their total number."""

    page: int
    page_size: int
    total: int
    items: tuple[MapSummary, ...]


class EventsPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of a map's timeline; `nextAfterSeq` is the `afterSeq` of the next page."""

    map_id: str
    after_seq: int
    limit: int
    next_after_seq: int
    items: tuple[msgspec.Raw, ...]


class LeaderboardView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The top players of a map."""

    map_id: str
    series_id: str | None
    map_number: int
    map_name: str
    status: MapStatus
    started_at: str | None
    finished_at: str | None
    players: tuple[LeaderboardPlayer, ...]


def series_page(query: ListQuery, total: int, found: Sequence[tuple[SeriesRow, Sequence[MapRow]]]) -> SeriesPage:
    """A page of series, each with its maps."""
    items = tuple(
        SeriesItem(
            **asdict(_series_summary(series)),
            maps=tuple(
                SeriesMap(id=row.id, map_number=row.map_number, map_name=row.map_name, status=row.status)
                for row in maps
            ),
        )
        for series, maps in found
    )
    return SeriesPage(page=query.page, page_size=query.page_size, total=total, items=items)


def series_detail(series: SeriesRow, maps: Sequence[MapRow]) -> SeriesDetail:
    """The view of a series with the scores of its maps."""
    return SeriesDetail(**asdict(_series_summary(series)), maps=tuple(_series_map(row) for row in maps))


def maps_page(query: ListQuery, total: int, rows: Sequence[MapRow]) -> MapsPage:
    """A page of maps."""
    items = tuple(_map_summary(row) for row in rows)
    return MapsPage(page=query.page, page_size=query.page_size, total=total, items=items)


def map_detail(row: MapRow, stats: MapStats) -> MapDetail:
    """A map with its players; the stored statistics are included unchanged."""
    return MapDetail(
        **asdict(_map_summary(row)),
        series_id=row.series_id,
        map_number=row.map_number,
        winner=row.winner,
        players=msgspec.Raw(stats.players),
        anti_cheat=msgspec.Raw(stats.anti_cheat),
        stats_version=stats.stats_version,
    )


def events_page(map_id: str, query: EventsQuery, found: Sequence[tuple[int, bytes]]) -> EventsPage:
    """A page of timeline items, given as numbers and JSON."""
    return EventsPage(
        map_id=map_id,
        after_seq=query.after_seq,
        limit=query.limit,
        next_after_seq=found[-1][0] if found else query.after_seq,
        items=tuple(msgspec.Raw(line) for _, line in found),
    )


def leaderboard_view(row: MapRow, players: Sequence[LeaderboardPlayer]) -> LeaderboardView:
    """The leaderboard, in the given order of players."""
    return LeaderboardView(
        map_id=row.id,
        series_id=row.series_id,
        map_number=row.map_number,
        map_name=row.map_name,
        status=row.status,
        started_at=_time(row.started_at_ms),
        finished_at=_time(row.finished_at_ms),
        players=tuple(players),
    )


def _series_summary(row: SeriesRow) -> SeriesSummary:
    return SeriesSummary(
        id=row.id,
        series_id=row.series_id,
        server_id=row.server_id,
        server_name=row.server_name,
        format=row.format,
        team1_name=row.team1_name,
        team2_name=row.team2_name,
        team1_maps_won=row.team1_maps_won,
        team2_maps_won=row.team2_maps_won,
        status=row.status,
        game_mode=row.game_mode,
        started_at=_time(row.started_at_ms),
        finished_at=_time(row.finished_at_ms),
        duration=row.duration_s,
        winner_team=row.winner_team,
    )


def _series_map(row: MapRow) -> SeriesDetailMap:
    return SeriesDetailMap(
        id=row.id,
        map_number=row.map_number,
        map_name=row.map_name,
        status=row.status,
        team1_score=row.team1_score,
        team2_score=row.team2_score,
        winner=row.winner,
        player_count=row.player_count,
        started_at=_time(row.started_at_ms),
        finished_at=_time(row.finished_at_ms),
        duration=row.duration_s,
    )


def _map_summary(row: MapRow) -> MapSummary:
    return MapSummary(
        id=row.id,
        server_id=row.server_id,
        server_name=row.server_name,
        map=row.map_name,
        game_mode=row.game_mode,
        team1_name=row.team1_name,
        team2_name=row.team2_name,
        team1_score=row.team1_score,
        team2_score=row.team2_score,
        status=row.status,
        started_at=_time(row.started_at_ms),
        finished_at=_time(row.finished_at_ms),
        duration=row.duration_s,
        player_count=row.player_count,
    )


def _time(ms: int | None) -> str | None:
    return None if ms is None else iso_time(ms)
