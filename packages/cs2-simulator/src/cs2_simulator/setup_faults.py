"""Define mistakes in the setup of a server, with descriptions. They are independent of the scenario."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class SetupFault(StrEnum):
    """Values of `--fault`, with descriptions."""

    description: str

    def __new__(cls, value: str, description: str) -> Self:
        """Create a member from its value and description."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    RCON_OFF = "rcon_off", "started without -usercon: the port refuses RCON, and the game answers queries over UDP"
    CONSOLE_SILENT = "console_silent", "RCON accepts connections and never answers"
    CONSOLE_SLOW = "console_slow", "the console takes 0.8 seconds to answer"
    METAMOD_MISSING = (
        "metamod_missing",
        "an update of the game has replaced gameinfo.gi: no Metamod, and none of the plugins",
    )
    CSS_FAILED = "css_failed", "Metamod is loaded, but failed to load CounterStrikeSharp"
    MATCHZY_MISSING = "matchzy_missing", "CounterStrikeSharp is loaded, but MatchZy is not installed"
    OLD_BUILD = "old_build", "the game is an old build"
    NO_LOGIN_TOKEN = "no_login_token", "started without a game server login token"
    WRONG_CLOCK = "wrong_clock", "the clock of the machine is seven minutes behind"
    LOG_REFUSED = "log_refused", "the connection for each log post is refused"
    LOG_UNREACHABLE = "log_unreachable", "log posts are lost on their way, without an answer"
    LOG_NOT_KEPT = "log_not_kept", "log addresses are accepted without an error, and not kept"
    HIBERNATES = (
        "hibernates",
        "the server posts no log while it is empty, unless sv_hibernate_when_empty is 0",
    )

    @property
    def has_metamod(self) -> bool:
        return self is not SetupFault.METAMOD_MISSING

    @property
    def has_css(self) -> bool:
        return self not in (SetupFault.METAMOD_MISSING, SetupFault.CSS_FAILED)

    @property
    def has_matchzy(self) -> bool:
        return self.has_css and self is not SetupFault.MATCHZY_MISSING
