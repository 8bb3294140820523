"""Parse log lines with a list of regular expressions tried in order: the yardstick of the benchmark.

Nothing here is slow on purpose: patterns are compiled once, anchored by `match`, and may be sorted by how common their
lines are. It knows the same kinds of line as `cs2.log_lines`, but trusts names: a player with log text in their name can
forge events here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any


@dataclass(slots=True)
class LogLine:
    """A parsed line."""


@dataclass(slots=True)
class PlayerLine(LogLine):
    player_name: str
    player_number: int
    player_steam_id: str
    player_team: str


@dataclass(slots=True)
class Connected(PlayerLine):
    address: str


@dataclass(slots=True)
class Validated(PlayerLine):
    pass


@dataclass(slots=True)
class Entered(PlayerLine):
    pass


@dataclass(slots=True)
class SwitchedTeam(LogLine):
    player_name: str
    player_number: int
    player_steam_id: str
    old: str
    new: str


@dataclass(slots=True)
class Disconnected(PlayerLine):
    reason: str


@dataclass(slots=True)
class ChangedName(PlayerLine):
    new_name: str


@dataclass(slots=True)
class Chat(PlayerLine):
    verb: str
    message: str


@dataclass(slots=True)
class Attacked(PlayerLine):
    position: str
    victim_name: str
    victim_number: int
    victim_steam_id: str
    victim_team: str
    victim_position: str
    weapon: str
    damage: int
    damage_armor: int
    health: int
    armor: int
    hitgroup: str


@dataclass(slots=True)
class Killed(PlayerLine):
    position: str
    victim_name: str
    victim_number: int
    victim_steam_id: str
    victim_team: str
    victim_position: str
    weapon: str
    modifiers: str | None


@dataclass(slots=True)
class KilledOther(PlayerLine):
    position: str
    thing: str
    entity: int
    thing_position: str
    weapon: str
    modifiers: str | None


@dataclass(slots=True)
class Suicide(PlayerLine):
    position: str
    weapon: str


@dataclass(slots=True)
class BombDeath(PlayerLine):
    position: str


@dataclass(slots=True)
class HostageMoved(PlayerLine):
    position: str
    verb: str


@dataclass(slots=True)
class Assisted(PlayerLine):
    flash: str | None
    victim_name: str
    victim_number: int
    victim_steam_id: str
    victim_team: str


@dataclass(slots=True)
class BlindedBy(PlayerLine):
    seconds: str
    victim_name: str
    victim_number: int
    victim_steam_id: str
    victim_team: str
    entity: int


@dataclass(slots=True)
class GrenadeLaunched(PlayerLine):
    grenade: str
    numbers: str


@dataclass(slots=True)
class GrenadeLanded(PlayerLine):
    grenade: str
    position: str
    entity: str | None


@dataclass(slots=True)
class Triggered(PlayerLine):
    trigger: str
    site: str | None


@dataclass(slots=True)
class ItemTransfer(PlayerLine):
    verb: str
    item: str


@dataclass(slots=True)
class MoneyChange(PlayerLine):
    before: int
    change: int
    after: int
    cause: str | None


@dataclass(slots=True)
class LeftBuyzone(PlayerLine):
    items: str


@dataclass(slots=True)
class WorldTriggered(LogLine):
    trigger: str
    map_name: str | None


@dataclass(slots=True)
class RoundEndNotice(LogLine):
    side: str | None
    notice: str
    ct: int
    t: int


@dataclass(slots=True)
class TeamScored(LogLine):
    side: str
    score: int
    players: int


@dataclass(slots=True)
class TeamPlaying(LogLine):
    status: str | None
    side: str
    name: str | None


@dataclass(slots=True)
class MatchScore(LogLine):
    ct: int
    t: int
    map_name: str
    rounds_played: int


@dataclass(slots=True)
class PauseChanged(LogLine):
    change: str
    by: str


@dataclass(slots=True)
class Vote(LogLine):
    step: str
    issue: str
    player: str


@dataclass(slots=True)
class MatchUnpaused(LogLine):
    pass


@dataclass(slots=True)
class FreezeStarted(LogLine):
    pass


@dataclass(slots=True)
class LoadingMap(LogLine):
    map_name: str


@dataclass(slots=True)
class MapStarted(LogLine):
    map_name: str


@dataclass(slots=True)
class CvarsListed(LogLine):
    what: str


@dataclass(slots=True)
class CvarListed(LogLine):
    name: str
    value: str


@dataclass(slots=True)
class CvarChanged(LogLine):
    name: str
    value: str


@dataclass(slots=True)
class LogFileStarted(LogLine):
    file: str
    game: str
    version: str


@dataclass(slots=True)
class LogFileClosed(LogLine):
    pass


@dataclass(slots=True)
class ServerMessage(LogLine):
    message: str


@dataclass(slots=True)
class GameOver(LogLine):
    mode: str
    map_group: str
    map_name: str
    ct: int
    t: int
    minutes: int


@dataclass(slots=True)
class Accolade(LogLine):
    award: str
    name: str
    number: int
    value: str
    place: int
    score: str


@dataclass(slots=True)
class MolotovSpawned(LogLine):
    position: str
    velocity: str


@dataclass(slots=True)
class RconCommand(LogLine):
    address: str
    command: str


@dataclass(slots=True)
class ConsoleChat(LogLine):
    message: str


@dataclass(slots=True)
class StatsMark(LogLine):
    mark: str


@dataclass(slots=True)
class StatsField(LogLine):
    name: str
    value: str


@dataclass(slots=True)
class StatsPlayer(LogLine):
    index: int
    columns: str


@dataclass(slots=True)
class Unknown(LogLine):
    message: str


def _token(who: str, name: str) -> str:
    return rf'"(?P<{who}_name>{name})<(?P<{who}_number>\d+)><(?P<{who}_steam_id><none>|[^>]*)><(?P<{who}_team>[^>]*)>"'


def _patterns(name: str) -> list[tuple[str, type[LogLine]]]:
    """Return the patterns of all kinds of line, in the usual order of documentation; `name` matches a player's name."""
    player, victim = _token("player", name), _token("victim", name)
    at, victim_at = r" \[(?P<position>[-\d ]+)\]", r" \[(?P<victim_position>[-\d ]+)\]"
    modifiers, side = r"(?: \((?P<modifiers>[a-z ]*)\))?$", r'"(?P<side>CT|TERRORIST)"'
    scores = r' \(CT "(?P<ct>\d+)"\) \(T "(?P<t>\d+)"\)$'
    return [
        (rf'{player} connected, address "(?P<address>[^"]*)"$', Connected),
        (rf"{player} STEAM USERID validated$", Validated),
        (rf"{player} entered the game$", Entered),
        (
            rf'"(?P<player_name>{name})<(?P<player_number>\d+)><(?P<player_steam_id>[^>]*)>"'
            r" switched from team <(?P<old>\w*)> to <(?P<new>\w*)>$",
            SwitchedTeam,
        ),
        (rf'{player} disconnected \(reason "(?P<reason>.*)"\)$', Disconnected),
        (rf'{player} changed name to "(?P<new_name>.*)"$', ChangedName),
        (
            rf'{player}{at} attacked {victim}{victim_at} with "(?P<weapon>\w*)" \(damage "(?P<damage>\d+)"\)'
            r' \(damage_armor "(?P<damage_armor>\d+)"\) \(health "(?P<health>-?\d+)"\) \(armor "(?P<armor>\d+)"\)'
            r' \(hitgroup "(?P<hitgroup>[\w ]*)"\)$',
            Attacked,
        ),
        (rf'{player}{at} killed {victim}{victim_at} with "(?P<weapon>\w*)"{modifiers}', Killed),
        (rf"{player} (?P<flash>flash-)?assisted killing {victim}$", Assisted),
        (
            rf'{player}{at} killed other "(?P<thing>\w+)<(?P<entity>\d+)>" \[(?P<thing_position>[-\d ]+)\]'
            rf' with "(?P<weapon>\w*)"{modifiers}',
            KilledOther,
        ),
        (rf'{player}{at} committed suicide with "(?P<weapon>\w*)"$', Suicide),
        (rf"{player}{at} was killed by the bomb\.$", BombDeath),
        (rf"{player}{at} (?P<verb>picked up|dropped off) a hostage$", HostageMoved),
        (rf"{player} sv_throw_(?P<grenade>\w+) (?P<numbers>[-\d. ]+)$", GrenadeLaunched),
        (rf"{player} threw (?P<grenade>\w+){at}(?: \w+ entindex (?P<entity>\d+)\))?$", GrenadeLanded),
        (
            rf"{player} blinded for (?P<seconds>[\d.]+) by {victim} from flashbang entindex (?P<entity>\d+) ?$",
            BlindedBy,
        ),
        (rf'{player} triggered "(?P<trigger>\w+)"(?: at bombsite (?P<site>[A-Z]))?$', Triggered),
        (rf'{player} (?P<verb>purchased|picked up|dropped) "(?P<item>\w*)"$', ItemTransfer),
        (
            rf"{player} money change (?P<before>-?\d+)(?P<change>[+-]\d+) = \$(?P<after>-?\d+)(?: \(tracked\))?"
            r"(?: \((?P<cause>[\w: ]*)\))?$",
            MoneyChange,
        ),
        (rf"{player} left buyzone with \[ (?P<items>.*)\]$", LeftBuyzone),
        (rf'{player} (?P<verb>say|say_team) "(?P<message>.*)"$', Chat),
        (r'"Console<0>" say "(?P<message>.*)"$', ConsoleChat),
        (r'rcon from "(?P<address>[^"]*)": command "(?P<command>.*)"$', RconCommand),
        (rf'(?:World|Team {side}) triggered "SFUI_Notice_(?P<notice>\w+)"{scores}', RoundEndNotice),
        (rf'Team {side} scored "(?P<score>\d+)" with "(?P<players>\d+)" players$', TeamScored),
        (rf"(?P<status>MatchStatus: )?Team (?:playing )?{side}(?:: (?P<name>.*)| is unset\.)$", TeamPlaying),
        (
            r'MatchStatus: Score: (?P<ct>\d+):(?P<t>\d+) on map "(?P<map_name>[^"]*)" RoundsPlayed: (?P<rounds_played>-?\d+)$',
            MatchScore,
        ),
        (r'World triggered "(?P<trigger>[\w()]+)"(?: on "(?P<map_name>[^"]*)")?$', WorldTriggered),
        (r"Starting Freeze period$", FreezeStarted),
        (r"Match pause is (?P<change>enabled|disabled) - (?P<by>\w+)$", PauseChanged),
        (r"Match unpaused$", MatchUnpaused),
        (r'Vote (?P<step>[a-z]+) "(?P<issue>[^"]*)" from #\d+ "(?P<player>.*)"(?: option\d+)?$', Vote),
        (r'Loading map "(?P<map_name>[^"]*)"$', LoadingMap),
        (r"server cvars (?P<what>start|end)$", CvarsListed),
        (r'"(?P<name>\w+)" = "(?P<value>.*)"$', CvarListed),
        (r'server_cvar: "(?P<name>\w+)" "(?P<value>.*)"$', CvarChanged),
        (r'Started(?::  | map )"(?P<map_name>[^"]*)"', MapStarted),
        (
            r'Log file started \(file "(?P<file>[^"]*)"\) \(game "(?P<game>[^"]*)"\) \(version "(?P<version>[^"]*)"\)$',
            LogFileStarted,
        ),
        (r"Log file closed$", LogFileClosed),
        (r'server_message: "(?P<message>.*)"$', ServerMessage),
        (
            r"Game Over: (?P<mode>\S+) (?P<map_group>.*?) ?(?P<map_name>\S+) score (?P<ct>\d+):(?P<t>\d+)"
            r" after (?P<minutes>\d+) min$",
            GameOver,
        ),
        (
            r"ACCOLADE, FINAL: \{(?P<award>\w+)\},\t(?P<name>.*)<(?P<number>\d+)>,\tVALUE: (?P<value>[-\d.]+)"
            r",\tPOS: (?P<place>\d+),\tSCORE: (?P<score>[-\d.]+)$",
            Accolade,
        ),
        (
            r"Molotov projectile spawned at (?P<position>[-\d. ]+), velocity (?P<velocity>[-\d. ]+)$",
            MolotovSpawned,
        ),
        (r'(?P<mark>JSON_BEGIN\{|"name": "round_stats",|"players" : \{|\}\}JSON_END)$', StatsMark),
        (r'"player_(?P<index>\d+)" : "(?P<columns>.*)"$', StatsPlayer),
        (r'"(?P<name>round_number|score_t|score_ct|map|server|fields)" : "(?P<value>.*?)",?$', StatsField),
    ]


