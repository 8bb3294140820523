"""Who is named in a line? The token `NAME<USERID><STEAMID><TEAM>`, read and written, and the players already met.

The name is free text and hostile: it may hold quotes, angle brackets, whole log lines. Only the end of a token is the
server's own writing. So a line can have several readings, and a token met in a line that has only one reading is kept
as known, which tells the readings of later lines apart.
"""

from __future__ import annotations

import re

import msgspec

from matchpod.core.model import PlayerId, Side
from matchpod.cs2.steam_id import to_id64

MAX_KNOWN_TOKENS = 4096
"""Players times teams times renames of one server life; past it we start to learn anew rather than grow."""

TEAMS = ("CT", "TERRORIST", "Unassigned", "Spectator", "")

# `<<none>>` is printed for a dying bot entity, and garbage for a player who hits himself: both are token ends.
TOKEN_END = re.compile(r'<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?" ')
_WHOLE_TOKEN = re.compile(r"(.*)<(\d{1,10})><(<none>|[^<>]*)>(?:<(CT|TERRORIST|Unassigned|Spectator|)>)?", re.DOTALL)


class PlayerToken(msgspec.Struct, frozen=True, gc=False):
    """A player as one line names him. Make it with `player_token`, which fills the last two fields.

    `team` is None where the line has no team part at all. `player_id` is "" where the id is pending, empty or garbage.
    """

    name: str
    user_id: int
    steam_id: str
    team: str | None
    player_id: PlayerId
    side: Side | None

    @property
    def base(self) -> str:
        """The token without its team: the same for one player whatever side he is on."""
        return f"{self.name}<{self.user_id}><{self.steam_id}>"

    def text(self) -> str:
        """The token as the server prints it, quotes included."""
        if self.team is None:
            return f'"{self.base}"'
        return f'"{self.name}<{self.user_id}><{self.steam_id}><{self.team}>"'


def player_token(name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
    """The token with its player id and side worked out."""
    return PlayerToken(name, user_id, steam_id, team, _player_id(name, steam_id), _SIDES.get(team or ""))


_SIDES = {"CT": Side.CT, "TERRORIST": Side.T}


def _player_id(name: str, steam_id: str) -> PlayerId:
    if steam_id == "BOT":
        return f"BOT:{name}"
    return to_id64(steam_id) or ""


class KnownPlayers(msgspec.Struct):
    """The tokens met so far. Reading a line looks here before it looks at the verb."""

    tokens: dict[str, PlayerToken] = {}
    bases: set[str] = set()
    ids: dict[str, PlayerId] = {}
    """Player ids by `name<userid>`: some lines print the Steam id as pending."""
    seconds: dict[str, PlayerToken] = {}
    """Tokens read in second place, to save time only: being named there makes nobody known."""

    def knows(self, token: PlayerToken) -> bool:
        """True if this name, number and id were met together, on any side."""
        return token.base in self.bases

    def learn(self, token: PlayerToken) -> None:
        """Keep a token that a line with a single reading named."""
        if len(self.tokens) >= MAX_KNOWN_TOKENS:
            self.tokens.clear()
            self.bases.clear()
            self.ids.clear()
        if token.player_id:
            self.ids[f"{token.name}<{token.user_id}>"] = token.player_id
        self.bases.add(token.base)
        self.tokens[token.text()[1:-1]] = token

    def token(self, name: str, user_id: int, steam_id: str, team: str | None) -> PlayerToken:
        """The token of these parts; a pending id is that of the player last met under this name and number."""
        token = player_token(name, user_id, steam_id, team)
        if not token.player_id and (player_id := self.ids.get(f"{name}<{user_id}>")):
            return msgspec.structs.replace(token, player_id=player_id)
        return token

    def second(self, text: str, first: PlayerToken) -> PlayerToken | None:
        """The other player of a line, from the text between his quotes.

        CS2 prints an empty or garbage id where a player hits or blinds himself: the same name and number mean `first`.
        """
        token = self.tokens.get(text) or self.seconds.get(text)
        if token is not None:
            return token
        found = _WHOLE_TOKEN.fullmatch(text)
        is_like_first = text.startswith(f"{first.name}<{first.user_id}><")
        if found is not None:
            token = self.token(found[1], int(found[2]), found[3], found[4])
            if '"' in token.name and not self.knows(token) and not is_like_first:
                return None  # part of another line rather than a name: whoever has such a name was introduced
            if token.player_id:
                if len(self.seconds) >= MAX_KNOWN_TOKENS:
                    self.seconds.clear()
                self.seconds[text] = token
                return token
        return first if is_like_first else token
