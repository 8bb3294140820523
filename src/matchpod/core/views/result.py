"""Build the result and the live view of a match from its state.

The same value is stored, sent in the callback and returned by the API. Results contain neither bots nor unlisted
players who took part before they were kicked. Assists include flash assists, as on the game's scoreboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec.structs import asdict

from cs2_protocol.game import PlayerId, Team, is_human
from matchpod.core.anticheat.detection import Detection
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import MapStatus, PlayedMap
from matchpod.core.match.start_sides import decided_by
from matchpod.core.model import GAME_TYPE, GameSettings, MatchType, Winner
from matchpod.core.stats import derived
from matchpod.core.stats.player_line import PlayerLine, sum_lines
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.views import result_shapes as shapes
from matchpod.core.views.series_maps import loaded_map, map_states, series_score_of

_COPIED: Final = tuple(name for name in shapes.ExtraStats.__struct_fields__ if name in PlayerRound.__struct_fields__)
"""The extra statistics that are copied from the counter of the same name."""

_Number = TypeVar("_Number", int, float)


def build_result(match: Match) -> shapes.Result:
    """Return the result of a match. A map that is not over yet has no winner and no duration."""
    if match.settings.match_type is MatchType.DEATHMATCH:
        return _deathmatch(match)
    played = [played for played in match.maps if played.status in (MapStatus.FINISHED, MapStatus.LIVE)]
    won1, won2 = match.series_score
    overall = overall_lines(played)
    return shapes.SeriesResult(
        game_mode=match.settings.match_type,
        format=match.settings.series_format,
        winner=match.winner,
        team1=_team(match, Team.TEAM1, won1, sum(played.team1_score for played in played)),
        team2=_team(match, Team.TEAM2, won2, sum(played.team2_score for played in played)),
        overall=tuple(_overall_player(match, line) for line in overall if is_published(match, line.player_id)),
        maps=tuple(_map_entry(match, played) for played in played),
        anti_cheat=tuple(anti_cheat_entry(match, found) for found in match.detections),
        forfeit=msgspec.UNSET if match.outcome is None or match.outcome.forfeited_to is None else True,
    )


def live_match(match: Match) -> shapes.LiveMatch:
    """Return the live view of a match: the map that is loaded or loading, and its players, most kills first."""
    current = loaded_map(match)
    counts = {
        player_id: count for player_id, count in current.ledger.live_counts().items() if is_published(match, player_id)
    }
    players = [
        shapes.LivePlayer(
            steam_id=player_id,
            name=player_name(match, player_id) or msgspec.UNSET,
            kills=count.kills,
            deaths=count.deaths,
            assists=count.assists,
        )
        for player_id, count in counts.items()
    ]
    players += [
        shapes.LivePlayer(steam_id=player_id, name=connection.name or msgspec.UNSET)
        for player_id, connection in match.presence.connected.items()
        if player_id not in counts
    ]
    has_score = match.settings.match_type is not MatchType.DEATHMATCH
    return shapes.LiveMatch(
        game=GAME_TYPE,
        match_type=match.settings.match_type,
        map=current.name or None,
        map_number=current.number,
        series_score=series_score_of(match),
        maps=map_states(match),
        score=shapes.Score(current.team1_score, current.team2_score) if has_score else msgspec.UNSET,
        players=tuple(sorted(players, key=lambda player: (-player.kills, player.deaths, player.steam_id))),
    )


def anti_cheat_entry(match: Match, found: Detection) -> shapes.AntiCheatEntry:
    return shapes.AntiCheatEntry(
        steam_id=found.player_id,
        name=found.name,
        team=found.team,
        type=found.kind,
        reason=found.reason,
        weapon=found.weapon,
        map_number=found.map_number,
        round_number=found.round_number,
        detected_at=iso_time(match.times.ours(found.detected_at_ms)),
    )


def overall_lines(maps: Sequence[PlayedMap]) -> list[PlayerLine]:
    """Return the statistics of all players over these maps, most kills first.

    If a player has no line on a map with missing rounds, the player's statistics from plugin reports are None or
    incomplete.
    """
    by_map = [played.ledger.lines() for played in maps]
    seen = [
        {line.player_id for line in lines} for played, lines in zip(maps, by_map, strict=True) if not played.is_complete
    ]
    return [
        line
        if all(line.player_id in players for players in seen)
        else msgspec.structs.replace(line, are_mvps_complete=False, shots_fired=None, shots_hit=None)
        for line in sum_lines(line for lines in by_map for line in lines)
    ]


def published_lines(match: Match, played: PlayedMap) -> list[PlayerLine]:
    """Return the statistics of those players of a map who appear in results, most kills first."""
    return [line for line in played.ledger.lines() if is_published(match, line.player_id)]


def players_of_map(
    match: Match, played: PlayedMap, lines: Iterable[PlayerLine]
) -> tuple[shapes.MapPlayer | shapes.DeathmatchPlayer, ...]:
    if match.settings.match_type is MatchType.DEATHMATCH:
        return tuple(_deathmatch_player(match, played, line) for line in lines)
    return tuple(_map_player(match, played, line) for line in lines)


def count_players(match: Match, played: PlayedMap) -> int:
    """Return the number of players in the result of a map, without building the result."""
    return sum(is_published(match, player_id) for player_id in played.ledger.player_ids())


def _map_entry(match: Match, played: PlayedMap) -> shapes.MapEntry:
    return shapes.MapEntry(
        map_name=played.name,
        played_map_name=played.played_name,
        map_number=played.number,
        team1_score=played.team1_score,
        team2_score=played.team2_score,
        winner=played.winner,
        duration=played.duration_s,
        complete=played.is_complete,
        missing_rounds=played.missing_rounds,
        team1_start_side=played.start_side,
        sides_by=decided_by(match.settings, played.number, played.start_side),
        players=tuple(_map_player(match, played, line) for line in published_lines(match, played)),
    )


def team_name(match: Match, team: Team) -> str:
    """Return the team name that the caller set, or else the newest name in the log, or else a default name."""
    logged = next((names for played in reversed(match.maps) if any(names := played.team_names)), (None, None))
    return settings_name(match.settings, team, logged[0 if team is Team.TEAM1 else 1])


def settings_name(settings: GameSettings, team: Team, logged: str | None = None) -> str:
    """Return the team name that the caller set, or else the name from the log, or else a default name."""
    given, default = (settings.team1, "Team 1") if team is Team.TEAM1 else (settings.team2, "Team 2")
    return (given.name if given is not None else None) or logged or default


def player_name(match: Match, player_id: PlayerId) -> str:
    """Return the current name of a player, or else the latest name on any map, or else an empty text."""
    connection = match.presence.connected.get(player_id)
    if connection is not None and connection.name:
        return connection.name
    return next((played.names[player_id] for played in reversed(match.maps) if player_id in played.names), "")


def is_published(match: Match, player_id: PlayerId) -> bool:
    """True for players who appear in results. Bots and unlisted players do not."""
    return is_human(player_id) and not match.presence.is_outsider(player_id)


def _team(match: Match, team: Team, maps_won: int, rounds_won: int) -> shapes.TeamEntry:
    return shapes.TeamEntry(name=team_name(match, team), series_score=maps_won, total_rounds=rounds_won)


def _numbers(line: PlayerLine, name: str) -> shapes.PlayerNumbers:
    return shapes.PlayerNumbers(
        steam_id=line.player_id,
        name=name,
        kills=line.kills,
        deaths=line.deaths,
        assists=line.all_assists,
        headshots=line.headshots,
        hs_percent=derived.hs_percent(line.headshots, line.kills),
        kd_ratio=derived.kd_ratio(line.kills, line.deaths),
        damage_dealt=line.damage,
        utility_damage=line.utility_damage,
        pistol_kills=line.pistol_kills,
        sniper_kills=line.sniper_kills,
        extra_stats=_extra_stats(line),
    )


def _overall_player(match: Match, line: PlayerLine, name: str | None = None) -> shapes.OverallPlayer:
    numbers = _numbers(line, name or player_name(match, line.player_id))
    return shapes.OverallPlayer(
        **asdict(numbers),
        team=match.roster.team_of(line.player_id) or line.team,
        adr=derived.adr(line.damage, line.rounds_played),
        rounds_played=line.rounds_played,
        mvps=line.mvps or 0,
        mvps_complete=line.are_mvps_complete,
    )


def _map_player(match: Match, played: PlayedMap, line: PlayerLine) -> shapes.MapPlayer:
    return shapes.MapPlayer(
        **asdict(_overall_player(match, line, played.names.get(line.player_id))),
        flash_assists=line.flash_assists,
        first_kills=line.first_kills,
        first_deaths=line.first_deaths,
        entry_kills=line.first_kills,
        trade_kills=line.trade_kills,
        bomb_plants=line.bomb_plants,
        bomb_defuses=line.bomb_defuses,
        clutch_wins=line.clutch_wins,
        kast_percent=derived.kast_percent(line.kast_rounds, line.rounds_played),
        impact_rating=derived.impact(line.kills, line.all_assists, line.rounds_played),
    )


def team_kills(match: Match, played: PlayedMap) -> tuple[int, int]:
    """Return the number of kills of each team: the score of a team deathmatch."""
    kills = {Team.TEAM1: 0, Team.TEAM2: 0}
    for line in published_lines(match, played):
        team = match.team_of(line.player_id) or line.team
        if team is not None:
            kills[team] += line.kills
    return kills[Team.TEAM1], kills[Team.TEAM2]


def _winner_team(match: Match, played: PlayedMap) -> Winner | None:
    is_known = played.is_complete and not match.settings.is_free_for_all
    return Winner.of(*team_kills(match, played)) if is_known else None


def _deathmatch(match: Match) -> shapes.DeathmatchResult:
    played = match.current_map
    lines = published_lines(match, played)
    winner = min(lines, key=lambda line: (-line.kills, line.deaths, -line.damage, line.player_id), default=None)
    return shapes.DeathmatchResult(
        game_mode=match.settings.match_type,
        map=played.name,
        played_map_name=played.played_name,
        duration=played.duration_s,
        complete=played.is_complete,
        winner_steam_id=None if winner is None else winner.player_id,
        winner_team=_winner_team(match, played) if lines else None,
        players=tuple(_deathmatch_player(match, played, line) for line in lines),
        anti_cheat=tuple(anti_cheat_entry(match, found) for found in match.detections),
    )


def _deathmatch_player(match: Match, played: PlayedMap, line: PlayerLine) -> shapes.DeathmatchPlayer:
    numbers = _numbers(line, player_name(match, line.player_id))
    return shapes.DeathmatchPlayer(**asdict(numbers), kpm=derived.kpm(line.kills, played.duration_s or 0))


def _extra_stats(line: PlayerLine) -> shapes.ExtraStats:
    return shapes.ExtraStats(
        **{name: getattr(line, name) for name in _COPIED},
        entry_kills=line.first_kills,
        entry_deaths=line.first_deaths,
        mvps=_measured(line.mvps),
        shots_fired=_measured(line.shots_fired),
        shots_hit=_measured(line.shots_hit),
        accuracy_percent=_measured(derived.accuracy(line.shots_hit, line.shots_fired)),
    )


def _measured(number: _Number | None) -> _Number | msgspec.UnsetType:
    return msgspec.UNSET if number is None else number
