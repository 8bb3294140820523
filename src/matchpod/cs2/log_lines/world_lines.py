"""What did the server say by itself? Values of the lines that name no player first, each with how it is written."""

from __future__ import annotations

import msgspec

from matchpod.core.model import Side


class WorldLine(msgspec.Struct, frozen=True, gc=False):
    """A line of the server's own."""

    def text(self) -> str:
        """The line as the server prints it."""
        raise NotImplementedError


class WorldTriggered(WorldLine, frozen=True):
    """`Round_Start`, `Warmup_End`, `Restart_Round_(4_seconds)` and their kind; `map_name` where the line has one."""

    trigger: str
    map_name: str | None = None

    def text(self) -> str:
        tail = "" if self.map_name is None else f' on "{self.map_name}"'
        return f'World triggered "{self.trigger}"{tail}'


class Notice(WorldLine, frozen=True):
    """A round was decided; scores are by side and already count it. `side` None is a draw."""

    side: Side | None
    notice: str
    ct: int
    t: int

    def text(self) -> str:
        who = "World" if self.side is None else f'Team "{self.side}"'
        return f'{who} triggered "SFUI_Notice_{self.notice}" (CT "{self.ct}") (T "{self.t}")'


class TeamScored(WorldLine, frozen=True):
    """A side's score; its player count is unreliable."""

    side: Side
    score: int
    players: int

    def text(self) -> str:
        return f'Team "{self.side}" scored "{self.score}" with "{self.players}" players'


class TeamPlaying(WorldLine, frozen=True):
    """The name of the team on a side; None where it is unset. Right after halftime the names are still the old ones."""

    side: Side
    name: str | None
    is_status: bool

    def text(self) -> str:
        if self.name is None:
            return f'MatchStatus: Team "{self.side}" is unset.'
        return f'{"MatchStatus: " if self.is_status else ""}Team playing "{self.side}": {self.name}'


class MatchScore(WorldLine, frozen=True):
    """The score by side and the rounds played, -1 in warmup."""

    ct: int
    t: int
    map_name: str
    rounds_played: int

    def text(self) -> str:
        return f'MatchStatus: Score: {self.ct}:{self.t} on map "{self.map_name}" RoundsPlayed: {self.rounds_played}'


class PauseChanged(WorldLine, frozen=True):
    """A pause was switched on or off, and by which command."""

    is_enabled: bool
    by: str

    def text(self) -> str:
        return f"Match pause is {'enabled' if self.is_enabled else 'disabled'} - {self.by}"


class MatchUnpaused(WorldLine, frozen=True):
    """Play goes on."""

    def text(self) -> str:
        return "Match unpaused"


class FreezeStarted(WorldLine, frozen=True):
    """The freeze time before a round."""

    def text(self) -> str:
        return "Starting Freeze period"


class LoadingMap(WorldLine, frozen=True):
    """A map load begins."""

    map_name: str

    def text(self) -> str:
        return f'Loading map "{self.map_name}"'


class MapStarted(WorldLine, frozen=True):
    """A map load ended. CS2 prints no name here, CS:GO the name and a checksum."""

    map_name: str = ""
    checksum: str | None = None

    def text(self) -> str:
        if self.checksum is None:
            return f'Started:  "{self.map_name}"'
        return f'Started map "{self.map_name}" (CRC "{self.checksum}")'


class CvarsListed(WorldLine, frozen=True):
    """The list of console variables begins or ends."""

    is_start: bool

    def text(self) -> str:
        return f"server cvars {'start' if self.is_start else 'end'}"


class CvarListed(WorldLine, frozen=True):
    """A console variable in the list at map load. Passwords stand here in clear."""

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
    """A message of the server itself, such as `quit`."""

    message: str

    def text(self) -> str:
        return f'server_message: "{self.message}"'


class GameOver(WorldLine, frozen=True):
    """The map ended. The map group can be empty; the score is by side as the sides stand at the end."""

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
    """An award of the end screen."""

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
    """A fire bomb is in the air."""

    position: str
    velocity: str

    def text(self) -> str:
        return f"Molotov projectile spawned at {self.position}, velocity {self.velocity}"


class RconCommand(WorldLine, frozen=True):
    """Somebody's console command, secrets and all: never store it, never show it."""

    address: str
    command: str

    def text(self) -> str:
        return f'rcon from "{self.address}": command "{self.command}"'


class ConsoleChat(WorldLine, frozen=True):
    """The server console wrote to all."""

    said: str

    def text(self) -> str:
        return f'"Console<0>" say "{self.said}"'


class StatsMark(WorldLine, frozen=True):
    """A fixed line of the statistics block: its begin, its name, its player list, its end."""

    mark: str

    def text(self) -> str:
        return self.mark


class StatsField(WorldLine, frozen=True):
    """A named value in the head of the block: round_number, score_t, score_ct, map, server, fields."""

    name: str
    value: str

    def text(self) -> str:
        return f'"{self.name}" : "{self.value}"' + ("" if self.name == "fields" else ",")


class StatsPlayer(WorldLine, frozen=True):
    """A player's row of the block, its columns as printed. Labels past column 20 are wrong in the game itself."""

    index: int
    columns: str

    def text(self) -> str:
        return f'"player_{self.index}" : "{self.columns}"'


class Unknown(WorldLine, frozen=True):
    """A line of no kind we know; counted, never an error."""

    said: str

    def text(self) -> str:
        return self.said
