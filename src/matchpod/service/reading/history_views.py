"""Build the API views of series and maps from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from matchpod.core.demos import DemoState, MissingReason, state_of_map
from matchpod.core.match.played_map import MapStatus
from matchpod.core.requests.history_query import EventsQuery, ListQuery
from matchpod.core.rulings import Ruling, RulingOrNull
from matchpod.core.views import result_shapes as shapes
from matchpod.core.views.leaderboard import LeaderboardPlayer
from matchpod.core.views.marks import NO_MARKS, LabelsIfAny, Marks, SimulatedIfSo
from matchpod.service.reading import match_head
from matchpod.service.row_views import view_of
from matchpod.storage.demos import DemoRow
from matchpod.storage.history import MapRow, MapStats, SeriesRow
from matchpod.storage.history_lists import ListedSeries

Uuid = Annotated[str, Meta(description="A UUID.")]
MapId = Annotated[str, Meta(description="The `id` of the map.")]
SeriesOfMap = Annotated[str | None, Meta(description="The id of the series; null if the mode has none.")]
ServerName = Annotated[str, Meta(description="The display name of the server.")]
GameMode = Annotated[str, Meta(description="The match type that was played.")]
CurrentStatus = Annotated[MapStatus, Meta(description="The current status.")]
StartedAt = Annotated[
    str | None,
    Meta(
        description="When the server restarted the map to go live; `map_live` follows after freeze time. Null before."
    ),
]
FinishedAt = Annotated[
    str | None,
    Meta(description="When it ended; null before, if it never started, and briefly after a caller's cancel."),
]
CompleteIfKnown = Annotated[
    bool | None,
    Meta(
        description="Whether the server's log is complete; if not, numbers may be too low."
        " Null if the map was not played, or ended before versions that record this."
    ),
]
RulingOfMatch = Annotated[
    Ruling | None,
    Meta(
        description="What an admin ruled after the end of the match; null if there is no ruling, or if it was "
        "withdrawn. If its winner is `none`, the match is void: leave its numbers out of your own tables."
    ),
]
DemoStateOfMap = Annotated[
    DemoState,
    Meta(
        description="`recording`: its server records it, or has not uploaded it yet. `available`: it can be "
        "downloaded. `missing`: `reason` says why; a late upload may still arrive."
    ),
]
DemoReason = Annotated[MissingReason | None, Meta(description="Why the demo is missing; otherwise null.")]
DemoSize = Annotated[int | None, Meta(description="The bytes of the demo; null unless it is available.")]
DemoSha256 = Annotated[
    str | None, Meta(description="The SHA-256 digest in hexadecimal digits; null unless it is available.")
]
PlayerCount = Annotated[int, Meta(description="The number of players with statistics on this map.")]

_ROUNDS = msgspec.json.Decoder(tuple[int, ...])


class DemoOfMap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the demo of a map can be downloaded; all its files are in `GET …/demo`."""

    state: DemoStateOfMap
    reason: DemoReason
    size: DemoSize
    sha256: DemoSha256


DemoIfAny = Annotated[
    DemoOfMap | msgspec.UnsetType,
    Meta(description="The recording of the map by its server; left out if no demo was requested."),
]


class SeriesMap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A map in a list of series."""

    id: Uuid
    map_number: shapes.MapNumber
    map_name: shapes.MapName
    played_map_name: shapes.PlayedMapName
    status: CurrentStatus
    needed: Annotated[bool, Meta(description="Whether the series needs this map; false if it was decided before.")]


class SeriesDetailMap(SeriesMap, frozen=True, kw_only=True, rename="camel"):
    """A map of one series."""

    team1_score: shapes.Team1Score
    team2_score: shapes.Team2Score
    winner: Annotated[str | None, Meta(description="`team1`, `team2` or `tie`; null if undecided.")]
    player_count: PlayerCount
    started_at: StartedAt
    finished_at: FinishedAt
    duration: shapes.Duration
    complete: CompleteIfKnown
    missing_rounds: shapes.MissingRounds
    team1_start_side: shapes.Team1StartSide
    sides_by: shapes.SidesDecidedBy
    demo: DemoIfAny = msgspec.UNSET


class SeriesSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a series in lists and details; `winnerTeam` is the name of the team."""

    id: Uuid
    series_id: Annotated[str, Meta(description="The id of the series.")]
    server_id: match_head.ServerId
    server_name: ServerName
    format: Annotated[str, Meta(description="`bo1`, `bo3` or `bo5`.")]
    team1_name: Annotated[str, Meta(description="The first team.")]
    team2_name: Annotated[str, Meta(description="The second team.")]
    team1_maps_won: Annotated[int, Meta(description="Maps won by the first team.")]
    team2_maps_won: Annotated[int, Meta(description="Maps won by the second team.")]
    status: CurrentStatus
    game_mode: GameMode
    started_at: Annotated[str | None, Meta(description="The `startedAt` of its first map, or null.")]
    finished_at: Annotated[
        str | None,
        Meta(description="When the last played map ended; null before, and briefly after a caller's cancel."),
    ]
    duration: shapes.Duration
    winner_team: Annotated[
        str | None, Meta(description="The name of the team that won; null if undecided, tied or cancelled.")
    ]
    reason: match_head.Reason
    ended_at: match_head.EndedAt
    missing_players: match_head.MissingPlayers
    connected_players: match_head.ConnectedPlayers
    absent_players: match_head.AbsentPlayers
    log_complete: match_head.LogComplete
    error: match_head.ErrorSentence
    ruling: RulingOrNull
    forfeit: shapes.Forfeited = msgspec.UNSET
    labels: LabelsIfAny = msgspec.UNSET
    simulated: SimulatedIfSo = msgspec.UNSET


