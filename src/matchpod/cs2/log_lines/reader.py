"""Which value is a line? Prefix, then the player token against the players already met, then the verb, then the rest.

A name or a chat text can imitate other lines, so a line may have several readings. A line is what it can only be: of
several readings the one of a known player holds if there is exactly one such, otherwise the line is nobody's, Unknown.
A token becomes known from a line with a single reading. Chat ends in a quote, so it can never pass for `entered the
game` or `STEAM USERID validated`: every player becomes known, and none can be invented.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec

from matchpod.cs2.log_clock import format_stamp, parse_stamp
from matchpod.cs2.log_lines.player_grammar import read_rest
from matchpod.cs2.log_lines.player_lines import (
    Assisted,
    Attacked,
    BlindedBy,
    ChangedName,
    Chat,
    Disconnected,
    Killed,
    PlayerLogLine,
)
from matchpod.cs2.log_lines.player_token import TEAMS, TOKEN_END, KnownPlayers, PlayerToken, player_token
from matchpod.cs2.log_lines.world_grammar import read_quoted, read_world
from matchpod.cs2.log_lines.world_lines import ConsoleChat, Unknown, WorldLine

Line = PlayerLogLine | WorldLine

MAX_PLAYER_LINE = 4096
"""Two names of 128 bytes and a chat text of 256 fit many times over; longer lines are not the server's."""

MAX_READINGS = 64
"""A name of 127 bytes holds 18 token ends at most; the true one is among the first 64."""

_PREFIX = re.compile(r"(?:L )?(\d\d/\d\d/\d{4} - \d\d:\d\d:\d\d(?:\.\d{3})?)(?:: | - )", re.ASCII)
_SECONDS = re.compile(r"([0-5]\d)(?:\.(\d{3}))?(?:: | - )", re.ASCII)

# Lines with free text, or a second name before their end: one token more than this and they are weighed. The grammar
# of all others has no room for a token.
_TOKENS_IN: dict[type, int] = {
    Attacked: 2, Killed: 2, BlindedBy: 2, Assisted: 1, Chat: 1, ChangedName: 1, Disconnected: 1,
}  # fmt: skip


class LineReader(msgspec.Struct):
    """Reads the lines of one server in order; remembers its players, and the last prefix because most repeat."""

    known: KnownPlayers = msgspec.field(default_factory=KnownPlayers)
    last_prefix: str = "\n"  # no line begins with it
    last_ms: int = 0

    def read(self, raw: bytes) -> tuple[int | None, Line]:
        """The server's time in milliseconds (None: no time stamp) and what the line says."""
        text = raw.decode("utf-8", "replace")
        if not text.startswith(self.last_prefix) and not self._see_prefix(text):
            return None, Unknown(text)
        return self.last_ms, self.parse(text[len(self.last_prefix) :])

    def _see_prefix(self, text: str) -> bool:
        """Take another time; mostly one of the same minute as before, of which only the end has to be read."""
        end_of_minute = 21 if text[:1] == "L" else 19
        if text[:end_of_minute] == self.last_prefix[:end_of_minute]:
            found = _SECONDS.match(text, end_of_minute)
            if found is not None:
                self.last_ms += int(found[1]) * 1000 + int(found[2] or 0) - self.last_ms % 60_000
                self.last_prefix = text[: found.end()]
                return True
        found = _PREFIX.match(text)
        at_ms = None if found is None else parse_stamp(found[1])
        if found is None or at_ms is None:
            return False
        self.last_prefix, self.last_ms = found[0], at_ms
        return True

    def parse(self, said: str) -> Line:
        """What a line without its prefix says."""
        if said[:1] != '"':
            return read_world(said) or Unknown(said)
        end = said.find('>" ')
        if end < 0:
            return read_quoted(said) or Unknown(said)
        player = self.known.tokens.get(said[1 : end + 1])
        if player is not None:
            line = read_rest(player, said[end + 3 :], self.known)
            if line is not None:
                expected = _TOKENS_IN.get(type(line))
                if expected is None:
                    return line
                if said.count('>" ') <= expected:
                    return self._heard(line)
        return self._weigh(said)

    def _weigh(self, said: str) -> Line:
        """Choose among the readings of a line whose first token is not known, or that holds too many tokens."""
        if len(said) > MAX_PLAYER_LINE:
            return Unknown(said)
        readings: list[tuple[PlayerToken, PlayerLogLine]] = []
        for found in islice(TOKEN_END.finditer(said), MAX_READINGS):
            player = self.known.token(said[1 : found.start()], int(found[1]), found[2], found[3])
            line = read_rest(player, said[found.end() :], self.known)
            if line is not None:
                readings.append((player, line))
        if len(readings) > 1:
            readings = [reading for reading in readings if self.known.knows(reading[0])]
        elif not readings or not self.known.knows(readings[0][0]):
            other = read_quoted(said)
            if not readings or isinstance(other, ConsoleChat):
                return other or Unknown(said)
        if len(readings) != 1:
            return Unknown(said)
        player, line = readings[0]
        self.known.learn(player)
        return self._heard(line)

    def _heard(self, line: PlayerLogLine) -> PlayerLogLine:
        """Know a renamed player under his new name too: the next line uses it."""
        if isinstance(line, ChangedName):
            for team in TEAMS:
                self.known.learn(player_token(line.new_name, line.player.user_id, line.player.steam_id, team))
        return line


def format_file_line(ms: int, line: Line) -> str:
    """The line as a log file has it, to the second, without its end."""
    return f"L {format_stamp(ms, millis=False)}: {line.text()}"


def format_http_line(ms: int, line: Line) -> str:
    """The line as a log post has it, to the millisecond, without its end."""
    return f"{format_stamp(ms, millis=True)} - {line.text()}"
