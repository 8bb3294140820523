"""Parse and format player tokens, `NAME<USERID><STEAMID><TEAM>`, and keep the tokens that are known.

The name is untrusted free text: it may contain quotes, angle brackets or whole log lines. Only the end of a token is
written by the server itself. So a line can have several readings. A player from a line with a single reading becomes
known by that name, and known players decide between the readings of later lines.
"""

from __future__ import annotations

import re

import msgspec

from cs2_protocol.game import PlayerId, Side
from cs2_protocol.steam_id import to_id64

MAX_KNOWN_PLAYERS = 512
"""Maximum number of known players, far more than join one server. When full, the oldest entry is dropped."""

MAX_SECOND_TOKENS = 4096
"""Maximum number of cached second players. When the cache is full, it is cleared."""

MAX_NAME_CHARS = 256
"""Maximum length of the name of a known player, and of a bot's name in its id. Real names have at most 127 bytes."""

TEAMS = ("CT", "TERRORIST", "Unassigned", "Spectator", "")

_PENDING_IDS = frozenset(("STEAM_ID_PENDING", "<none>"))
"""Printed for a person or a bot whose entity is being removed. Five real logs have 19 such lines, all of players who
had left."""

# A dying bot entity is printed as `<<none>>`, and a self-inflicted hit with a garbage id: both are token ends.
TOKEN_END = re.compile(r'<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?" ')
_WHOLE_TOKEN = re.compile(r"(.*)<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?", re.DOTALL)


class PlayerToken(msgspec.Struct, frozen=True, gc=False):
    """A player as named in a line. Create it with `player_token`, which fills the last two fields.

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
        """True if the server printed no id, as it does for a player who has left, even minutes later."""
        return self.steam_id in _PENDING_IDS

    @property
    def identity(self) -> str:
        """The part that stays the same when the player changes sides or names."""
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
"""Team text and side, by the team of a token. All tokens share these texts, to save memory."""


def _player_id(name: str, steam_id: str) -> PlayerId:
    if steam_id == "BOT":
        return f"BOT:{name[:MAX_NAME_CHARS]}"
    return to_id64(steam_id) or ""


def _sharing(token: PlayerToken, latest: PlayerToken) -> PlayerToken:
    """Return a token that shares its texts with an earlier token of the same player and name, to save memory."""
    player_id = latest.player_id if latest.player_id == token.player_id else token.player_id
    return PlayerToken(latest.name, token.user_id, latest.steam_id, token.team, player_id, token.side)


class KnownPlayers(msgspec.Struct):
    """The players seen so far, each under their latest name only, because others may imitate an earlier name."""

    players: dict[str, PlayerToken] = {}
    """The latest token of each player, by identity."""
    tokens: dict[str, PlayerToken] = {}
    """The tokens of known players on each side, by their text; looked up before the verb of a line is parsed."""
    ids: dict[str, PlayerId] = {}
    """Player ids by `name<userid>`, because some lines print the Steam id as pending."""
    second_tokens: dict[str, PlayerToken] = {}
    """Cache of the second players of lines; being named there does not make a token known."""

    def knows(self, token: PlayerToken) -> bool:
        """True if this is the latest name of a known player, on any side."""
        latest = self.players.get(token.identity)
        return latest is not None and latest.name == token.name

    def learn(self, token: PlayerToken) -> None:
        """Add a player, or a known player's new name, from a line with a single reading."""
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
        """Create a token; a pending id is replaced with the id last seen with this name and user id."""
        token = player_token(name, user_id, steam_id, team)
        if not token.player_id and (player_id := self.ids.get(f"{name}<{user_id}>")):
            return msgspec.structs.replace(token, player_id=player_id)
        return token

    def second_token(self, text: str, first: PlayerToken) -> PlayerToken | None:
        """Return the second player of a line, given the text between the quotes.

        CS2 prints an empty or garbage id for a self-inflicted hit or flash, so the name and user id of `first` are
        enough to identify it.
        """
        token = self.tokens.get(text) or self.second_tokens.get(text)
        if token is not None:
            return token
        found = _WHOLE_TOKEN.fullmatch(text)
        is_like_first = text.startswith(f"{first.name}<{first.user_id}><")
        if found is not None:
            token = self.token(found[1], int(found[2]), found[3], found[4])
            if '"' in token.name and not self.knows(token) and not is_like_first:
                return None  # part of another line, not a name: a player with such a name would be known
            if token.player_id:
                if '"' in token.name or len(token.name) > MAX_NAME_CHARS:
                    return token  # not cached: a name with quotes is valid only while it is the latest
                if len(self.second_tokens) >= MAX_SECOND_TOKENS:
                    self.second_tokens.clear()
                latest = self.players.get(token.identity)
                if latest is not None and latest.name == token.name:
                    token = _sharing(token, latest)
                self.second_tokens[text] = token
                return token
        return first if is_like_first else token
