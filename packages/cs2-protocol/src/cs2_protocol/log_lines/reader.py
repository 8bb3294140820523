"""Parse a log line into a typed value: the prefix, then the player token, then the verb, then the rest.

A player name or chat text can imitate other lines, so a line may be parsed in several ways (readings). If exactly one
reading starts with a known player, it is used. If no reading does, the only reading is used and its player becomes
known, unless the line may be a console variable or console chat. All other lines are Unknown. An ambiguous `connected`
line is Unknown too, since the name of a new player could imitate a line about another player. Chat ends in a quote, so
it cannot imitate `entered the game` or `STEAM USERID validated`: these lines make every player known, and chat cannot
add a player who does not exist.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec

from cs2_protocol.log_clock import parse_stamp
from cs2_protocol.log_lines.player_grammar import read_rest
from cs2_protocol.log_lines.player_lines import (
    Assisted,
    Attacked,
    BlindedBy,
    ChangedName,
    Chat,
    Connected,
    Disconnected,
    Killed,
    PlayerLogLine,
)
from cs2_protocol.log_lines.player_token import TOKEN_END, KnownPlayers, PlayerToken, player_token
from cs2_protocol.log_lines.world_grammar import read_quoted, read_world
from cs2_protocol.log_lines.world_lines import ConsoleChat, CvarListed, Unknown, WorldLine

Line = PlayerLogLine | WorldLine

MAX_LINE_CHARS = 4000
"""Maximum length of a line that is parsed. A longer line is Unknown. Two names of 128 bytes and a chat message of 256
bytes fit."""

MAX_READINGS = 64
"""Maximum number of possible ends of a player token tried per line. A name of 127 bytes can contain at most 18 fake
ends, so the real end is always tried."""

_PREFIX = re.compile(r"(?:L )?(\d\d/\d\d/\d{4} - \d\d:\d\d:\d\d(?:\.\d{3})?)(?:: | - )", re.ASCII)
_SECONDS = re.compile(r"([0-5]\d)(?:\.(\d{3}))?(?:: | - )", re.ASCII)

# Number of player tokens in each kind of line that contains free text, or a second name that is not at its end. A line
# with more tokens is ambiguous. In all other kinds of line, no token can be hidden.
_TOKENS_IN: dict[type, int] = {
    Attacked: 2, Killed: 2, BlindedBy: 2, Assisted: 1, Chat: 1, ChangedName: 1, Disconnected: 1,
}  # fmt: skip


class LineReader(msgspec.Struct):
    """Reads the lines of one server in order. Keeps the known players, and the last prefix, which most lines repeat."""

    known: KnownPlayers = msgspec.field(default_factory=KnownPlayers)
    last_prefix: str = "\n"  # initial value that no line starts with
    last_ms: int = 0

    def read(self, raw: bytes) -> tuple[int | None, Line]:
        """Return the server's time in milliseconds (None without a time stamp) and the parsed line."""
        text = raw.decode("utf-8", "replace")
        if not text.startswith(self.last_prefix) and not self._read_prefix(text):
            return None, Unknown(text)
        return self.last_ms, self.parse(text[len(self.last_prefix) :])

    def _read_prefix(self, text: str) -> bool:
        """Parse a new time stamp; return False if there is none.

        Only the seconds are parsed if the minute has not changed.
        """
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

    def parse(self, text: str) -> Line:
        """Parse a line without its prefix."""
        if len(text) > MAX_LINE_CHARS:
            return Unknown(text)
        if text[:1] != '"':
            return read_world(text) or Unknown(text)
        end = text.find('>" ')
        if end < 0:
            return read_quoted(text) or Unknown(text)
        player = self.known.tokens.get(text[1 : end + 1])
        if player is not None:
            line = read_rest(player, text[end + 3 :], self.known)
            if line is not None:
                expected = _TOKENS_IN.get(type(line))
                if expected is None:
                    return line
                if text.count('>" ') <= expected:
                    return self._learn_new_name(line)
        return self._disambiguate(text)

    def _disambiguate(self, text: str) -> Line:
        """Choose among the readings of a line whose first token is unknown, or that contains too many tokens."""
        readings: list[tuple[PlayerToken, PlayerLogLine]] = []
        for found in islice(TOKEN_END.finditer(text), MAX_READINGS):
            player = self.known.token(text[1 : found.start()], int(found[1]), found[2], found[3])
            line = read_rest(player, text[found.end() :], self.known)
            if line is not None:
                readings.append((player, line))
        known = [reading for reading in readings if self.known.knows(reading[0])]
        if not known:
            other = read_quoted(text)
            if not readings or isinstance(other, ConsoleChat | CvarListed):
                return other or Unknown(text)
        choice = known or readings
        if len(choice) != 1 or (len(readings) > 1 and isinstance(readings[-1][1], Connected)):
            return Unknown(text)
        player, line = choice[0]
        self.known.learn(player)
        return self._learn_new_name(line)

    def _learn_new_name(self, line: PlayerLogLine) -> PlayerLogLine:
        """If the line is a name change, remember the new name, which the next lines use."""
        if isinstance(line, ChangedName):
            player = line.player
            self.known.learn(player_token(line.new_name, player.user_id, player.steam_id, player.team))
        return line