class SeriesItem(SeriesSummary, frozen=True, kw_only=True, rename="camel"):
    """A series in a list."""

    maps: Annotated[tuple[SeriesMap, ...], Meta(description="All maps that the series can have, in order.")]


class SeriesDetail(SeriesSummary, frozen=True, kw_only=True, rename="camel"):
    """A series with the scores of its maps."""

    maps: Annotated[tuple[SeriesDetailMap, ...], Meta(description="All maps that the series can have, in order.")]


class ListPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields that all pages of a list have in common."""

    page: Annotated[int, Meta(description="The number of this page, from 1.")]
    page_size: Annotated[int, Meta(description="The maximum number of items per page.")]
    total: Annotated[int, Meta(description="The number of items on all pages.")]


class SeriesPage(ListPage, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching series, and their total number."""

    items: Annotated[tuple[SeriesItem, ...], Meta(description="The items of this page, newest first.")]


class MapSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A map in a list."""

    id: Uuid
    server_id: match_head.ServerId
    server_name: ServerName
    map: shapes.MapName
    played_map_name: shapes.PlayedMapName
    game_mode: GameMode
    team1_name: Annotated[str | None, Meta(description="The first team; null in a deathmatch.")]
    team2_name: Annotated[str | None, Meta(description="The second team; null in a deathmatch.")]
    team1_score: shapes.Team1Score
    team2_score: shapes.Team2Score
    status: CurrentStatus
    started_at: StartedAt
    finished_at: FinishedAt
    duration: shapes.Duration
    player_count: PlayerCount
    ruling: RulingOfMatch
    labels: LabelsIfAny = msgspec.UNSET
    simulated: SimulatedIfSo = msgspec.UNSET


class MapDetail(MapSummary, frozen=True, kw_only=True, rename="camel"):
    """A map with its players, as in the result of its match, and its anti-cheat detections."""

    series_id: SeriesOfMap
    map_number: shapes.MapNumber
    winner: Annotated[
        str | None, Meta(description="`team1`, `team2` or `tie`; null if undecided or cancelled, and in a deathmatch.")
    ]
    complete: CompleteIfKnown
    missing_rounds: shapes.MissingRounds
    team1_start_side: shapes.Team1StartSide
    sides_by: shapes.SidesDecidedBy
    players: Annotated[msgspec.Raw, shapes.MOST_KILLS_FIRST]
    anti_cheat: Annotated[msgspec.Raw, shapes.DETECTIONS]
    stats_version: Annotated[
        int, Meta(description="Starts at 1; increases by one each time the ended map is recomputed with a difference.")
    ]
    demo: DemoIfAny = msgspec.UNSET


class MapsPage(ListPage, frozen=True, kw_only=True, rename="camel"):
    """One page of the matching maps, and their total number."""

    items: Annotated[tuple[MapSummary, ...], Meta(description="The items of this page, newest first.")]


class EventsPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A page of a map's timeline; `nextAfterSeq` is the `afterSeq` of the next page."""

    map_id: MapId
    after_seq: Annotated[int, Meta(description="As in the request.")]
    limit: Annotated[int, Meta(description="The maximum number of items: as in the request, but at most 1000.")]
    next_after_seq: Annotated[int, Meta(description="The `afterSeq` of the next request.")]
    items: Annotated[tuple[msgspec.Raw, ...], Meta(description="The next items, in order.")]


class LeaderboardView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The top players of a map."""

    map_id: MapId
    series_id: SeriesOfMap
    map_number: shapes.MapNumber
    map_name: shapes.MapName
    status: CurrentStatus
    started_at: StartedAt
    finished_at: FinishedAt
    ruling: RulingOfMatch
    players: Annotated[tuple[LeaderboardPlayer, ...], Meta(description="The players, best first.")]
    """The stored rows as JSON."""


class RoundsView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The rounds of a map."""

    map_id: MapId
    series_id: SeriesOfMap
    map_number: shapes.MapNumber
    map_name: shapes.MapName
    status: CurrentStatus
    complete: CompleteIfKnown
    missing_rounds: shapes.MissingRounds
    rounds: Annotated[
        msgspec.Raw, Meta(description="The rounds that are in the log, in order; the current one is the last.")
    ]


