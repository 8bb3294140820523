"""Name the teams on a server: as the match plugin shows them, which is also safe in a file name, or without it.

The plugin builds the names of demos, backups and statistics from team names. What it is given must not lead out of its
folders, whatever its version removes from a name itself. Callers get their names back unchanged.
"""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.core.model import GameSettings

_KEPT = frozenset("0123456789 _-")

_LAST_CHARACTER = "\uffff"
"""The plugin reads UTF-16: it takes a letter beyond this for two characters, neither of which is a letter."""

_UNNAMED = {Team.TEAM1: "Team 1", Team.TEAM2: "Team 2"}


def plain_name(name: str) -> str:
    """Return the letters, digits, spaces, `_` and `-` of a name; the plugin shows no others."""
    kept = (char for char in name if (char.isalpha() and char <= _LAST_CHARACTER) or char in _KEPT)
    return "".join(kept).strip()


def plugin_name(team: Team, name: str) -> str:
    """Return the name of a team for the plugin, which is never empty."""
    return plain_name(name) or _UNNAMED[team]


def shown_name(settings: GameSettings, team: Team) -> str:
    """Return the name of a team on a server without the plugin; empty if the match has no teams.

    A match with given sides has teams even if the caller did not name them: the names show players where they play.
    """
    roster = settings.team1 if team is Team.TEAM1 else settings.team2
    if roster is not None:
        return roster.name
    return _UNNAMED[team] if settings.sides else ""
