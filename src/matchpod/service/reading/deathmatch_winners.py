"""Read from the result of a deathmatch who won it. In other modes, the rows of the maps have the winners."""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.core.model import GameSettings, MatchType, Winner
from matchpod.core.stored.stored_json import StoredReader, UnreadableError


class DeathmatchWinner(msgspec.Struct, frozen=True, kw_only=True):
    """Who won a deathmatch: a player of a free-for-all, or a team. All fields are None if the winner is unknown."""

    steam_id: str | None = None
    name: str | None = None
    """The name of the player, or their SteamID if the log has no name."""
    team: Winner | None = None


class _Player(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    steam_id: str
    name: str = ""


class _Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    winner_steam_id: str | None = None
    winner_team: Winner | None = None
    players: tuple[_Player, ...] = ()


_RESULT: Final = StoredReader[_Result](_Result)


def read_winner(result: bytes | None, settings: GameSettings) -> DeathmatchWinner | None:
    """Return who won a deathmatch. None for other modes, and for matches without a result."""
    if result is None or settings.match_type is not MatchType.DEATHMATCH:
        return None
    try:
        stored = _RESULT.read(result)
    except UnreadableError:
        return DeathmatchWinner()  # do not fail, so that lists show all other matches
    if not settings.is_free_for_all:  # the team has won it, not its best player
        return DeathmatchWinner(team=stored.winner_team)
    steam_id = stored.winner_steam_id
    names = {player.steam_id: player.name for player in stored.players}
    name = None if steam_id is None else names.get(steam_id) or steam_id
    return DeathmatchWinner(steam_id=steam_id, name=name)
