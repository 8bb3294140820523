"""Parse the event posts of MatchZy and compatible plugins into typed reports, without raising.

MatchZy sends each event once, without a retry and in no guaranteed order, and some events never arrive. So users of
this module compare events with the log. Map numbers count from 0 in the plugin and from 1 here; round numbers count
from 1 in both. Two fields are ignored: `round_end.winner.team` is the leading team, not the winner of the round, and
`map_result.winner.side` is unreliable.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team
from cs2_protocol.raw_fields import RawFields, read_fields
from cs2_protocol.steam_id import to_id64

MAX_REPORT_BYTES = 256 * 1024
"""Maximum size of an event that is parsed. A round_end with ten players has about 10 KB."""

MAX_TEAM_PLAYERS = 32
"""Maximum number of players read per team. No mode has larger teams."""

MAX_COUNT = 10**9
"""Highest number that is accepted. No count of a match reaches it."""

MAX_TEXT_CHARS = 128
"""Maximum number of characters kept of a string. Player and team names have at most 128 bytes in the game."""

MAX_MATCH_ID_CHARS = 64
"""Maximum number of characters kept of a match id. MatchZy uses 64-bit numbers, other plugins the caller's string."""

# Numbers of the game's round end reasons, which the plugin sends. Other reasons (such as 16, game commencing) do not
# decide a round.
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

# MatchZy sends the number of a side; compatible plugins send its name, as in the plugin's event schema.
_SIDES = {"2": Side.T, "3": Side.CT, "t": Side.T, "ct": Side.CT}

# Statistics that the plugin fills. It always sends 0 for these fields: flash_assists team_kills suicides
# friendlies_flashed knife_kills bomb_defuses bomb_plants 1k 1v3 1v4 1v5 first_kills_t first_kills_ct first_deaths_t
# first_deaths_ct trade_kills kast.
_STATS = ("kills", "deaths", "assists", "damage", "utility_damage", "enemies_flashed", "headshot_kills",
          "rounds_played", "2k", "3k", "4k", "5k", "1v1", "1v2", "score", "mvp")  # fmt: skip


class PlayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin's running statistics of a player on the current map; `stats` has only the fields that were sent."""

    player_id: PlayerId
    name: str
    team: Team
    stats: dict[str, int] = {}


class SeriesStart(msgspec.Struct, frozen=True, tag="series_start"):
    """The plugin loaded a match."""

    match_id: str
    num_maps: int | None
    team1_name: str
    team2_name: str


class GoingLive(msgspec.Struct, frozen=True, tag="going_live"):
    """A map went live."""

    match_id: str
    map_number: int


