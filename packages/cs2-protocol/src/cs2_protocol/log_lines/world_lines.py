"""Define the values of log lines that do not begin with a player token, and format them."""

from __future__ import annotations

import msgspec

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_token import PlayerToken


class WorldLine(msgspec.Struct, frozen=True, gc=False):
    """A line that is not about a single player."""

    def text(self) -> str:
        """Return the line as the server prints it."""
        raise NotImplementedError


class WorldTriggered(WorldLine, frozen=True):
    """A trigger such as `Round_Start` or `Restart_Round_(4_seconds)`, with the map name if the line has one."""

    trigger: str
    map_name: str | None = None

    def text(self) -> str:
        tail = "" if self.map_name is None else f' on "{self.map_name}"'
        return f'World triggered "{self.trigger}"{tail}'


class RoundEndNotice(WorldLine, frozen=True):
    """A round was decided. The scores are per side and include this round. `side` is None for a draw."""

    side: Side | None
    notice: str
    ct: int
    t: int

    def text(self) -> str:
        who = "World" if self.side is None else f'Team "{self.side}"'
        return f'{who} triggered "SFUI_Notice_{self.notice}" (CT "{self.ct}") (T "{self.t}")'


class TeamScored(WorldLine, frozen=True):
    """The score of a side. The player count in this line is unreliable."""

    side: Side
    score: int
    players: int

    def text(self) -> str:
        return f'Team "{self.side}" scored "{self.score}" with "{self.players}" players'


class TeamPlaying(WorldLine, frozen=True):
    """The name of the team on a side, None if unset. Right after halftime the names are not yet swapped."""

    side: Side
    name: str | None
    is_status: bool

    def text(self) -> str:
        if self.name is None:
            return f'MatchStatus: Team "{self.side}" is unset.'
        return f'{"MatchStatus: " if self.is_status else ""}Team playing "{self.side}": {self.name}'


class MatchScore(WorldLine, frozen=True):
    """The score per side and the number of rounds played, which is -1 in warmup."""

    ct: int
    t: int
    map_name: str
    rounds_played: int

    def text(self) -> str:
        return f'MatchStatus: Score: {self.ct}:{self.t} on map "{self.map_name}" RoundsPlayed: {self.rounds_played}'


class PauseChanged(WorldLine, frozen=True):
    """A pause was enabled or disabled. `by` is the cause: a console command, or a timeout such as `TimeOutTs`."""

    is_enabled: bool
    by: str

    def text(self) -> str:
        return f"Match pause is {'enabled' if self.is_enabled else 'disabled'} - {self.by}"


class MatchUnpaused(WorldLine, frozen=True):
    """Play resumed."""

    def text(self) -> str:
        return "Match unpaused"


class Vote(WorldLine, frozen=True):
    """A vote was started, cast or succeeded; `issue` is `StartTimeOut ` (with a trailing space) for a timeout.

    `option` is the choice of a player who cast a vote. The last part of the token is the player's area on the map.
    """

    step: str
    issue: str
    slot: int
    player: PlayerToken
    area: str
    option: str | None = None

    def text(self) -> str:
        tail = "" if self.option is None else f" {self.option}"
        token = self.player.text()[:-1]
        return f'Vote {self.step} "{self.issue}" from #{self.slot} {token}<{self.area}>"{tail}'


class VoteFailed(WorldLine, frozen=True):
    """A vote failed.

    The line does not name the player who started it. `is_padded` is true if the line ends in a space.
    """

    issue: str
    is_padded: bool = True

    def text(self) -> str:
        return f'Vote failed "{self.issue}"{" " if self.is_padded else ""}'


class FreezeStarted(WorldLine, frozen=True):
    """Freeze time started, before a round."""

    def text(self) -> str:
        return "Starting Freeze period"


class LoadingMap(WorldLine, frozen=True):
    """A map load began."""

    map_name: str

    def text(self) -> str:
        return f'Loading map "{self.map_name}"'


