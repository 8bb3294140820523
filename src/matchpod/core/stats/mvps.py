"""Determine how often each player was the most valuable player (MVP) of a round, as far as it is known.

The game and its plugin report running totals, and any report may be lost. A round has at most one MVP, always a player
of the team that won the round (in all 14 reported rounds of a real match). So a reported total stays correct while the
player loses every round, and if the totals of all players add up to the number of rounds, all of them are correct. Lost
log lines may hide a restored backup, which changes totals, so after a loss only later reports prove a total. If a total
is not proven, the last reported total is used and marked as incomplete.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core.stats.round_record import RoundRecord

MAX_PLAYERS: Final = 256
"""Maximum number of players whose totals are stored per round: four full servers. A log may contain forged ids."""

_NEVER: Final = -1


class MvpCount(msgspec.Struct, frozen=True, gc=False):
    """The known number of rounds in which a player was MVP. `is_complete` is False if there may be more such rounds."""

    number: int
    is_complete: bool = True


class MvpReports(msgspec.Struct, omit_defaults=True):
    """The MVP totals that were reported for a map, by round number and player."""

    game: dict[int, dict[PlayerId, int]] = {}
    plugin: dict[int, dict[PlayerId, int]] = {}
    """Totals from the plugin. Reports may overtake the log, so a round may be listed before its record exists."""
    is_whole: bool = True
    """False once log lines were lost: the total of a player without a report is then unknown instead of 0."""
    stale: dict[PlayerId, int] = {}
    """The newest totals from before the latest loss of log lines. They may be outdated."""

    def count_by_plugin(self, number: int, player_id: PlayerId, total: int) -> None:
        """Store a total that the plugin reported at the end of this round."""
        totals = self.plugin.setdefault(number, {})
        if player_id in totals or len(totals) < MAX_PLAYERS:
            totals[player_id] = total

    def drop_after(self, number: int) -> None:
        """Drop the reports of all rounds after round `number`, because these rounds are played again."""
        self.game = {counted: totals for counted, totals in self.game.items() if counted <= number}
        self.plugin = {counted: totals for counted, totals in self.plugin.items() if counted <= number}
        self.stale = {}

    def forget(self) -> None:
        """Drop all reports because log lines were lost after them. Their totals are kept in `stale`."""
        for number in sorted(self.game.keys() | self.plugin.keys()):
            self.stale |= self.plugin.get(number, {}) | self.game.get(number, {})
        if len(self.stale) > MAX_PLAYERS:
            self.stale.clear()
        self.game, self.plugin, self.is_whole = {}, {}, False

    def counts(self, rounds: Sequence[RoundRecord], players: Collection[PlayerId]) -> dict[PlayerId, MvpCount]:
        records = {record.number: record for record in rounds}
        totals: dict[PlayerId, int] = {}
        known_at: dict[PlayerId, int] = {}
        all_known_at = 0 if self.is_whole else _NEVER
        for number in sorted(self.game.keys() | (self.plugin.keys() & records.keys())):
            # The plugin reports when the round ends, so its total may be too early to include the MVP of that round.
            is_early = number not in self.game
            report = self.plugin[number] if is_early else self.game[number]
            totals.update(report)
            if sum(totals.values()) == number:
                all_known_at = number
            known_at |= {who: number for who in report if not (is_early and _may_be_mvp(who, records[number]))}
        newest = self.stale | totals
        if not totals and rounds:  # no source
            return {who: MvpCount(newest.get(who, 0), is_complete=False) for who in players}
        since = {who: max(all_known_at, known_at.get(who, _NEVER)) for who in players}
        return {
            who: MvpCount(
                newest.get(who, 0),
                since[who] != _NEVER
                and not any(_may_be_mvp(who, record) for record in rounds if record.number > since[who]),
            )
            for who in players
        }


def _may_be_mvp(player_id: PlayerId, record: RoundRecord) -> bool:
    if record.winner is None or not record.is_started:
        return True
    losers = record.team2 if record.winner is Team.TEAM1 else record.team1
    return player_id in record.players and player_id not in losers