_PREFIX = re.compile(
    r"(?:L )?(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>\d{4})"
    r" - (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<millis>\d{3}))?(?:: | - )"
)

ANY_NAME = ".+?"
"""Matches any name. A line of another kind fails only at its last character, since the name might extend to it."""

UNQUOTED_NAME = '[^"]+?'
"""Fails sooner, but does not match a name with a quote."""


class PlainParser:
    """A parser that tries the patterns of all kinds of line in order."""

    def __init__(self, name: str = ANY_NAME, common_first: Sequence[str] = ()) -> None:
        rank = {kind: index for index, kind in enumerate(common_first)}
        patterns = sorted(_patterns(name), key=lambda entry: rank.get(entry[1].__name__, len(rank)))
        self._kinds = [(re.compile(pattern, re.DOTALL), kind, _int_fields(kind)) for pattern, kind in patterns]

    def read(self, raw: bytes) -> tuple[datetime | None, LogLine]:
        """Return the time and the parsed value of a line."""
        text = raw.decode("utf-8", "replace")
        prefix = _PREFIX.match(text)
        if prefix is None:
            return None, Unknown(text)
        month, day, year, hour, minute, second, millis = prefix.groups("0")
        at = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), int(millis) * 1000, tzinfo=UTC
        )
        message = text[prefix.end() :]
        for pattern, kind, int_fields in self._kinds:
            found = pattern.match(message)
            if found is not None:
                values: dict[str, Any] = found.groupdict()
                for name in int_fields:
                    values[name] = int(values[name])
                return at, kind(**values)
        return at, Unknown(message)


def common_kinds(lines: Iterable[bytes]) -> list[str]:
    """Return the kinds of these lines, most common first, which is the best order for them."""
    read, counts = PlainParser().read, dict[str, int]()
    for raw in lines:
        kind = type(read(raw)[1]).__name__
        counts[kind] = counts.get(kind, 0) + 1
    return sorted(counts, key=lambda kind: -counts[kind])


def _int_fields(kind: type[LogLine]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.type in ("int", int))
