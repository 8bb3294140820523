"""Build the table of a map's players, grouped by team, with their presence and statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from cs2_protocol.game import Side, Team
from matchpod.console.requested_actions import role_words
from matchpod.core.model import MatchType
from matchpod.core.views.match_progress import Guest
from matchpod.core.views.progress import PlayerState, RosterPlayer
from matchpod.core.views.result_shapes import StoredPlayer

Names = tuple[str, str]
GUESTS: Final = "Casters and coaches"
_UNKNOWN: Final = "–"
_NOBODY: Final = StoredPlayer()


class Column(msgspec.Struct, frozen=True):
    """A column of the table, with a number per player; `label` explains `title`."""

    title: str
    label: str
    value: Callable[[StoredPlayer], float | None]
    digits: int = 0
    mark: Callable[[StoredPlayer], str] = lambda _: ""
    is_live: bool = False
    """True if the column is also shown while the map is being played."""
    modes: tuple[MatchType, ...] = tuple(mode for mode in MatchType if mode is not MatchType.DEATHMATCH)
    """The match types for which the column is shown."""

    def text(self, player: StoredPlayer) -> str:
        value = self.value(player)
        return _UNKNOWN if value is None else f"{value:.{self.digits}f}{self.mark(player)}"


def _percent(_: StoredPlayer) -> str:
    return " %"


_ALL: Final = tuple(MatchType)
COLUMNS: Final = (
    Column("K", "Kills", lambda player: player.kills, is_live=True, modes=_ALL),
    Column("D", "Deaths", lambda player: player.deaths, is_live=True, modes=_ALL),
    Column("A", "Assists", lambda player: player.assists, is_live=True, modes=_ALL),
    Column("ADR", "Average damage per round", lambda player: player.adr, 1, is_live=True),
    Column(
        "KAST",
        "Share of rounds with a kill, assist, survival or trade",
        lambda player: player.kast_percent,
        mark=_percent,
        is_live=True,
    ),
    Column(
        "HS",
        "Share of kills by headshot",
        lambda player: player.hs_percent if player.kills else None,
        mark=_percent,
        is_live=True,
        modes=_ALL,
    ),
    Column("FK", "First kills of a round", lambda player: player.first_kills),
    Column("FD", "First deaths of a round", lambda player: player.first_deaths),
    Column("TRD", "Trade kills, which avenged a team mate within seconds", lambda player: player.trade_kills),
    Column("CL", "Rounds won as the last of the team", lambda player: player.clutch_wins),
    Column("UD", "Damage by grenades and fire", lambda player: player.utility_damage, modes=_ALL),
    Column(
        "MVP",
        "Rounds as most valuable player; with +, perhaps more",
        lambda player: player.mvps,
        mark=lambda player: "" if player.mvps_complete else "+",
    ),
    Column("IMP", "Impact rating", lambda player: player.impact_rating, 2),
    Column("K/D", "Kills per death", lambda player: player.kd_ratio, 2, is_live=True, modes=(MatchType.DEATHMATCH,)),
    Column("KPM", "Kills per minute", lambda player: player.kpm, 2, modes=(MatchType.DEATHMATCH,)),
)


class BoardPlayer(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table; `state` and `since` are set for listed players while the match is running."""

    steam_id: str
    name: str
    cells: tuple[str, ...]
    state: PlayerState | None = None
    since: str | None = None
    is_listed: bool = False
    role: str = ""
    """Role, in words, of a listed person who does not play; empty for players."""
    has_won: bool = False

    @property
    def shown(self) -> str:
        """Displayed name of the player, or their id if the name is unknown."""
        return self.name or self.steam_id

    @property
    def profile(self) -> str:
        """URL of the player's Steam profile; empty if the id is not a SteamID."""
        is_id = len(self.steam_id) == len("76561197960265728") and self.steam_id.isascii() and self.steam_id.isdigit()
        return f"https://steamcommunity.com/profiles/{self.steam_id}" if is_id else ""


