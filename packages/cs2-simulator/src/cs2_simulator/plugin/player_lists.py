"""Keep the lists of players and spectators who may be on the server, as MatchZy's commands change them."""

from __future__ import annotations

from collections.abc import Mapping

TEAM1, TEAM2, SPECTATORS = "team1", "team2", "spec"
LIST_NAMES = (TEAM1, TEAM2, SPECTATORS)
"""The lists, as `matchzy_addplayer` names them."""


class PlayerLists:
    """Three lists: SteamID64 to a forced name, which is empty for the player's own."""

    def __init__(self, lists: Mapping[str, Mapping[str, str]]) -> None:
        self._lists = {name: dict(lists[name]) for name in LIST_NAMES}

    def __getitem__(self, name: str) -> Mapping[str, str]:
        return self._lists[name]

    def copy(self) -> PlayerLists:
        return PlayerLists(self._lists)

    def list_of(self, player_id: str) -> str | None:
        """Return the list that a player is in."""
        return next((name for name in LIST_NAMES if player_id in self._lists[name]), None)

    def add(self, name: str, player_id: str, nick: str) -> bool:
        """Add a player to a list; False if the player is already in one of the lists. The id is not checked."""
        if self.list_of(player_id) is not None:
            return False
        self._lists[name][player_id] = nick
        return True

    def remove(self, player_id: str) -> None:
        """Remove a player from the list of team1. A bug of MatchZy: it stops after the first list."""
        self._lists[TEAM1].pop(player_id, None)
