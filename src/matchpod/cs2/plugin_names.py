"""Reduce team names to what the match plugin makes of them, which is also safe in a file name.

The plugin builds the names of demos, backups and statistics from team names. What it is given must not lead out of its
folders, whatever its version removes from a name itself. Callers get their names back unchanged.
"""

from __future__ import annotations

from matchpod.core.model import Team

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