class RoundEndReport(msgspec.Struct, frozen=True, tag="round_end"):
    """A live round was decided. Players who have left are not included.

    The plugin's event schema counts rounds from 0, but the plugin sends the sum of the scores: 1 after the first round.
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
    """A map has ended. `winner` is None for a tie, or if the plugin did not send it."""

    match_id: str
    map_number: int
    team1_score: int
    team2_score: int
    winner: Team | None


class SeriesEnd(msgspec.Struct, frozen=True, tag="series_end"):
    """The series has ended; `team1_maps` and `team2_maps` are the maps won.

    `winner` is None for a tie, or if the plugin did not send it.
    """

    match_id: str
    team1_maps: int
    team2_maps: int
    winner: Team | None


class OtherReport(msgspec.Struct, frozen=True, tag="other"):
    """An event that is ignored: either the log is more precise, or the event is not about the game."""

    match_id: str
    event: str
    digest: str


class Malformed(msgspec.Struct, frozen=True, tag="malformed"):
    """A body that is not an event, or an event without required fields."""

    reason: str
    digest: str


Report = SeriesStart | GoingLive | RoundEndReport | MapResult | SeriesEnd | OtherReport | Malformed


def read_report(body: bytes) -> Report:
    """Parse the body of an event post. Return `Malformed` if the body is invalid."""
    if len(body) > MAX_REPORT_BYTES:
        return Malformed(f"more than {MAX_REPORT_BYTES} bytes", _digest(body))
    try:
        decoded = read_fields(body)
    except ValueError:
        return Malformed("not JSON", _digest(body))
    if decoded is None:
        return Malformed("not an object", _digest(body))
    event = _text(decoded, "event")
    if not event:
        return Malformed("no event name", _digest(body))
    match_id = (decoded.text_or_integer("matchid") or "")[:MAX_MATCH_ID_CHARS]
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
    return report or Malformed(f"{event} without required fields", _digest(body))


def report_key(report: Report) -> str:
    """Return a key that is equal for repeated deliveries of the same report.

    A round that is played again normally has other statistics, and so another key. If a map goes live a second time,
    its `going_live` has the same key.
    """
    return f"{type(report).__struct_config__.tag}:{_digest(msgspec.msgpack.encode(report))}"


def _series_start(match_id: str, event: RawFields) -> SeriesStart:
    team1, team2 = event.fields("team1"), event.fields("team2")
    return SeriesStart(match_id, _count(event, "num_maps"), _text(team1, "name"), _text(team2, "name"))


def _going_live(match_id: str, event: RawFields) -> GoingLive | None:
    map_number = _count(event, "map_number")
    return None if map_number is None else GoingLive(match_id, map_number + 1)


def _round_end(match_id: str, event: RawFields) -> RoundEndReport | None:
    map_number, round_number = _count(event, "map_number"), _count(event, "round_number")
    team1, team2 = event.fields("team1"), event.fields("team2")
    score1, score2 = _count(team1, "score"), _count(team2, "score")
    if map_number is None or round_number is None or score1 is None or score2 is None:
        return None
    return RoundEndReport(
        match_id,
        map_number + 1,
        round_number,
        _side(event.fields("winner")),
        _REASONS.get(_count(event, "reason") or 0, RoundEndReason.UNKNOWN),
        score1,
        score2,
        _players(team1, Team.TEAM1) + _players(team2, Team.TEAM2),
    )


def _map_result(match_id: str, event: RawFields) -> MapResult | None:
    map_number = _count(event, "map_number")
    score1, score2 = _count(event.fields("team1"), "score"), _count(event.fields("team2"), "score")
    if map_number is None or score1 is None or score2 is None:
        return None
    return MapResult(match_id, map_number + 1, score1, score2, _winner(event))


def _series_end(match_id: str, event: RawFields) -> SeriesEnd | None:
    maps1, maps2 = _count(event, "team1_series_score"), _count(event, "team2_series_score")
    return None if maps1 is None or maps2 is None else SeriesEnd(match_id, maps1, maps2, _winner(event))


def _players(team_fields: RawFields, team: Team) -> tuple[PlayerReport, ...]:
    read = (_player(entry, team) for entry in team_fields.items("players", MAX_TEAM_PLAYERS) or ())
    return tuple(player for player in read if player is not None)


def _player(entry: RawFields, team: Team) -> PlayerReport | None:
    """Parse one player's statistics; None for a bot or an invalid id."""
    player_id = to_id64(entry.text_or_integer("steamid") or "")
    if player_id is None:
        return None
    stats = entry.fields("stats")
    counts = {name: count for name in _STATS if (count := _count(stats, name)) is not None}
    return PlayerReport(player_id=player_id, name=_text(entry, "name"), team=team, stats=counts)


def _winner(event: RawFields) -> Team | None:
    named = _text(event.fields("winner"), "team")
    return Team(named) if named in (Team.TEAM1, Team.TEAM2) else None


def _side(winner: RawFields) -> Side | None:
    return _SIDES.get((winner.text_or_integer("side") or "").lower())


def _text(entry: RawFields, key: str) -> str:
    return (entry.text(key) or "")[:MAX_TEXT_CHARS]


def _count(entry: RawFields, key: str) -> int | None:
    value = entry.integer(key)
    return value if value is not None and 0 <= value <= MAX_COUNT else None


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()
