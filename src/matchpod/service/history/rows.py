"""Build the history rows of a match: its series, its maps and their statistics.

The rows are a pure function of the match. Their statistics equal those in the result of the match, because both are
computed from the same player lines.
"""

from __future__ import annotations

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.match.match import Match, MatchPhase
from matchpod.core.match.played_map import MapStatus, PlayedMap, map_name
from matchpod.core.match.start_sides import decided_by
from matchpod.core.model import GameSettings, MatchType, Winner
from matchpod.core.views.leaderboard import player_rows
from matchpod.core.views.result import (
    anti_cheat_entry,
    count_players,
    players_of_map,
    published_lines,
    settings_name,
    team_kills,
    team_name,
)
from matchpod.core.views.result_shapes import DeathmatchPlayer
from matchpod.core.views.rounds import build_rounds
from matchpod.core.views.series_maps import unplayed_maps
from matchpod.core.views.shown_text import sanitize
from matchpod.service.identity import identifiers
from matchpod.storage.history import MapRounds, MapRow, MapStats, MatchHistory, SeriesRow
from matchpod.storage.servers import ServerRow

MAX_MAP_CHARS = 128
"""Maximum length of a stored map name. It equals the maximum in the map filter of lists, and fits any database
index."""

_encode = msgspec.json.Encoder().encode


def initial_history(row: ServerRow, settings: GameSettings, server_name: str) -> MatchHistory:
    """Build the history of a new match from its settings.

    The result equals that of `history_of` for the match in its initial state.
    """
    has_series, has_teams = settings.match_type.has_series, settings.match_type is not MatchType.DEATHMATCH
    team1, team2 = (sanitize(settings_name(settings, team)) for team in (Team.TEAM1, Team.TEAM2))
    series_id = identifiers.series_id(row.id)
    length = settings.map_count if has_series else 1
    maps = tuple(
        MapRow(
            id=identifiers.map_id(row.game_id, number),
            server_id=row.id,
            org_id=row.org_id,
            series_id=series_id if has_series else None,
            map_number=number,
            map_name=_map_name(map_name(settings, number)),
            game_mode=settings.match_type.value,
            server_name=server_name,
            team1_name=team1 if has_teams else None,
            team2_name=team2 if has_teams else None,
            status=MapStatus.UPCOMING,
            is_complete=True,
            missing_rounds=b"[]",
        )
        for number in range(1, length + 1)
    )
    if not has_series:
        return MatchHistory(maps)
    series = SeriesRow(
        id=identifiers.series_uuid(row.game_id),
        series_id=series_id,
        server_id=row.id,
        org_id=row.org_id,
        server_name=server_name,
        format=settings.series_format.value,
        game_mode=settings.match_type.value,
        team1_name=team1,
        team2_name=team2,
        team1_maps_won=settings.maps_won.team1,
        team2_maps_won=settings.maps_won.team2,
        status=MapStatus.UPCOMING,
    )
    return MatchHistory(maps, series)


def history_of(
    row: ServerRow, match: Match, *, server_name: str, is_final: bool = False, stats_version: int = 1
) -> MatchHistory:
    """Return the history of a match in its current state. Statistics and rounds are included only if `is_final`."""
    played = [*match.maps, *unplayed_maps(match)]
    maps = tuple(_map_row(row, match, each, server_name=server_name, is_final=is_final) for each in played)
    stats: tuple[MapStats, ...] = ()
    rounds: tuple[MapRounds, ...] = ()
    if is_final:
        stats = tuple(stats_of_map(match, stored.id, stored.map_number, stats_version) for stored in maps)
        rounds = tuple(MapRounds.pack(stored.id, rounds_of_map(match, stored.map_number)) for stored in maps)
    series = _series_row(row, match, maps, server_name) if match.settings.match_type.has_series else None
    return MatchHistory(maps, series, stats, rounds)


def stats_of_map(match: Match, map_id: str, number: int, stats_version: int = 1) -> MapStats:
    """Return the statistics of a map: those of its players, its leaderboard rows and its detections."""
    played = played_map(match, number)
    lines = published_lines(match, played)
    players = players_of_map(match, played, lines)
    names = {player.steam_id: player.name for player in players}
    teams: dict[PlayerId, Team | None] = {
        player.steam_id: player.team for player in players if not isinstance(player, DeathmatchPlayer)
    }
    return MapStats(
        map_id=map_id,
        stats_version=stats_version,
        players=_encode(players),
        anti_cheat=_encode([anti_cheat_entry(match, sign) for sign in match.detections if sign.map_number == number]),
        leaderboard=_encode(player_rows(lines, names, teams)),
    )


