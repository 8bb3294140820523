"""Build the rounds of a map for the API.

The rounds use the same counters as the result, so a player's numbers in all rounds add up to those of the map. A
deathmatch has no rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cs2_protocol.game import PlayerId, Team
from matchpod.core.iso_dates import iso_time
from matchpod.core.match.match import Match
from matchpod.core.match.played_map import PlayedMap
from matchpod.core.stats.buy_types import START_VALUE, buy_type
from matchpod.core.stats.ledger import MAX_ROUND_NUMBER
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import RoundDetails, RoundRecord
from matchpod.core.views.result import is_published, player_name
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.round_shapes import (
    BombDefuse,
    BombPlant,
    DamagePair,
    FirstKill,
    RoundEntry,
    RoundPlayer,
    RoundTeam,
)
from matchpod.core.views.shown_text import person_of, sanitize
from matchpod.core.views.timeline_items import Person

_Alive = dict[Team, set[PlayerId] | None]
"""The players of each team who were alive; None for a team if this is unknown."""


def build_rounds(match: Match, played: PlayedMap) -> tuple[RoundEntry, ...]:
    """Return the rounds of a map that are in the log, in order; the current round is the last."""
    if not played.is_scored:
        return ()
    incomplete = frozenset(played.missing_rounds)
    builder = _Builder(match, played)
    records = [record for record in played.ledger.records() if record.number <= MAX_ROUND_NUMBER]
    return tuple(builder.entry(record, is_complete=record.number not in incomplete) for record in records)


class _Builder:
    def __init__(self, match: Match, played: PlayedMap) -> None:
        self._match = match
        self._played = played
        self._names: Final[dict[PlayerId, str]] = {}
        self._last: RoundRecord | None = None
        """The previous round, if it is complete."""
        # Other modes, such as casual, may give players free equipment, and so may the caller's console variables.
        self._are_items_paid = match.settings.match_type.has_series and not match.settings.custom_cvars

    def entry(self, record: RoundRecord, *, is_complete: bool) -> RoundEntry:
        start_ms, end_ms = record.started_at_ms, record.decided_at_ms
        # The line-ups and the order of deaths must be known.
        has_order = record.is_started and not record.has_respawns
        alive: _Alive = {team: record.alive(team) if has_order else None for team in Team}
        details = record.read_details()
        teams = [self._team(record, details, team, alive, is_complete=is_complete) for team in Team]
        self._last = record if is_complete else None
        return RoundEntry(
            number=record.number,
            complete=is_complete,
            started_at=None if start_ms is None else self._time(start_ms),
            ended_at=None if end_ms is None else self._time(end_ms),
            duration=None if start_ms is None or end_ms is None else max(0, end_ms - start_ms) / 1000,
            winner=record.winner,
            winner_side=record.winner_side,
            reason=record.reason,
            score=None if record.score is None else Score(*record.score),
            first_kill=self._first_kill(record),
            plant=self._plant(record),
            defuse=self._defuse(record),
            team1=teams[0],
            team2=teams[1],
            players=self._players(record, details, alive),
            damage_pairs=self._pairs(details),
        )

    def _first_kill(self, record: RoundRecord) -> FirstKill | None:
        first = record.first_kill()
        if first is None or first.killer is None:
            return None
        return FirstKill(
            timestamp=self._time(first.at_ms),
            killer=self._person(record, first.killer),
            victim=self._person(record, first.victim),
            weapon=sanitize(first.weapon),
        )

    def _plant(self, record: RoundRecord) -> BombPlant | None:
        plant = record.plant
        if plant is None:
            return None
        site = None if plant.site is None else sanitize(plant.site)
        return BombPlant(timestamp=self._time(plant.at_ms), player=self._person(record, plant.player_id), site=site)

    def _defuse(self, record: RoundRecord) -> BombDefuse | None:
        defuse = record.defuse
        if defuse is None:
            return None
        player = None if defuse.player_id is None else self._person(record, defuse.player_id)
        return BombDefuse(timestamp=self._time(defuse.at_ms), player=player)

    def _has_kept_items(self, record: RoundRecord, line_up: Sequence[PlayerId]) -> bool:
        """False if no player kept equipment: in round 1, in a new half, or if all were out in the last round."""
        last = self._last
        if last is None or last.number != record.number - 1:
            return record.number > 1
        is_new_half = None is not last.team1_side is not record.team1_side is not None
        return not (is_new_half or all(map(last.is_out, line_up)))

    def _team(
        self, record: RoundRecord, details: RoundDetails, team: Team, alive: _Alive, *, is_complete: bool
    ) -> RoundTeam:
        side, survivors = record.team1_side, alive[team]
        counts = [counts for player_id, counts in record.players.items() if self._team_of(record, player_id) is team]
        line_up = record.team1 if team is Team.TEAM1 else record.team2
        money = [details.money.get(player_id) for player_id in line_up]
        equipment = [details.equipment.get(player_id) for player_id in line_up]
        spent = _sum_known([_spent_by(record, details, player_id) for player_id in line_up])
        most = None
        if is_complete and self._are_items_paid and spent is not None and not self._has_kept_items(record, line_up):
            most = spent + START_VALUE * len(line_up)
        return RoundTeam(
            side=side if side is None or team is Team.TEAM1 else side.other,
            survivors=None if survivors is None else len(survivors),
            kills=sum(player.kills for player in counts),
            damage_dealt=sum(player.damage for player in counts),
            money=_sum_known(money),
            spent=spent,
            equipment_value=_sum_known(equipment),
            buy_type=buy_type(money, equipment, most_of_team=most),
        )

    def _players(self, record: RoundRecord, details: RoundDetails, alive: _Alive) -> tuple[RoundPlayer, ...]:
        shown = [item for item in record.players.items() if is_published(self._match, item[0])]
        shown.sort(key=lambda item: (-item[1].kills, -item[1].damage, item[0]))
        return tuple(self._player(record, details, item, alive) for item in shown)

    def _player(
        self, record: RoundRecord, details: RoundDetails, counted: tuple[PlayerId, PlayerRound], alive: _Alive
    ) -> RoundPlayer:
        player_id, counts = counted
        in_line_up = record.team_of(player_id)
        survivors = None if in_line_up is None else alive[in_line_up]
        return RoundPlayer(
            steam_id=player_id,
            name=self._name(player_id),
            team=self._team_of(record, player_id),
            survived=None if survivors is None else player_id in survivors,
            kills=counts.kills,
            deaths=counts.deaths,
            assists=counts.assists + counts.flash_assists,
            headshots=counts.headshots,
            damage_dealt=counts.damage,
            utility_damage=counts.utility_damage,
            money=details.money.get(player_id),
            spent=_spent_by(record, details, player_id),
            equipment_value=details.equipment.get(player_id),
        )

    def _pairs(self, details: RoundDetails) -> tuple[DamagePair, ...]:
        pairs: dict[tuple[PlayerId, PlayerId | None], int] = {}
        for attacker, victims in details.damage_to.items():
            if not is_published(self._match, attacker):
                continue
            for victim, damage in victims.items():
                key = attacker, victim if is_published(self._match, victim) else None
                pairs[key] = pairs.get(key, 0) + damage
        return tuple(
            DamagePair(attacker_steam_id=attacker, victim_steam_id=victim, damage=damage)
            for (attacker, victim), damage in sorted(pairs.items(), key=lambda item: (item[0][0], item[0][1] or ""))
        )

    def _time(self, at_ms: int) -> str:
        return iso_time(self._match.times.ours(at_ms))

    def _person(self, record: RoundRecord, player_id: PlayerId) -> Person:
        return person_of(self._match, player_id, self._name(player_id), self._team_of(record, player_id))

    def _team_of(self, record: RoundRecord, player_id: PlayerId) -> Team | None:
        return self._match.roster.team_of(player_id) or record.team_of(player_id)

    def _name(self, player_id: PlayerId) -> str:
        name = self._names.get(player_id)
        if name is None:
            name = self._played.names.get(player_id) or player_name(self._match, player_id)
            self._names[player_id] = name
        return name


def _spent_by(record: RoundRecord, details: RoundDetails, player_id: PlayerId) -> int | None:
    """Return the money that a player spent; None if the log does not contain changes of money."""
    return details.spent.get(player_id, 0) if record.has_money_lines else None


def _sum_known(numbers: Sequence[int | None]) -> int | None:
    """Return the sum; None if there are no numbers, or if one of them is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None
