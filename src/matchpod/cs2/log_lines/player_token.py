"""Parse and format player tokens, `NAME<USERID><STEAMID><TEAM>`, and keep the tokens that are known.

The name is untrusted free text: it may contain quotes, angle brackets or whole log lines. Only the end of a token is
written by the server itself. So a line can have several readings. A token from a line with a single reading becomes
known, and known tokens decide between the readings of later lines.
"""

from __future__ import annotations

import re

import msgspec

from matchpod.core.model import PlayerId, Side
from matchpod.cs2.steam_id import to_id64

MAX_KNOWN_TOKENS = 4096
"""Most tokens kept: players times teams times renames in the life of a server. When full, all are dropped."""

TEAMS = ("CT", "TERRORIST", "Unassigned", "Spectator", "")

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
    def identity(self) -> str:
        """The token without its team, which is the same on every side."""
        return f"{self.name}<{self.user_id}><{self.steam_id}>"

    def text(self) -> str:
        """Return the token as the server prints it, including quotes."""
        if self.team is None:
            return f'"{self.identity}"'
        return f'"{self.name}<{self.user_id}><{self.steam_id}><{self.team}>"'


def player_token(name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
    """Create a token and derive its player id and side."""
    return PlayerToken(name, user_id, steam_id, team, _player_id(name, steam_id), _SIDES.get(team or ""))


_SIDES = {"CT": Side.CT, "TERRORIST": Side.T}


def _player_id(name: str, steam_id: str) -> PlayerId:
    if steam_id == "BOT":
        return f"BOT:{name}"
    return to_id64(steam_id) or ""


class KnownPlayers(msgspec.Struct):
    """The tokens seen so far, which are looked up before the verb of a line is parsed."""

    tokens: dict[str, PlayerToken] = {}
    identities: set[str] = set()
    ids: dict[str, PlayerId] = {}
    """Player ids by `name<userid>`, because some lines print the Steam id as pending."""
    second_tokens: dict[str, PlayerToken] = {}
    """Cache of the second players of lines; being named there does not make a token known."""

    def knows(self, token: PlayerToken) -> bool:
        """True if this name, number and id were seen together, on any side."""
        return token.identity in self.identities

    def learn(self, token: PlayerToken) -> None:
        """Add a token from a line with a single reading."""
        if len(self.tokens) >= MAX_KNOWN_TOKENS:
            self.tokens.clear()
            self.identities.clear()
            self.ids.clear()
        if token.player_id:
            self.ids[f"{token.name}<{token.user_id}>"] = token.player_id
        self.identities.add(token.identity)
        self.tokens[token.text()[1:-1]] = token

    def token(self, name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
        """Create a token; a pending id is replaced by the id last seen with this name and number."""
        token = player_token(name, user_id, steam_id, team)
        if not token.player_id and (player_id := self.ids.get(f"{name}<{user_id}>")):
            return msgspec.structs.replace(token, player_id=player_id)
        return token

    def second_token(self, text: str, first: PlayerToken) -> PlayerToken | None:
        """Return the second player of a line, given the text between the quotes.

        CS2 prints an empty or garbage id for a self-inflicted hit or flash: the same name and number mean `first`.
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
                if len(self.second_tokens) >= MAX_KNOWN_TOKENS:
                    self.second_tokens.clear()
                self.second_tokens[text] = token
                return token
        return first if is_like_first else token
