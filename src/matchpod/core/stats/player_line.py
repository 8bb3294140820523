"""Sum the rounds of each player into totals for a map or series.

A player line has the summed counters of the rounds, and three numbers that not every server reports. `mvps` is the
known number of MVPs, and None in a mode without MVPs. Shots fired and shots hit are None if they were not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.stats.mvps import MvpCount
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import RoundRecord, Shots


class LiveCount(msgspec.Struct, frozen=True, gc=False):
    """The statistics of a player in the live view; assists include flash assists, as on the scoreboard."""

    kills: int = 0
    deaths: int = 0
    assists: int = 0


class PlayerLine(PlayerRound, kw_only=True, array_like=False):
    """The totals of one player. Bots have player lines too, but published results do not contain them."""

    player_id: PlayerId
    team: Team | None = None
    mvps: int | None = None
    are_mvps_complete: bool = True
    shots_fired: int | None = None
    shots_hit: int | None = None
    weapon_kills: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def all_assists(self) -> int:
        """Assists including flash assists, as on the game's scoreboard."""
        return self.assists + self.flash_assists

    @property
    def clutch_wins(self) -> int:
        """Rounds won as the last player alive, against any number of enemies."""
        return self.clutch1v1 + self.clutch1v2 + self.clutch1v3 + self.clutch1v4 + self.clutch1v5

    @property
    def grenades_thrown(self) -> int:
        return self.he_thrown + self.flash_thrown + self.smoke_thrown + self.molly_thrown + self.decoy_thrown


RoundShots = Mapping[int, Mapping[PlayerId, Shots]]
"""Shots by round number and player."""

_COUNTERS = len(PlayerRound.__struct_fields__)


def sum_rounds(
    rounds: Sequence[RoundRecord],
    shots: RoundShots | None = None,
    *,
    mvps: Mapping[PlayerId, MvpCount] | None = None,
    has_teams: bool = True,
) -> list[PlayerLine]:
    """Return one line per player of these rounds, sorted by most kills, then most damage, then id."""
    weapons: dict[PlayerId, dict[str, int]] = {}
    for record in rounds:
        for player_id, kills in record.weapon_kills().items():
            _add_kills(weapons.setdefault(player_id, {}), kills)
    teams = _last_teams(rounds) if has_teams else {}
    mvps = mvps or {}
    totals = _sum_shots(rounds, shots or {})
    lines = [
        PlayerLine(
            *_sum_columns(counts),
            player_id=player_id,
            team=teams.get(player_id),
            mvps=mvps[player_id].number if player_id in mvps else None,
            are_mvps_complete=player_id not in mvps or mvps[player_id].is_complete,
            shots_fired=totals[player_id].fired if player_id in totals else None,
            shots_hit=totals[player_id].hit if player_id in totals else None,
            weapon_kills=weapons.get(player_id, {}),
        )
        for player_id, counts in rows_of(rounds).items()
    ]
    return sorted(lines, key=_by_kills)


def rows_of(rounds: Iterable[RoundRecord]) -> dict[PlayerId, list[PlayerRound]]:
    rows: dict[PlayerId, list[PlayerRound]] = {}
    for record in rounds:
        for player_id, counts in record.players.items():
            rows.setdefault(player_id, []).append(counts)
    return rows


def _sum_shots(rounds: Sequence[RoundRecord], shots: RoundShots) -> dict[PlayerId, Shots]:
    totals: dict[PlayerId, Shots] = {}
    for record in rounds:
        for player_id, counted in shots.get(record.number, {}).items():
            total = totals.setdefault(player_id, Shots())
            total.fired += counted.fired
            total.hit += counted.hit
    return totals


def sum_lines(lines: Iterable[PlayerLine]) -> list[PlayerLine]:
    """Sum the lines of several maps per player. The team is the last known team; a sum that includes None is None."""
    overall: dict[PlayerId, PlayerLine] = {}
    for line in lines:
        former = overall.get(line.player_id)
        overall[line.player_id] = line if former is None else _sum_two(former, line)
    return sorted(overall.values(), key=_by_kills)


def _sum_two(former: PlayerLine, line: PlayerLine) -> PlayerLine:
    weapons = dict(former.weapon_kills)
    _add_kills(weapons, line.weapon_kills)
    return PlayerLine(
        *_sum_columns([former, line]),
        player_id=line.player_id,
        team=line.team or former.team,
        mvps=_add_counted(former.mvps, line.mvps),
        are_mvps_complete=former.are_mvps_complete and line.are_mvps_complete,
        shots_fired=_add_counted(former.shots_fired, line.shots_fired),
        shots_hit=_add_counted(former.shots_hit, line.shots_hit),
        weapon_kills=weapons,
    )


def _sum_columns(rows: Sequence[PlayerRound]) -> list[int]:
    # Sum by column, because `sum` over a column runs in C.
    return [sum(column) for column in zip(*(msgspec.structs.astuple(row)[:_COUNTERS] for row in rows), strict=True)]


def _add_kills(total: dict[str, int], kills: dict[str, int]) -> None:
    for weapon, count in kills.items():
        total[weapon] = total.get(weapon, 0) + count


def _add_counted(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _last_teams(rounds: Sequence[RoundRecord]) -> dict[PlayerId, Team]:
    teams: dict[PlayerId, Team] = {}
    for record in rounds:
        teams.update(dict.fromkeys(record.team1, Team.TEAM1))
        teams.update(dict.fromkeys(record.team2, Team.TEAM2))
    return teams


def _by_kills(line: PlayerLine) -> tuple[int, int, PlayerId]:
    return -line.kills, -line.damage, line.player_id