def rounds_of_map(match: Match, number: int) -> bytes:
    return _encode(build_rounds(match, played_map(match, number)))


def played_map(match: Match, number: int) -> PlayedMap:
    """Return the map with this number. A map that was not played is upcoming, or canceled if the match is over."""
    return next(played for played in (*match.maps, *unplayed_maps(match)) if played.number == number)


def has_map(match: Match, number: int) -> bool:
    """True if the match has a map with this number, whether it was played or not."""
    return any(played.number == number for played in (*match.maps, *unplayed_maps(match)))


def map_row(row: ServerRow, match: Match, number: int, *, server_name: str) -> MapRow:
    """Return the row of a map in its current state, not marked as final."""
    return _map_row(row, match, played_map(match, number), server_name=server_name, is_final=False)


def _map_row(row: ServerRow, match: Match, played: PlayedMap, *, server_name: str, is_final: bool) -> MapRow:
    has_teams = match.settings.match_type is not MatchType.DEATHMATCH
    is_team_deathmatch = not has_teams and not match.settings.is_free_for_all
    score = team_kills(match, played) if is_team_deathmatch else (played.team1_score, played.team2_score)
    started_ms = _our_ms(match, played.started_at_ms)
    return MapRow(
        id=identifiers.map_id(row.game_id, played.number),
        server_id=row.id,
        org_id=row.org_id,
        series_id=identifiers.series_id(row.id) if match.settings.match_type.has_series else None,
        map_number=played.number,
        map_name=_map_name(played.name),
        played_map_name=None if played.played_name is None else _map_name(played.played_name),
        is_needed=not (
            played.status is MapStatus.CANCELLED and match.outcome is not None and match.outcome.is_finished
        ),
        game_mode=match.settings.match_type.value,
        server_name=server_name,
        team1_name=sanitize(team_name(match, Team.TEAM1)) if has_teams else None,
        team2_name=sanitize(team_name(match, Team.TEAM2)) if has_teams else None,
        team1_score=score[0],
        team2_score=score[1],
        winner=played.winner,
        status=played.status,
        started_at_ms=started_ms,
        finished_at_ms=_our_ms(match, played.finished_at_ms),
        duration_s=played.duration_s,
        player_count=count_players(match, played),
        is_final=is_final,
        sort_ms=started_ms or 0,
        is_complete=played.is_complete,
        missing_rounds=_encode(played.missing_rounds),
        team1_start_side=played.start_side,
        sides_by=decided_by(match.settings, played.number, played.start_side),
    )


def _series_row(row: ServerRow, match: Match, maps: tuple[MapRow, ...], server_name: str) -> SeriesRow:
    won1, won2 = match.series_score
    started_ms, finished_ms = match.maps[0].started_at_ms, None
    if match.phase is MatchPhase.OVER:
        ends = (played.finished_at_ms for played in match.maps)
        finished_ms = max((end_ms for end_ms in ends if end_ms is not None), default=None)
    lasted_ms = None if started_ms is None or finished_ms is None else max(0, finished_ms - started_ms)
    return SeriesRow(
        id=identifiers.series_uuid(row.game_id),
        series_id=identifiers.series_id(row.id),
        server_id=row.id,
        org_id=row.org_id,
        server_name=server_name,
        format=match.settings.series_format.value,
        game_mode=match.settings.match_type.value,
        team1_name=sanitize(team_name(match, Team.TEAM1)),
        team2_name=sanitize(team_name(match, Team.TEAM2)),
        team1_maps_won=won1,
        team2_maps_won=won2,
        status=_series_status(match),
        winner_team=_winner_name(match),
        started_at_ms=_our_ms(match, started_ms),
        finished_at_ms=_our_ms(match, finished_ms),
        duration_s=None if lasted_ms is None else lasted_ms // 1000,
        sort_ms=_our_ms(match, started_ms) or 0,
    )


def _map_name(name: str) -> str:
    return sanitize(name)[:MAX_MAP_CHARS]


def _our_ms(match: Match, at_ms: int | None) -> int | None:
    return None if at_ms is None else match.times.ours(at_ms)


def _series_status(match: Match) -> MapStatus:
    if match.outcome is not None:
        return MapStatus.FINISHED if match.outcome.is_finished else MapStatus.CANCELLED
    return MapStatus.UPCOMING if match.maps[0].started_at_ms is None else MapStatus.LIVE


def _winner_name(match: Match) -> str | None:
    match match.winner:
        case Winner.TEAM1:
            return sanitize(team_name(match, Team.TEAM1))
        case Winner.TEAM2:
            return sanitize(team_name(match, Team.TEAM2))
        case _:
            return None
