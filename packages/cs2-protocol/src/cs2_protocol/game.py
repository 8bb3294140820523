"""Define the types that all modules of the protocol share: players, sides, teams and reasons of round ends.

A player is identified by the 64-bit Steam id as a decimal string, a bot by an id of the form `BOT:name`.
"""

from __future__ import annotations

from enum import StrEnum

PlayerId = str


class Team(StrEnum):
    """One of the two teams of a match. A team remains the same through halves and overtime, while its side changes."""

    TEAM1 = "team1"
    TEAM2 = "team2"

    @property
    def other(self) -> Team:
        """The opposing team."""
        return Team.TEAM2 if self is Team.TEAM1 else Team.TEAM1


class Side(StrEnum):
    """The side a team currently plays on. The values are those of the server log."""

    CT = "CT"
    T = "TERRORIST"

    @property
    def other(self) -> Side:
        """The opposing side."""
        return Side.T if self is Side.CT else Side.CT


class RoundEndReason(StrEnum):
    """How a round was decided. The values are the server's notices without the prefix `SFUI_Notice_`."""

    CTS_WIN = "CTs_Win"
    TERRORISTS_WIN = "Terrorists_Win"
    TARGET_BOMBED = "Target_Bombed"
    BOMB_DEFUSED = "Bomb_Defused"
    TARGET_SAVED = "Target_Saved"
    HOSTAGES_RESCUED = "All_Hostages_Rescued"
    HOSTAGES_NOT_RESCUED = "Hostages_Not_Rescued"
    CTS_SURRENDER = "CTs_Surrender"
    TERRORISTS_SURRENDER = "Terrorists_Surrender"
    DRAW = "Round_Draw"
    UNKNOWN = "unknown"


def is_human(player_id: PlayerId) -> bool:
    """True if an id is the 64-bit Steam id of a player.

    Bots have other ids, and the log may print garbage instead of an id.
    """
    return player_id.isdigit()
