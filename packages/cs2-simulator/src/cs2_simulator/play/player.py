"""Define participants, who exist without a server, and players: a participant while connected to the server."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from cs2_protocol.game import Side
from cs2_protocol.log_lines.player_token import PlayerToken, player_token
from cs2_protocol.steam_id import format_steam3, from_account

MAX_HEALTH = 100
START_MONEY = 800

UNASSIGNED = "Unassigned"
PENDING_ID = "STEAM_ID_PENDING"
"""The Steam id that CS2 logs for a player who has left."""

NO_ID = "<none>"
"""The Steam id that CS2 logs for a bot that has left: `"Wolf<3><<none>><TERRORIST>"`."""

SPECTATOR = "Spectator"


@dataclass(frozen=True, slots=True)
class Participant:
    """A person or bot. `account` is the number N of `[U:1:N]`; it is 0 for a bot, which has no account."""

    name: str
    account: int
    skill: float = 1.0
    """Weight in fights: 1 is an average player, 0.6 a weak one, 1.5 an outstanding one."""
    headshots: float = 0.4
    """Share of gun kills that are headshots."""
    address: str = "203.0.113.10:27005"
    knife: str = "knife"
    """Name of the knife in `killed` lines, on the CT side. A plain `knife` is `knife_t` on the T side."""
    is_awper: bool = False
    is_cheater: bool = False

    @property
    def is_bot(self) -> bool:
        return self.account == 0

    @property
    def player_id(self) -> str:
        """The player id that `cs2_protocol` uses for this participant."""
        return f"BOT:{self.name}" if self.is_bot else from_account(self.account)

    @property
    def steam_id(self) -> str:
        return "BOT" if self.is_bot else format_steam3(from_account(self.account))


@dataclass(slots=True, eq=False)
class Player:
    """A participant on the server, under one user id.

    `team` is as in the log: a side, Unassigned, Spectator, or empty.
    """

    person: Participant
    user_id: int
    team: str = ""
    is_in_game: bool = False
    """True once the player has loaded the map (`entered the game`)."""
    connected_at_ms: int = 0
    has_left: bool = False
    """True from the end of the tick in which the player disconnected. The log then no longer contains their Steam
    id."""
    kept_team: str = ""
    """The team that a returning player had before. Empty once they have loaded the map."""
    is_coach: bool = False
    """True for a player on a side who takes no part in the rounds."""
    died_leaving: bool = False
    """True if the player died by leaving the server. Reset at the end of that round."""
    # State in the current round:
    is_alive: bool = False
    is_in_buy_zone: bool = False
    health: int = MAX_HEALTH
    armor: int = 0
    has_helmet: bool = False
    has_kit: bool = False
    has_bomb: bool = False
    money: int = START_MONEY
    primary: str = ""
    """Name of the primary weapon in `killed` lines; empty if there is none."""
    pistol: str = ""
    grenades: list[str] = field(default_factory=list)
    """The grenades by name: `hegrenade flashbang smokegrenade molotov incgrenade decoy`."""
    has_taser: bool = False
    position: str = "0 0 0"
    blind_until_ms: int = 0
    fired: tuple[str, int] = ("", 0)
    """The gun that was fired last, and the time (by the clock of the round) from which it can fire again."""
    _tokens: dict[tuple[str | None, int], PlayerToken] = field(default_factory=dict)

    @property
    def side(self) -> Side | None:
        """The side of the player; None for spectators and unassigned players."""
        return _SIDES.get(self.team)

    @property
    def is_playing(self) -> bool:
        return self.is_in_game and self.team in _SIDES

    @property
    def token(self) -> PlayerToken:
        """The player token that nearly all log lines contain."""
        return self._token_as(self.team)

    @property
    def teamless_token(self) -> PlayerToken:
        """The player token of `switched from team` lines, which has no team."""
        return self._token_as(None)

    @property
    def money_token(self) -> PlayerToken:
        """The player token of `money change` lines, whose user id is one too high."""
        return self._token_as(self.team, offset=1)

    def _token_as(self, team: str | None, offset: int = 0) -> PlayerToken:
        token = self._tokens.get((team, offset))
        if token is None:
            token = player_token(self.person.name, self.user_id + offset, self._steam_id, team)
            self._tokens[team, offset] = token
        return token

    @property
    def _steam_id(self) -> str:
        if self.has_left:
            return NO_ID if self.person.is_bot else PENDING_ID
        return self.person.steam_id

    def forget_id(self) -> None:
        self.has_left = True
        self._tokens.clear()

    def rename(self, name: str) -> None:
        self.person = replace(self.person, name=name)
        self._tokens.clear()

    @property
    def knife(self) -> str:
        return "knife_t" if self.person.knife == "knife" and self.team == Side.T else self.person.knife


_SIDES = {Side.CT.value: Side.CT, Side.T.value: Side.T}
