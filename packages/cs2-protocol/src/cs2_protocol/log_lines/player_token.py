"""Parse and format player tokens, `NAME<USERID><STEAMID><TEAM>`, and remember the known players.

The name is untrusted free text: it may contain quotes, angle brackets or whole log lines. Only the part after the name
is written by the server itself. So a line may be parsed in several ways (readings), depending on where the name ends. A
line with a single reading makes its player known under that name, and known players decide between the readings of
later lines.
"""

from __future__ import annotations

import re

import msgspec

from cs2_protocol.game import PlayerId, Side
from cs2_protocol.steam_id import to_id64

MAX_KNOWN_PLAYERS = 512
"""Maximum number of known players, far more than join one server. Each further player replaces the oldest entry."""

MAX_SECOND_TOKENS = 4096
"""Maximum number of cached second players (see `second_token`). When the cache is full, it is cleared."""

MAX_NAME_CHARS = 256
"""Maximum length of the name of a known player, and of the name in the id of a bot. Real names have up to 127 bytes."""

TEAMS = ("CT", "TERRORIST", "Unassigned", "Spectator", "")

_PENDING_IDS = frozenset(("STEAM_ID_PENDING", "<none>"))
"""Printed instead of a Steam id while the entity of a player or bot is being removed. Five real logs have 19 such
lines, all about players who had left."""

# A dying bot entity is printed with `<<none>>`, a self-inflicted hit with a garbage id. The pattern accepts both.
TOKEN_END = re.compile(r'<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?" ')
_WHOLE_TOKEN = re.compile(r"(.*)<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?", re.DOTALL)


class PlayerToken(msgspec.Struct, frozen=True, gc=False):
    """The name and ids of a player as printed in a line. `player_token` creates it and derives the last two fields.

    `team` is None if the token has no team part. `player_id` is "" if the id is pending, empty or garbage.
    """

    name: str
    user_id: int
    steam_id: str
    team: str | None
    player_id: PlayerId
    side: Side | None

    @property
    def is_pending(self) -> bool:
        """True if the server printed no Steam id. This happens for players who have left, even minutes later."""
        return self.steam_id in _PENDING_IDS

    @property
    def identity(self) -> str:
        """The user id and Steam id: they stay the same when the player changes sides or names."""
        return f"{self.user_id}><{self.steam_id}"

    def text(self) -> str:
        """Return the token as the server prints it, including quotes."""
        team = "" if self.team is None else f"<{self.team}>"
        return f'"{self.name}<{self.user_id}><{self.steam_id}>{team}"'


def player_token(name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
    """Create a token and derive its player id and side."""
    team, side = _SIDES.get(team, (team, None))
    return PlayerToken(name, user_id, steam_id, team, _player_id(name, steam_id), side)


_SIDES: dict[str | None, tuple[str | None, Side | None]] = {"CT": ("CT", Side.CT), "TERRORIST": ("TERRORIST", Side.T)}
"""Text and side of a team, by the text in a token. All tokens share these string objects, to save memory."""


def _player_id(name: str, steam_id: str) -> PlayerId:
    if steam_id == "BOT":
        return f"BOT:{name[:MAX_NAME_CHARS]}"
    return to_id64(steam_id) or ""


def _sharing(token: PlayerToken, latest: PlayerToken) -> PlayerToken:
    """Return a token that shares its strings with an earlier token of the same player and name, to save memory."""
    player_id = latest.player_id if latest.player_id == token.player_id else token.player_id
    return PlayerToken(latest.name, token.user_id, latest.steam_id, token.team, player_id, token.side)


class KnownPlayers(msgspec.Struct):
    """The players seen so far, each under the latest name only: others may now use an earlier name."""

    players: dict[str, PlayerToken] = {}
    """The latest token of each player, by identity."""
    tokens: dict[str, PlayerToken] = {}
    """The tokens of known players on each side, by their text. They are looked up first, before a line is parsed in
    full."""
    ids: dict[str, PlayerId] = {}
    """Player ids by `name<userid>`, for lines that print the Steam id as pending."""
    second_tokens: dict[str, PlayerToken] = {}
    """Cache of the second players of lines, by the text of their token. These players need not be known."""

    def knows(self, token: PlayerToken) -> bool:
        """True if the token has the latest name of a known player, on any side."""
        latest = self.players.get(token.identity)
        return latest is not None and latest.name == token.name

    def learn(self, token: PlayerToken) -> None:
        """Store a new player, or the new name of a known player, from a line with a single reading."""
        if len(token.name) > MAX_NAME_CHARS:
            return
        identity = token.identity
        latest = self.players.get(identity)
        if latest is not None and latest.name == token.name:
            token = _sharing(token, latest)
        elif latest is not None:
            self._forget(identity)
        elif len(self.players) >= MAX_KNOWN_PLAYERS:
            self._forget(next(iter(self.players)))
        self.players[identity] = token
        if token.player_id:
            self.ids[f"{token.name}<{token.user_id}>"] = token.player_id
        self.tokens[token.text()[1:-1]] = token

    def _forget(self, identity: str) -> None:
        old = self.players.pop(identity)
        self.ids.pop(f"{old.name}<{old.user_id}>", None)
        for team in (*TEAMS, None):
            self.tokens.pop(msgspec.structs.replace(old, team=team).text()[1:-1], None)

    def token(self, name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
        """Create a token. A missing player id is replaced with the id last seen with this name and user id."""
        token = player_token(name, user_id, steam_id, team)
        if not token.player_id and (player_id := self.ids.get(f"{name}<{user_id}>")):
            return msgspec.structs.replace(token, player_id=player_id)
        return token

    def second_token(self, text: str, first: PlayerToken) -> PlayerToken | None:
        """Return the second player of a line, such as the victim, from the text between the quotes.

        For a self-inflicted hit or flash, CS2 prints an empty or garbage id. Then the name and user id are enough to
        recognize `first`, the first player of the line.
        """
        token = self.tokens.get(text) or self.second_tokens.get(text)
        if token is not None:
            return token
        found = _WHOLE_TOKEN.fullmatch(text)
        is_like_first = text.startswith(f"{first.name}<{first.user_id}><")
        if found is not None:
            token = self.token(found[1], int(found[2]), found[3], found[4])
            if '"' in token.name and not self.knows(token) and not is_like_first:
                return None  # not a token but part of a longer text: only names of known players may contain quotes
            if token.player_id:
                if '"' in token.name or len(token.name) > MAX_NAME_CHARS:
                    return token  # not cached: a name with quotes is accepted only while it is the player's latest
                if len(self.second_tokens) >= MAX_SECOND_TOKENS:
                    self.second_tokens.clear()
                latest = self.players.get(token.identity)
                if latest is not None and latest.name == token.name:
                    token = _sharing(token, latest)
                self.second_tokens[text] = token
                return token
        return first if is_like_first else token