def series_page(
    query: ListQuery, total: int, found: Sequence[tuple[ListedSeries, match_head.Ending]], marks: Mapping[str, Marks]
) -> SeriesPage:
    """Build a page of series, each with its maps and how its match ended. `marks` (such as labels) are by server id."""
    items = tuple(
        view_of(
            SeriesItem,
            listed.series,
            ending,
            marks.get(listed.series.server_id, NO_MARKS),
            duration=listed.series.duration_s,
            maps=tuple(view_of(SeriesMap, row, needed=row.is_needed) for row in listed.maps),
        )
        for listed, ending in found
    )
    return SeriesPage(page=query.page, page_size=query.page_size, total=total, items=items)


def series_detail(
    series: SeriesRow,
    maps: Sequence[MapRow],
    ending: match_head.Ending,
    marks: Marks,
    *,
    demos: Mapping[str, DemoOfMap],
) -> SeriesDetail:
    """Build the view of a series with the scores of its maps and with how its match ended. `demos` are by map id."""
    shown = tuple(map_view(row, demos.get(row.id)) for row in maps)
    return view_of(SeriesDetail, series, ending, marks, duration=series.duration_s, maps=shown)


def map_view(row: MapRow, demo: DemoOfMap | None = None) -> SeriesDetailMap:
    """Build the view of a map without its players."""
    shown = view_of(SeriesDetailMap, row, duration=row.duration_s, needed=row.is_needed, **_completeness(row))
    return shown if demo is None else msgspec.structs.replace(shown, demo=demo)


def maps_page(
    query: ListQuery, total: int, rows: Sequence[MapRow], *, rulings: Mapping[str, Ruling], marks: Mapping[str, Marks]
) -> MapsPage:
    """Build a page of maps. `rulings` and `marks` (such as labels) are those of the maps' matches, by server id."""
    items = tuple(
        map_summary(row, marks=marks.get(row.server_id, NO_MARKS), ruling=rulings.get(row.server_id)) for row in rows
    )
    return MapsPage(page=query.page, page_size=query.page_size, total=total, items=items)


def map_summary(row: MapRow, *, marks: Marks, ruling: Ruling | None) -> MapSummary:
    """Build the view of a map in a list."""
    return view_of(MapSummary, row, marks, map=row.map_name, duration=row.duration_s, ruling=ruling)


def map_detail(
    row: MapRow, stats: MapStats, ruling: Ruling | None, marks: Marks, *, demo: DemoOfMap | None = None
) -> MapDetail:
    """Build the view of a map with its players. The stored statistics are included unchanged."""
    shown = view_of(
        MapDetail,
        row,
        marks,
        map=row.map_name,
        duration=row.duration_s,
        players=msgspec.Raw(stats.players),
        anti_cheat=msgspec.Raw(stats.anti_cheat),
        stats_version=stats.stats_version,
        ruling=ruling,
        **_completeness(row),
    )
    return shown if demo is None else msgspec.structs.replace(shown, demo=demo)


def _completeness(row: MapRow) -> dict[str, object]:
    is_unplayed = row.started_at_ms is None and row.status is not MapStatus.FINISHED
    if row.missing_rounds is None or is_unplayed:
        return {"complete": None, "missing_rounds": ()}
    return {"complete": row.is_complete, "missing_rounds": _ROUNDS.decode(row.missing_rounds)}


def events_page(map_id: str, query: EventsQuery, found: Sequence[tuple[int, bytes]]) -> EventsPage:
    """Build a page of timeline items; `found` is the number and JSON of each item."""
    return EventsPage(
        map_id=map_id,
        after_seq=query.after_seq,
        limit=query.limit,
        next_after_seq=found[-1][0] if found else query.after_seq,
        items=tuple(msgspec.Raw(line) for _, line in found),
    )


def leaderboard_view(row: MapRow, players: Sequence[msgspec.Raw], ruling: Ruling | None) -> LeaderboardView:
    """Build the view of a leaderboard. `players` are stored rows, which are included unchanged and in this order."""
    return view_of(LeaderboardView, row, map_id=row.id, players=tuple(players), ruling=ruling)


def rounds_view(row: MapRow, rounds: bytes | None) -> RoundsView:
    """Build the view of a map's rounds, which are passed as JSON; None if no rounds were stored for the map."""
    known = {"complete": None, "missing_rounds": ()} if rounds is None else _completeness(row)
    return view_of(RoundsView, row, map_id=row.id, rounds=msgspec.Raw(rounds or b"[]"), **known)


def demo_of_map(found: Sequence[DemoRow]) -> DemoOfMap | None:
    """Return the demo of a map from the rows of its files; None if there are no files."""
    if not found:
        return None
    state = state_of_map([row.state for row in found])
    file = counting_file(found) if state is DemoState.AVAILABLE else None
    return DemoOfMap(
        state=state,
        reason=found[-1].reason if state is DemoState.MISSING else None,
        size=None if file is None else file.received_bytes,
        sha256=None if file is None else file.sha256,
    )


def counting_file(found: Sequence[DemoRow]) -> DemoRow | None:
    """Return the file that counts: the last available file. None if no file is available."""
    return next((row for row in reversed(found) if row.state is DemoState.AVAILABLE), None)
