"""Who is on the server? A person as he is, and as he stands in the game: side, health, money, weapons.

A person exists without a server; a Player is one stay of a person on it, under one number.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from matchpod.core.model import Side
from matchpod.cs2.log_lines.player_token import PlayerToken, player_token
from matchpod.cs2.steam_id import format_u, from_account

MAX_HEALTH = 100
START_MONEY = 800

UNASSIGNED = "Unassigned"
SPECTATOR = "Spectator"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with an account. `account` is the N of `[U:1:N]`; 0 is a bot, who has none."""

    name: str
    account: int
    skill: float = 1.0
    """How often he wins a fight: 1 is average, 0.6 weak, 1.5 outstanding."""
    headshots: float = 0.4
    """Which share of his kills with guns are headshots."""
    address: str = "203.0.113.10:27005"
    knife: str = "knife"
    """What `killed` lines call his knife on the CT side; as a Terrorist a plain `knife` is `knife_t`."""
    is_awper: bool = False
    is_cheater: bool = False

    @property
    def is_bot(self) -> bool:
        """True for a bot."""
        return self.account == 0

    @property
    def player_id(self) -> str:
        """His id as callers write it."""
        return f"BOT:{self.name}" if self.is_bot else from_account(self.account)

    @property
    def steam_id(self) -> str:
        """His id as the log writes it."""
        return "BOT" if self.is_bot else format_u(from_account(self.account))


@dataclass(slots=True, eq=False)
class Player:
    """One stay of a person on the server. `team` is the word of the log: a side, Unassigned, Spectator, or nothing."""

    person: Person
    user_id: int
    team: str = ""
    is_in_game: bool = False
    """He has finished loading (`entered the game`)."""
    connected_at_ms: int = 0
    # What he is and has in this round:
    is_alive: bool = False
    health: int = MAX_HEALTH
    armor: int = 0
    has_helmet: bool = False
    has_kit: bool = False
    has_bomb: bool = False
    money: int = START_MONEY
    primary: str = ""
    """Names as `killed` prints them; empty for none."""
    pistol: str = ""
    grenades: list[str] = field(default_factory=list)
    """`hegrenade flashbang smokegrenade molotov incgrenade decoy`"""
    has_taser: bool = False
    position: str = "0 0 0"
    blind_until_ms: int = 0
    _tokens: dict[str, PlayerToken] = field(default_factory=dict)

    @property
    def side(self) -> Side | None:
        """The side he plays on, if he plays."""
        return _SIDES.get(self.team)

    @property
    def is_playing(self) -> bool:
        """True when he has loaded and stands on a side."""
        return self.is_in_game and self.team in _SIDES

    @property
    def token(self) -> PlayerToken:
        """How nearly every line names him."""
        return self.token_as(self.team)

    @property
    def teamless_token(self) -> PlayerToken:
        """How `switched from team` names him."""
        token = self._tokens.get("-")
        if token is None:
            token = player_token(self.person.name, self.user_id, self.person.steam_id, None)
            self._tokens["-"] = token
        return token

    @property
    def money_token(self) -> PlayerToken:
        """How `money change` names him: its number is one too high."""
        key = f"{self.team}$"
        token = self._tokens.get(key)
        if token is None:
            token = player_token(self.person.name, self.user_id + 1, self.person.steam_id, self.team)
            self._tokens[key] = token
        return token

    def token_as(self, team: str) -> PlayerToken:
        """His token with another team word."""
        token = self._tokens.get(team)
        if token is None:
            token = player_token(self.person.name, self.user_id, self.person.steam_id, team)
            self._tokens[team] = token
        return token

    def rename(self, name: str) -> None:
        """Go by another name from now on."""
        self.person = replace(self.person, name=name)
        self._tokens.clear()

    @property
    def knife(self) -> str:
        """His knife as `killed` names it."""
        return "knife_t" if self.person.knife == "knife" and self.team == Side.T else self.person.knife


_SIDES = {Side.CT.value: Side.CT, Side.T.value: Side.T}
