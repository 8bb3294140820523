"""Build the leaderboard of a map for the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from cs2_protocol.game import PlayerId, Team, is_human
from matchpod.core.stats.derived import accuracy
from matchpod.core.stats.player_line import PlayerLine
from matchpod.core.views import result_shapes as shapes

DEFAULT_LIMIT = 10
MAX_LIMIT = 32
"""Maximum number of rows in a leaderboard: as many as the longest roster."""

_TEAM_NUMBERS = {None: 0, Team.TEAM1: 1, Team.TEAM2: 2}


class LeaderboardSort(StrEnum):
    """Sort keys of a leaderboard, always in descending order."""

    KILLS = "kills"
    DAMAGE = "damage"
    HEADSHOTS = "headshots"
    ACCURACY = "accuracy"
    UTILITY = "utility"
    PLANTS = "plants"
    DEFUSES = "defuses"


class UtilityThrown(msgspec.Struct, frozen=True, kw_only=True):
    """Grenades thrown, by type."""

    total: Annotated[int, Meta(description="All grenades thrown.")]
    he: Annotated[int, Meta(description="HE grenades.")]
    flash: Annotated[int, Meta(description="Flashbangs.")]
    smoke: Annotated[int, Meta(description="Smoke grenades.")]
    molly: Annotated[int, Meta(description="Molotovs and incendiary grenades.")]
    decoy: Annotated[int, Meta(description="Decoys.")]


class TopWeapon(msgspec.Struct, frozen=True, rename="camel"):
    """The weapon with which a player has the most kills, named as in the log."""

    weapon_name: Annotated[str, Meta(description="The name of the weapon in the game.")]
    kills: Annotated[int, Meta(description="Kills with it.")]


class LeaderboardPlayer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A row of the leaderboard. `team` is 1, 2, or 0 for none; numbers that were not counted are null."""

    name: shapes.PlayerName
    steam_id: shapes.SteamId
    team: Annotated[int, Meta(description="1, 2, or 0 for none.")]
    kills: shapes.Kills
    deaths: shapes.Deaths
    assists: shapes.Assists
    headshots: shapes.Headshots
    damage_dealt: shapes.DamageDealt
    bullets_fired: Annotated[int | None, Meta(description="Shots fired; null if not counted.")]
    bullets_hit: Annotated[int | None, Meta(description="Shots that hit an enemy; null if not counted.")]
    accuracy_percent: Annotated[
        float | None, Meta(description="Share of shots that hit, in percent; null if not counted.")
    ]
    bomb_plants: shapes.BombPlants
    bomb_defuses: shapes.BombDefuses
    utility: Annotated[UtilityThrown, Meta(description="Grenades thrown.")]
    top_weapon: Annotated[TopWeapon | None, Meta(description="The weapon with the most kills; null without kills.")]


_FIELDS: Final = {
    LeaderboardSort.KILLS: "kills",
    LeaderboardSort.DAMAGE: "damageDealt",
    LeaderboardSort.HEADSHOTS: "headshots",
    LeaderboardSort.ACCURACY: "accuracyPercent",
    LeaderboardSort.UTILITY: "utility",
    LeaderboardSort.PLANTS: "bombPlants",
    LeaderboardSort.DEFUSES: "bombDefuses",
}
"""For each sort key, the field of a row by which it sorts. The key `utility` sorts by the field's total."""


def player_rows(
    lines: Iterable[PlayerLine], names: Mapping[PlayerId, str], teams: Mapping[PlayerId, Team | None] | None = None
) -> list[LeaderboardPlayer]:
    """Return a row per human player. The id replaces a missing name; `teams` overrides the teams in the lines."""
    team_overrides = teams or {}
    return [
        _row(line, names.get(line.player_id) or line.player_id, team_overrides.get(line.player_id) or line.team)
        for line in lines
        if is_human(line.player_id)
    ]


def rank(
    stored: bytes, *, sort_by: LeaderboardSort = LeaderboardSort.KILLS, limit: int = DEFAULT_LIMIT
) -> list[msgspec.Raw]:
    """Return the top rows of a stored leaderboard, unchanged; ties are broken by kills, then damage, name and id."""
    rows = [(msgspec.json.decode(raw), raw) for raw in msgspec.json.decode(stored, type=list[msgspec.Raw])]
    fields = (_FIELDS[sort_by], "kills", "damageDealt")

    def order(pair: tuple[Mapping[str, object], msgspec.Raw]) -> tuple[object, ...]:
        row, _ = pair
        # The id is the last key, so that the order of two players with the same name is stable.
        return *(-_number(row.get(field)) for field in fields), str(row.get("name")), str(row.get("steamId"))

    return [raw for _, raw in sorted(rows, key=order)[: max(0, min(limit, MAX_LIMIT))]]


def _number(value: object) -> float:
    """Return a number of a stored row. Numbers that were not measured, or not stored by an old version, rank last."""
    if isinstance(value, dict):
        value = value.get("total")
    return value if isinstance(value, int | float) else -1.0


def _row(line: PlayerLine, name: str, team: Team | None) -> LeaderboardPlayer:
    return LeaderboardPlayer(
        name=name,
        steam_id=line.player_id,
        team=_TEAM_NUMBERS[team],
        kills=line.kills,
        deaths=line.deaths,
        assists=line.all_assists,
        headshots=line.headshots,
        damage_dealt=line.damage,
        bullets_fired=line.shots_fired,
        bullets_hit=line.shots_hit,
        accuracy_percent=accuracy(line.shots_hit, line.shots_fired),
        bomb_plants=line.bomb_plants,
        bomb_defuses=line.bomb_defuses,
        utility=UtilityThrown(
            total=line.grenades_thrown,
            he=line.he_thrown,
            flash=line.flash_thrown,
            smoke=line.smoke_thrown,
            molly=line.molly_thrown,
            decoy=line.decoy_thrown,
        ),
        top_weapon=_top_weapon(line.weapon_kills),
    )


def _top_weapon(kills: Mapping[str, int]) -> TopWeapon | None:
    if not kills:
        return None
    weapon = min(kills, key=lambda name: (-kills[name], name))
    return TopWeapon(weapon, kills[weapon])
