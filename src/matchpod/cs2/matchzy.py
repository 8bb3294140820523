"""What does a match plugin's event say? MatchZy's posts (and its relatives') to typed reports, never raising.

Reports only: they come once, in no sure order, and some never come, so the interpreter weighs them against the log.
Map numbers count from 0 in the plugin and from 1 here; round numbers count from 1 in both. `round_end.winner.team`
is the team that leads, not the round's winner, and `map_result.winner.side` is no one's: neither is kept.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from matchpod.core.events import RoundEndReason
from matchpod.core.model import PlayerId, Side, Team
from matchpod.cs2.steam_id import to_id64

MAX_REPORT_BYTES = 256 * 1024
"""A round_end with ten players has about 10 KB."""

MAX_TEAM_PLAYERS = 32
"""No mode seats more on a team; the rest of a longer list is not read."""

MAX_COUNT = 10**9
"""A larger number is not a count of anything in a match."""

MAX_TEXT_CHARS = 128
"""Player and team names have at most 128 bytes in the game."""

MAX_MATCH_ID_CHARS = 64
"""MatchZy numbers its matches with 64 bits; its relatives use a string of the caller's."""

# The round end reasons of the game, as the plugin passes them on; the others (16: game commencing) decide nothing.
_REASONS = {
    1: RoundEndReason.TARGET_BOMBED,
    7: RoundEndReason.BOMB_DEFUSED,
    8: RoundEndReason.CTS_WIN,
    9: RoundEndReason.TERRORISTS_WIN,
    10: RoundEndReason.DRAW,
    11: RoundEndReason.HOSTAGES_RESCUED,
    12: RoundEndReason.TARGET_SAVED,
    13: RoundEndReason.HOSTAGES_NOT_RESCUED,
    17: RoundEndReason.TERRORISTS_SURRENDER,
    18: RoundEndReason.CTS_SURRENDER,
}

# MatchZy writes team numbers, its relatives the words of the schema.
_SIDES = {"2": Side.T, "3": Side.CT, "t": Side.T, "ct": Side.CT}

# What the plugin fills. It also sends, always 0: flash_assists team_kills suicides friendlies_flashed knife_kills
# bomb_defuses bomb_plants 1k 1v3 1v4 1v5 first_kills_t first_kills_ct first_deaths_t first_deaths_ct trade_kills kast.
_STATS = {
    "kills": "kills",
    "deaths": "deaths",
    "assists": "assists",
    "damage": "damage",
    "utility_damage": "utility_damage",
    "enemies_flashed": "enemies_flashed",
    "headshot_kills": "headshot_kills",
    "rounds_played": "rounds_played",
    "double_kills": "2k",
    "triple_kills": "3k",
    "quad_kills": "4k",
    "aces": "5k",
    "clutch1v1": "1v1",
    "clutch1v2": "1v2",
    "score": "score",
    "mvps": "mvp",
}


class PlayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin's running numbers of one player on the open map; None where it sent none."""

    player_id: PlayerId
    name: str
    team: Team
    kills: int | None = None
    deaths: int | None = None
    assists: int | None = None
    damage: int | None = None
    utility_damage: int | None = None
    enemies_flashed: int | None = None
    headshot_kills: int | None = None
    rounds_played: int | None = None
    double_kills: int | None = None
    triple_kills: int | None = None
    quad_kills: int | None = None
    aces: int | None = None
    clutch1v1: int | None = None
    clutch1v2: int | None = None
    score: int | None = None
    mvps: int | None = None


class SeriesStart(msgspec.Struct, frozen=True, tag="series_start"):
    """The plugin loaded a match."""

    match_id: str
    num_maps: int | None
    team1_name: str
    team2_name: str


class GoingLive(msgspec.Struct, frozen=True, tag="going_live"):
    """A map counts from here."""

    match_id: str
    map_number: int


class RoundEnd(msgspec.Struct, frozen=True, tag="round_end"):
    """A live round was decided; players who left are missing.

    The plugin's schema counts rounds from 0, but it sends the sum of the scores: 1 after the first round.
    """

    match_id: str
    map_number: int
    round_number: int
    winner_side: Side | None
    reason: RoundEndReason
    team1_score: int
    team2_score: int
    players: tuple[PlayerReport, ...]


class MapResult(msgspec.Struct, frozen=True, tag="map_result"):
    """A map is over; `winner` None is a tie or nobody named."""

    match_id: str
    map_number: int
    team1_score: int
    team2_score: int
    winner: Team | None


class SeriesEnd(msgspec.Struct, frozen=True, tag="series_end"):
    """The series is over, with maps won; `winner` None is a tie or nobody named."""

    match_id: str
    team1_maps: int
    team2_maps: int
    winner: Team | None


class OtherReport(msgspec.Struct, frozen=True, tag="other"):
    """An event nobody here needs: the log says it better, or it says nothing of the game."""

    match_id: str
    event: str
    digest: str


class Malformed(msgspec.Struct, frozen=True, tag="malformed"):
    """Not an event, or one without its facts."""

    reason: str
    digest: str


