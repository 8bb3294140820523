"""Convert team names for game servers, with and without the match plugin.

The plugin builds the file names of demos, backups and statistics from team names. The names that it gets must not
contain characters that lead out of its folders, because versions differ in the characters that they remove. Callers get
their names back unchanged.
"""

from __future__ import annotations

from cs2_protocol.game import Team
from matchpod.core.model import GameSettings

_KEPT = frozenset("0123456789 _-")

_LAST_CHARACTER = "\uffff"
"""The last character of the BMP. The plugin checks each UTF-16 code unit of a name. A letter beyond the BMP is a pair
of surrogates there, which do not count as letters."""

_UNNAMED = {Team.TEAM1: "Team 1", Team.TEAM2: "Team 2"}


def plain_name(name: str) -> str:
    """Return the letters, digits, spaces, `_` and `-` of a name. The plugin shows no other characters."""
    kept = (char for char in name if (char.isalpha() and char <= _LAST_CHARACTER) or char in _KEPT)
    return "".join(kept).strip()


def plugin_name(team: Team, name: str) -> str:
    """Return the name of a team for the plugin. It is never empty."""
    return plain_name(name) or _UNNAMED[team]


def shown_name(settings: GameSettings, team: Team) -> str:
    """Return the name of a team on a server without the plugin; empty if the match has no teams.

    If a match has sides, both teams have names even if the caller set none, so that players can see their sides.
    """
    roster = settings.team1 if team is Team.TEAM1 else settings.team2
    if roster is not None:
        return roster.name
    return _UNNAMED[team] if settings.sides else ""