class MapStarted(WorldLine, frozen=True):
    """A map load ended. CS2 prints an empty map name, CS:GO the name and a checksum."""

    map_name: str = ""
    checksum: str | None = None

    def text(self) -> str:
        if self.checksum is None:
            return f'Started:  "{self.map_name}"'
        return f'Started map "{self.map_name}" (CRC "{self.checksum}")'


class CvarsListed(WorldLine, frozen=True):
    """The start or end of the list of console variables."""

    is_start: bool

    def text(self) -> str:
        return f"server cvars {'start' if self.is_start else 'end'}"


class CvarListed(WorldLine, frozen=True):
    """A console variable in the list at map load. The list contains passwords in clear text."""

    name: str
    value: str

    def text(self) -> str:
        return f'"{self.name}" = "{self.value}"'


class CvarChanged(WorldLine, frozen=True):
    """A console variable changed."""

    name: str
    value: str

    def text(self) -> str:
        return f'server_cvar: "{self.name}" "{self.value}"'


class LogFileStarted(WorldLine, frozen=True):
    """A log file was opened."""

    file: str
    game: str
    version: str

    def text(self) -> str:
        return f'Log file started (file "{self.file}") (game "{self.game}") (version "{self.version}")'


class LogFileClosed(WorldLine, frozen=True):
    """A log file was closed."""

    def text(self) -> str:
        return "Log file closed"


class ServerMessage(WorldLine, frozen=True):
    """A server message, such as `quit`."""

    message: str

    def text(self) -> str:
        return f'server_message: "{self.message}"'


class GameOver(WorldLine, frozen=True):
    """The map ended. The map group can be empty. The score is per side, as the sides were at the end of the map."""

    mode: str
    map_group: str
    map_name: str
    ct: int
    t: int
    minutes: int

    def text(self) -> str:
        return (
            f"Game Over: {self.mode} {self.map_group} {self.map_name} score {self.ct}:{self.t} after {self.minutes} min"
        )


class Accolade(WorldLine, frozen=True):
    """An award on the end screen."""

    award: str
    name: str
    user_id: int
    value: str
    place: int
    score: str

    def text(self) -> str:
        return (
            f"ACCOLADE, FINAL: {{{self.award}}},\t{self.name}<{self.user_id}>,\tVALUE: {self.value},"
            f"\tPOS: {self.place},\tSCORE: {self.score}"
        )


class MolotovSpawned(WorldLine, frozen=True):
    """A molotov or incendiary grenade was thrown."""

    position: str
    velocity: str

    def text(self) -> str:
        return f"Molotov projectile spawned at {self.position}, velocity {self.velocity}"


class RconCommand(WorldLine, frozen=True):
    """A command sent over RCON. It may contain secrets: do not store or show it."""

    address: str
    command: str

    def text(self) -> str:
        return f'rcon from "{self.address}": command "{self.command}"'


class ConsoleChat(WorldLine, frozen=True):
    """A chat message of the server console to all players."""

    message: str

    def text(self) -> str:
        return f'"Console<0>" say "{self.message}"'


class StatsMark(WorldLine, frozen=True):
    """A line of the JSON-like statistics block that never varies: its first or last line, `name` or `players`."""

    mark: str

    def text(self) -> str:
        return self.mark


class StatsField(WorldLine, frozen=True):
    """A field in the header of the statistics block: round_number, score_t, score_ct, map, server or fields."""

    name: str
    value: str

    def text(self) -> str:
        return f'"{self.name}" : "{self.value}"' + ("" if self.name == "fields" else ",")


class StatsPlayer(WorldLine, frozen=True):
    """A player's row in the statistics block, with its columns as printed.

    The game's labels are wrong after the 20th column.
    """

    index: int
    columns: str

    def text(self) -> str:
        return f'"player_{self.index}" : "{self.columns}"'


class Unknown(WorldLine, frozen=True):
    """A line that was not recognized. It is counted; it is not an error."""

    content: str

    def text(self) -> str:
        return self.content
