"""Build the payloads of MatchZy's events, including the fields that MatchZy always sends as 0.

Properties are ordered as .NET writes them: first the properties of the event, then `event` (as in a real `map_result`).
Known bugs of MatchZy are reproduced: `round_end.winner.team` is the team that leads the map, and
`map_result.winner.team` the team that leads the series (team2 if tied, in both cases). `winner.side` of a map or series
is correct only by chance.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cs2_protocol.game import Side, Team
from cs2_simulator.play.counts.tally import OF_COACH, Tally
from cs2_simulator.play.player import Player
from cs2_simulator.play.watcher import RoundEnd
from cs2_simulator.plugin.series import Series

TIME_UNTIL_RESTORE_S = 10
"""Value of `time_until_restore` in every `series_end` of MatchZy, regardless of the actual delay."""

SCORE_PER_KILL = 2
SCORE_PER_ASSIST = 1

_SIDE_NUMBERS = {Side.T: "2", Side.CT: "3"}

_REASONS = {
    "Target_Bombed": 1,
    "Bomb_Defused": 7,
    "CTs_Win": 8,
    "Terrorists_Win": 9,
    "Round_Draw": 10,
    "All_Hostages_Rescued": 11,
    "Hostages_Rescued": 11,
    "Target_Saved": 12,
    "Hostages_Not_Rescued": 13,
    "Terrorists_Surrender": 17,
    "CTs_Surrender": 18,
}
"""The game's numeric round end reasons, by the notice in the log."""

_STATS = (
    "kills", "deaths", "assists", "flash_assists", "team_kills", "suicides", "damage", "utility_damage",
    "enemies_flashed", "friendlies_flashed", "knife_kills", "headshot_kills", "rounds_played", "bomb_defuses",
    "bomb_plants", "1k", "2k", "3k", "4k", "5k", "1v1", "1v2", "1v3", "1v4", "1v5", "first_kills_t", "first_kills_ct",
    "first_deaths_t", "first_deaths_ct", "trade_kills", "kast", "score", "mvp",
)  # fmt: skip
"""Names of a player's statistics, in the order of the payload. MatchZy sends 0 for those that `_stats` does not set."""

# .NET escapes these characters in JSON, so that the JSON can be embedded in HTML.
_NET_ESCAPES = str.maketrans({char: f"\\u{ord(char):04X}" for char in "'<>&+`"})

Payload = dict[str, object]


def encode(payload: Payload) -> bytes:
    """Encode a payload as the body of a post, in ASCII and without whitespace."""
    return to_json(payload).encode("ascii")


def to_json(payload: Payload) -> str:
    """Format a payload as JSON, as the plugin does."""
    return json.dumps(payload, separators=(",", ":")).translate(_NET_ESCAPES)


def series_start(series: Series) -> Payload:
    match = series.match
    return {
        "team1": {"id": match.team1.id, "name": match.team1.name},
        "team2": {"id": match.team2.id, "name": match.team2.name},
        "num_maps": match.num_maps,
        "matchid": series.match_id,
        "event": "series_start",
    }


def going_live(series: Series) -> Payload:
    return {"map_number": series.map_number, "matchid": series.match_id, "event": "going_live"}


def round_end(
    series: Series, end: RoundEnd, score: tuple[int, int], players: tuple[list[Payload], list[Payload]]
) -> Payload:
    """Build the event for the end of a round. Score and players are by team1 and team2 of the match file."""
    return {
        "reason": _REASONS.get(end.notice, 0),
        "winner": {"side": _SIDE_NUMBERS[end.side] if end.side is not None else "0", "team": _leader(score)},
        "team1": _stats_team(series, 0, score[0], players[0]),
        "team2": _stats_team(series, 1, score[1], players[1]),
        "round_time": 0,
        "round_number": sum(score),
        "map_number": series.map_number,
        "matchid": series.match_id,
        "event": "round_end",
    }


def map_result(series: Series, map_number: int, score: tuple[int, int], team1_side: Side) -> Payload:
    """Build the event for the end of a map. `series.wins` must already include this map. Players are never listed."""
    return {
        "winner": {"side": _claimed_side(score, team1_side), "team": _leader((series.wins[0], series.wins[1]))},
        "team1": _stats_team(series, 0, score[0], [], series_score=series.wins[0]),
        "team2": _stats_team(series, 1, score[1], [], series_score=series.wins[1]),
        "map_number": map_number,
        "matchid": series.match_id,
        "event": "map_result",
    }


def series_end(series: Series, score: tuple[int, int], team1_side: Side) -> Payload:
    """Build the event for the end of the series. `score` is the score of the last map."""
    wins1, wins2 = series.wins
    return {
        "time_until_restore": TIME_UNTIL_RESTORE_S,
        "winner": {
            "side": _claimed_side(score, team1_side),
            "team": "none" if wins1 == wins2 else _leader((wins1, wins2)),
        },
        "team1_series_score": wins1,
        "team2_series_score": wins2,
        "matchid": series.match_id,
        "event": "series_end",
    }


def stats_players(present: Sequence[Player], tallies: Sequence[Tally], rounds_played: int) -> list[Payload]:
    """Return the statistics of `present`, the players of one team who are on the server, without bots."""
    by_id = {tally.player_id: tally for tally in tallies}
    return [
        {
            "steamid": player.person.player_id,
            "name": player.person.name,
            "stats": _stats(
                by_id.get(player.person.player_id) or (OF_COACH if player.is_coach else Tally()), rounds_played
            ),
        }
        for player in present
        if not player.person.is_bot
    ]


def _stats(tally: Tally, rounds_played: int) -> dict[str, int]:
    return dict.fromkeys(_STATS, 0) | {
        "kills": tally.kills,
        "deaths": tally.deaths,
        "assists": tally.assists,
        "damage": tally.damage,
        "utility_damage": tally.utility_damage,
        "enemies_flashed": tally.enemies_flashed,
        "headshot_kills": tally.headshots,
        "rounds_played": rounds_played,
        "2k": tally.double_kills,
        "3k": tally.triple_kills,
        "4k": tally.quad_kills,
        "5k": tally.aces,
        "1v1": tally.clutch1v1,
        "1v2": tally.clutch1v2,
        "score": SCORE_PER_KILL * tally.kills + SCORE_PER_ASSIST * tally.assists,
        "mvp": tally.mvps,
    }


def _stats_team(series: Series, index: int, score: int, players: list[Payload], *, series_score: int = 0) -> Payload:
    team = (series.match.team1, series.match.team2)[index]
    return {
        "series_score": series_score,
        "score": score,
        "score_ct": 0,
        "score_t": 0,
        "players": players,
        "id": team.id,
        "name": team.name,
    }


def _leader(score: tuple[int, int]) -> str:
    return Team.TEAM1.value if score[0] > score[1] else Team.TEAM2.value


def _claimed_side(score: tuple[int, int], team1_side: Side) -> str:
    return _SIDE_NUMBERS[Side.CT if score[0] > score[1] and team1_side is Side.CT else Side.T]