class BoardTeam(msgspec.Struct, frozen=True, kw_only=True):
    """The players of a team. In a match without teams, and for guests, `team` is None."""

    team: Team | None
    name: str
    side: Side | None = None
    has_won: bool = False
    players: tuple[BoardPlayer, ...]


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """A table of players: its column headings and its teams."""

    heads: tuple[tuple[str, str], ...]
    teams: tuple[BoardTeam, ...]
    is_live: bool = False
    """True if the table shows who is on the server."""
    is_known: bool = True
    """False if the service does not know who is on the server."""


def live_board(
    roster: Sequence[RosterPlayer],
    numbers: Mapping[str, StoredPlayer],
    match_type: MatchType,
    names: Names,
    *,
    side: Side | None,
    is_known: bool,
    guests: Sequence[Guest] = (),
) -> Board:
    """Return the table for a map being played: listed players, other players who have statistics, and guests.

    `side` is the current side of team1.
    """
    columns = _columns(match_type, is_live=True)
    listed = {player.steam_id for player in roster} | {guest.steam_id for guest in guests}
    teams: dict[Team | None, list[BoardPlayer]] = {Team.TEAM1: [], Team.TEAM2: [], None: []}
    for player in roster:
        cells = _cells(columns, numbers.get(player.steam_id, _NOBODY))
        teams[player.team].append(_listed(player, cells))
    for steam_id, found in numbers.items():
        if steam_id not in listed:
            teams[found.team].append(BoardPlayer(steam_id=steam_id, name=found.name, cells=_cells(columns, found)))
    watching = BoardTeam(team=None, name=GUESTS, players=tuple(_guest(one, names, len(columns)) for one in guests))
    sides = {Team.TEAM1: side, Team.TEAM2: side and side.other, None: None}
    return Board(
        heads=_heads(columns),
        teams=(
            *(
                BoardTeam(team=team, name=_name(team, names), side=sides[team], players=tuple(players))
                for team, players in teams.items()
                if players
            ),
            *([watching] if guests else []),
        ),
        is_live=bool(roster or guests),
        is_known=is_known,
    )


def final_board(
    players: Sequence[StoredPlayer], match_type: MatchType, names: Names, *, winner: str | None = None
) -> Board:
    """Return the table for a map that has ended, most kills first; `winner` is a team or the id of a player."""
    columns = _columns(match_type, is_live=False)
    teams = [(team, [player for player in players if player.team is team]) for team in (*Team, None)]
    has_teams = any(player.team for player in players)
    return Board(
        heads=_heads(columns),
        teams=tuple(
            BoardTeam(
                team=team,
                name=_name(team, names) if team else "No team" if has_teams else "",
                has_won=team is not None and team == winner,
                players=tuple(
                    BoardPlayer(
                        steam_id=player.steam_id,
                        name=player.name,
                        cells=_cells(columns, player),
                        has_won=player.steam_id == winner,
                    )
                    for player in found
                ),
            )
            for team, found in teams
            if found
        ),
    )


def _listed(player: RosterPlayer, cells: tuple[str, ...]) -> BoardPlayer:
    name, state = player.name or "", player.state
    return BoardPlayer(
        steam_id=player.steam_id, name=name, cells=cells, state=state, since=player.since, is_listed=True
    )


def _guest(guest: Guest, names: Names, columns: int) -> BoardPlayer:
    return BoardPlayer(
        steam_id=guest.steam_id,
        name=guest.name,
        cells=("",) * columns,
        state=PlayerState.CONNECTED if guest.is_here else PlayerState.LEFT,
        is_listed=True,
        role=role_words(guest.role, names),
    )


def _columns(match_type: MatchType, *, is_live: bool) -> list[Column]:
    return [column for column in COLUMNS if match_type in column.modes and (column.is_live or not is_live)]


def _heads(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    return tuple((column.title, column.label) for column in columns)


def _cells(columns: Sequence[Column], player: StoredPlayer) -> tuple[str, ...]:
    return tuple(column.text(player) for column in columns)


def _name(team: Team | None, names: Names) -> str:
    return {Team.TEAM1: names[0], Team.TEAM2: names[1], None: ""}[team]