Report = SeriesStart | GoingLive | RoundEnd | MapResult | SeriesEnd | OtherReport | Malformed

_Fields = dict[str, object]


def read_report(body: bytes) -> Report:
    """What an event post reports; every body is a value."""
    if len(body) > MAX_REPORT_BYTES:
        return Malformed(f"more than {MAX_REPORT_BYTES} bytes", _digest(body))
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Malformed("not JSON", _digest(body))
    if not isinstance(decoded, dict):
        return Malformed("not an object", _digest(body))
    event = _text(decoded, "event")
    if not event:
        return Malformed("no event name", _digest(body))
    match_id = _match_id(decoded)
    report: Report | None
    match event:
        case "series_start":
            report = _series_start(match_id, decoded)
        case "going_live":
            report = _going_live(match_id, decoded)
        case "round_end":
            report = _round_end(match_id, decoded)
        case "map_result":
            report = _map_result(match_id, decoded)
        case "series_end":
            report = _series_end(match_id, decoded)
        case _:
            report = OtherReport(match_id, event, _digest(body))
    return report or Malformed(f"{event} without its numbers", _digest(body))


def report_key(report: Report) -> str:
    """The same for the same fact, however often it is delivered.

    A round played again after a restore has other numbers and so another key; a map that goes live again has not.
    """
    return f"{type(report).__struct_config__.tag}:{_digest(msgspec.msgpack.encode(report))}"


def _series_start(match_id: str, event: _Fields) -> SeriesStart:
    team1, team2 = _fields(event, "team1"), _fields(event, "team2")
    return SeriesStart(match_id, _count(event, "num_maps"), _text(team1, "name"), _text(team2, "name"))


def _going_live(match_id: str, event: _Fields) -> GoingLive | None:
    map_number = _count(event, "map_number")
    return None if map_number is None else GoingLive(match_id, map_number + 1)


def _round_end(match_id: str, event: _Fields) -> RoundEnd | None:
    map_number, round_number = _count(event, "map_number"), _count(event, "round_number")
    team1, team2 = _fields(event, "team1"), _fields(event, "team2")
    score1, score2 = _count(team1, "score"), _count(team2, "score")
    if map_number is None or round_number is None or score1 is None or score2 is None:
        return None
    return RoundEnd(
        match_id,
        map_number + 1,
        round_number,
        _side(_fields(event, "winner")),
        _REASONS.get(_count(event, "reason") or 0, RoundEndReason.UNKNOWN),
        score1,
        score2,
        _players(team1, Team.TEAM1) + _players(team2, Team.TEAM2),
    )


def _map_result(match_id: str, event: _Fields) -> MapResult | None:
    map_number = _count(event, "map_number")
    score1, score2 = _count(_fields(event, "team1"), "score"), _count(_fields(event, "team2"), "score")
    if map_number is None or score1 is None or score2 is None:
        return None
    return MapResult(match_id, map_number + 1, score1, score2, _winner(event))


def _series_end(match_id: str, event: _Fields) -> SeriesEnd | None:
    maps1, maps2 = _count(event, "team1_series_score"), _count(event, "team2_series_score")
    return None if maps1 is None or maps2 is None else SeriesEnd(match_id, maps1, maps2, _winner(event))


def _players(team: _Fields, of: Team) -> tuple[PlayerReport, ...]:
    listed = team.get("players")
    if not isinstance(listed, list):
        return ()
    read = (_player(entry, of) for entry in listed[:MAX_TEAM_PLAYERS] if isinstance(entry, dict))
    return tuple(player for player in read if player is not None)


def _player(entry: _Fields, team: Team) -> PlayerReport | None:
    """One player's numbers; None for bots and ids that name nobody."""
    given = entry.get("steamid")
    player_id = to_id64(str(given)) if isinstance(given, str | int) else None
    if player_id is None:
        return None
    stats = _fields(entry, "stats")
    counts = {field: _count(stats, key) for field, key in _STATS.items()}
    return PlayerReport(player_id=player_id, name=_text(entry, "name"), team=team, **counts)


def _winner(event: _Fields) -> Team | None:
    named = _text(_fields(event, "winner"), "team")
    return Team(named) if named in (Team.TEAM1, Team.TEAM2) else None


def _side(winner: _Fields) -> Side | None:
    given = winner.get("side")
    return _SIDES.get(str(given).lower()) if isinstance(given, str | int) else None


def _match_id(event: _Fields) -> str:
    given = event.get("matchid")
    return str(given)[:MAX_MATCH_ID_CHARS] if isinstance(given, str | int) else ""


def _fields(of: _Fields, key: str) -> _Fields:
    inner = of.get(key)
    return inner if isinstance(inner, dict) else {}


def _text(of: _Fields, key: str) -> str:
    given = of.get(key)
    return given[:MAX_TEXT_CHARS] if isinstance(given, str) else ""


def _count(of: _Fields, key: str) -> int | None:
    given = of.get(key)
    return given if type(given) is int and 0 <= given <= MAX_COUNT else None


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()
