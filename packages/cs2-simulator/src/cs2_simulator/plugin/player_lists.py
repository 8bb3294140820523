"""Store the lists of players and spectators who may be on the server, and change them as MatchZy's commands do."""

from __future__ import annotations

from collections.abc import Mapping

TEAM1, TEAM2, SPECTATORS = "team1", "team2", "spec"
LIST_NAMES = (TEAM1, TEAM2, SPECTATORS)
"""Names of the lists in the command `matchzy_addplayer`."""


class PlayerLists:
    """Three lists, each from SteamID64 to the forced name. An empty text keeps the player's own name."""

    def __init__(self, lists: Mapping[str, Mapping[str, str]]) -> None:
        self._lists = {name: dict(lists[name]) for name in LIST_NAMES}

    def __getitem__(self, name: str) -> Mapping[str, str]:
        return self._lists[name]

    def copy(self) -> PlayerLists:
        return PlayerLists(self._lists)

    def list_of(self, player_id: str) -> str | None:
        """Return the name of the list that contains a player; None if no list does."""
        return next((name for name in LIST_NAMES if player_id in self._lists[name]), None)

    def add(self, name: str, player_id: str, nick: str) -> bool:
        """Add a player to a list; return False if any list already contains the player. The id is not validated."""
        if self.list_of(player_id) is not None:
            return False
        self._lists[name][player_id] = nick
        return True

    def remove(self, player_id: str) -> None:
        """Remove a player, but only from the list of team1: a bug of MatchZy, which stops after its first list."""
        self._lists[TEAM1].pop(player_id, None)
