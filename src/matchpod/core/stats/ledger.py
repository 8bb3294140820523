"""Accumulate the statistics of a map from events, one record per round; combat is counted in `combat_counts`.

Play counts only while the map is live. A restore drops rounds, so every number is stored per round and summed on
demand. Data that is missing is marked as missing, never estimated. The ledger is plain data, which can be serialized at
any point.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from cs2_protocol.game import PlayerId, Team
from matchpod.core import events as ev
from matchpod.core.stats import combat_counts, crosscheck
from matchpod.core.stats.crosscheck import Discrepancy
from matchpod.core.stats.mvps import MvpReports
from matchpod.core.stats.player_line import LiveCount, PlayerLine, RoundShots, rows_of, sum_rounds
from matchpod.core.stats.round_record import MAX_ROWS, RoundRecord, Shots
from matchpod.core.stats.round_totals import compute_totals

# Missing rounds are recorded only below this number, so that an invalid number creates no long list. No map reaches it.
MAX_ROUND_NUMBER = 500

# Suicides within this time (ms) before a restore do not count: the restore kills all players before it is logged.
# The deaths of a restore are in one tick, but log files have whole seconds, and a tick may span two of them.
RESTORE_MOMENT_MS = 1000


MIN_KILLS = 20_000
"""Minimum of the limit for kills and deaths stored per map, whatever the settings of the match are."""

FLOOD_FACTOR = 10
"""Multiple of the limit for kills and deaths above which they are treated as a flood of log lines."""


class RoundPhase(StrEnum):
    """Whether events count: the map is not live yet, live, or ended."""

    BEFORE = "before"
    LIVE = "live"
    ENDED = "ended"


class Ledger(msgspec.Struct, omit_defaults=True):
    """The statistics of one map."""

    is_free_for_all: bool = False
    has_respawns: bool = False
    phase: RoundPhase = RoundPhase.BEFORE
    rounds: list[RoundRecord] = []
    open_round: RoundRecord | None = None
    missing_rounds: list[int] = []
    """Rounds that were played but are not in the log."""
    torn_rounds: list[int] = []
    """Rounds with lost log lines. A loss between two rounds affects both."""
    discrepancies: list[Discrepancy] = []
    health: dict[PlayerId, int] = {}
    died_at_ms: dict[PlayerId, int] = {}
    shots: dict[int, dict[PlayerId, Shots]] = {}
    """Shots by round. Reports may overtake the log, so a round may be listed before its record exists."""
    mvps: MvpReports = msgspec.field(default_factory=MvpReports)
    was_restored: bool = False
    """True if a backup was restored. In this case the game's damage totals still contain the dropped rounds."""
    may_lack_end: bool = False
    """True if rounds may have been played after the last recorded round."""
    max_kills: int = MIN_KILLS
    """Maximum number of kills and deaths that are stored individually."""
    kills: int = 0
    """Number of all kills and deaths, including those that are not stored."""
    rows: int = 0
    """Number of rows of all closed rounds, including rows that are not stored."""
    is_flooded: bool = False
    """True if the map has more than FLOOD_FACTOR times `max_kills` kills and deaths."""

    def apply(self, event: ev.Event) -> None:
        """Apply an event; events without effect on statistics are ignored."""
        handlers = _WHILE_LIVE if self.phase is RoundPhase.LIVE else _WHILE_NOT_LIVE[self.phase]
        handler = handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    @property
    def is_complete(self) -> bool:
        """False if data of a played round is missing."""
        return not self.missing_rounds and not self.torn_rounds and not self.is_cut

    @property
    def is_cut(self) -> bool:
        """True if there are too many rows, kills or deaths, so that some of them are not stored."""
        rows = self.rows if self.open_round is None else self.rows + self.open_round.rows
        return rows > MAX_ROWS or not self.keeps_kills

    @property
    def keeps_kills(self) -> bool:
        """True if the newest kill or death is stored."""
        return self.kills <= self.max_kills

    def lines(self) -> list[PlayerLine]:
        """Return the totals of all players including the open round, most kills first."""
        rounds = finished = self.rounds
        if self.open_round is not None:
            # Compute totals on a copy, because reading must not change the stored round.
            players = {player_id: msgspec.structs.replace(row) for player_id, row in self.open_round.players.items()}
            provisional = msgspec.structs.replace(self.open_round, players=players)
            compute_totals(provisional)
            rounds = [*rounds, provisional]
            finished = rounds if provisional.is_decided else finished
        has_mvps = not (self.has_respawns or self.is_free_for_all)
        mvps = self.mvps.counts(finished, self.player_ids()) if has_mvps else {}
        return sum_rounds(rounds, self._complete_shots(), mvps=mvps, has_teams=not self.is_free_for_all)

    def live_counts(self) -> dict[PlayerId, LiveCount]:
        """Return kills, deaths and assists of all players including the open round; cheaper than `lines`."""
        totals: dict[PlayerId, tuple[int, int, int]] = {}
        for record in self.records():
            for player_id, row in record.players.items():
                kills, deaths, assists = totals.get(player_id, (0, 0, 0))
                totals[player_id] = (kills + row.kills, deaths + row.deaths, assists + row.assists + row.flash_assists)
        return {player_id: LiveCount(*counts) for player_id, counts in totals.items()}

    def player_ids(self) -> set[PlayerId]:
        return {player_id for record in self.records() for player_id in record.players}

    def records(self) -> list[RoundRecord]:
        """Return the records of all rounds, the open round last."""
        return self.rounds if self.open_round is None else [*self.rounds, self.open_round]

    def record(self) -> RoundRecord:
        """Return the open round. Open a round if there is none: in a deathmatch, or if the round start was lost."""
        return self.open_round or self._open(self._last_number() + 1)

    def count_fall(self) -> None:
        """Count a kill or death of the map."""
        self.kills += 1
        if self.kills > FLOOD_FACTOR * self.max_kills:
            self.is_flooded = True

    def rounds_against(self, score: tuple[int, int]) -> list[int]:
        """Return the decided rounds whose winner contradicts the scores before and after the round.

        `score` is the score of the map, which must equal the score after the last round. Rounds with an unknown winner
        are skipped, because their score is only the last certain score.
        """
        found: list[int] = []
        number, before = 0, (0, 0)
        for record in self.records():
            after, winner = record.score, record.winner
            if after is None or (winner is None and record.winner_side is not None):
                continue
            won = (before[0] + (winner is Team.TEAM1), before[1] + (winner is Team.TEAM2))
            if record.number == number + 1 and after != won:
                found.append(record.number)
            number, before = record.number, after
        if number >= sum(score) and before != score:
            found.append(number)
        return found

    # --- the flow of a map --------------------------------------------------------------------------------------

    def _map_live(self, event: ev.MapLive) -> None:
        fresh = Ledger(
            is_free_for_all=self.is_free_for_all,
            has_respawns=self.has_respawns,
            phase=RoundPhase.LIVE,
            max_kills=self.max_kills,
        )
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))
        self._mark_missing_before(event.rounds_played + 1)

    def _round_started(self, event: ev.RoundStarted) -> None:
        number, record = event.round_number, self.open_round
        self.health.clear()
        self.died_at_ms.clear()
        if record is not None and record.number == number and not record.is_started:
            if record.has_respawns:
                record.start(event)
                return
            self.open_round = record = None  # the counts belong to the previous round, whose lines are lost
        if record is not None and (record.is_decided or record.number < number):
            self._close()
        if self.open_round is not None or number <= self._last_number():
            # A repeated round number means that lines about a restore are lost. Only the new attempt counts.
            self._drop_replayed(number - 1)
        if event.is_cut or not event.is_certain:
            self._mark_torn(number)
        self._open(number).start(event)

    def _lineup_grown(self, event: ev.LineupGrown) -> None:
        if event.is_return:
            self._mark_torn()
        if self.open_round is not None:
            self.open_round.add_to_lineup(event)
        if event.was_unseen:
            for record in self._without(event.player_id):
                record.add_to_lineup(event)
                compute_totals(record)

    def _lineup_shrunk(self, event: ev.LineupShrunk) -> None:
        """Mark the rounds in which a player may have played, because it is unknown when they left."""
        if self.open_round is not None and event.player_id in self.open_round.unseen:
            self._mark_torn()
        for record in self._without(event.player_id):
            self._mark_torn(record.number)

    def _without(self, player_id: PlayerId) -> list[RoundRecord]:
        """Return the closed rounds in which an unseen player may have played after lines were lost."""
        return [record for record in self.rounds if player_id in record.unseen]

    def _round_decided(self, event: ev.RoundDecided) -> None:
        number, record = event.round_number, self.open_round
        if record is not None and record.number < number:
            if record.is_started:
                self._close()
            else:  # opened implicitly by a combat event, under an assumed number
                record.number = number
                self._mark_missing_before(number)
        if self.open_round is None and number > self._last_number():
            self._open(number)
        record = self.open_round
        if record is None or record.number != number or record.is_decided:
            return
        is_winner_unknown = event.winner is None and event.winner_side is not None
        if is_winner_unknown or (not record.is_started and not record.has_respawns):
            self._mark_torn()
        record.decide(event)

    def _round_restored(self, event: ev.RoundRestored) -> None:
        if self.open_round is not None and self.open_round.is_decided:
            self._close()
        record = self.open_round
        if event.is_inferred:
            self._drop_replayed(event.rounds_kept)
        else:
            self._drop_after(event.rounds_kept)
        self.phase, self.may_lack_end, self.was_restored = RoundPhase.LIVE, False, True
        if self.rounds:
            self.rounds[-1].remove_suicides(event.at_ms - RESTORE_MOMENT_MS)
            compute_totals(self.rounds[-1])
        self._mark_missing_before(event.rounds_kept + 1)
        for kept in self.rounds if event.may_be_new else ():
            self._mark_torn(kept.number)
        if event.is_inferred and record is not None and record.is_started and not record.is_cut:
            record.number, self.open_round = event.rounds_kept + 1, record  # the round began after the restore

    def _map_ended(self, event: ev.MapEnded) -> None:
        if not event.is_complete:
            self._mark_torn()
        self._close(is_loss=False)  # a deathmatch round is never decided, and other maps may end during a round
        self.phase, self.may_lack_end = RoundPhase.ENDED, not event.is_complete

    def _log_lost(self, event: ev.LogGap | ev.ServerRestarted) -> None:
        """Mark the round whose lines were lost."""
        record = self.open_round
        if record is not None and record.is_decided and isinstance(event, ev.LogGap) and event.is_freeze:
            self._close()  # the following events belong to the next round
        self._mark_torn()
        if self.open_round is not None:
            self.open_round.is_cut = True

    def _open(self, number: int) -> RoundRecord:
        self._mark_missing_before(number)
        has_respawns = self.has_respawns or self.is_free_for_all
        self.open_round = RoundRecord(number, has_respawns=has_respawns, max_rows=max(0, MAX_ROWS - self.rows), rows=1)
        return self.open_round

    def _close(self, *, is_loss: bool = True) -> None:
        """Close the open round. An undecided round is marked as torn (lines lost), unless the map ended during it."""
        record = self.open_round
        if record is None:
            return
        if is_loss and not record.is_decided:
            self._mark_torn()
        self.open_round = None
        if self.rows < MAX_ROWS:
            compute_totals(record)
            record.pack()
            self.rounds.append(record)
        self.rows += record.rows

    def _drop_replayed(self, number: int) -> None:
        """Drop the rounds after round `number`, which are played again after a restore whose lines are lost.

        These rounds stay incomplete, because it is not certain which lines belong to their first attempt.
        """
        played = (record.number for record in self.records())
        again = sorted({*self.torn_rounds, *self.missing_rounds, *played})
        self._drop_after(number)
        for torn in again:
            if torn > number:
                self._mark_torn(torn)

    def _drop_after(self, number: int) -> None:
        self.open_round = None
        self.rounds = [record for record in self.rounds if record.number <= number]
        self.missing_rounds = [missing for missing in self.missing_rounds if missing <= number]
        self.torn_rounds = [torn for torn in self.torn_rounds if torn <= number]
        self.discrepancies = [found for found in self.discrepancies if found.round_number <= number]
        self.shots = {counted: shots for counted, shots in self.shots.items() if counted <= number}
        self.mvps.drop_after(number)

    def _last_number(self) -> int:
        return max([0, *self.missing_rounds[-1:], *(record.number for record in self.rounds[-1:])])

    def _mark_missing_before(self, number: int) -> None:
        """Record as missing all rounds before round `number` that are not in the log."""
        missing = range(self._last_number() + 1, min(number, MAX_ROUND_NUMBER))
        if missing:
            self.missing_rounds.extend(missing)
            self.mvps.forget()

    def _mark_torn(self, number: int | None = None) -> None:
        """Record that lines of a round are lost; by default, of the open round or else of the next round."""
        if number is None:
            number = self._last_number() + 1 if self.open_round is None else self.open_round.number
        number = min(number, MAX_ROUND_NUMBER)
        if number not in self.torn_rounds:
            self.torn_rounds.append(number)
        self.mvps.forget()

    # --- reports of the game and its plugins --------------------------------------------------------------------

    def _game_counted(self, event: ev.GameCounted) -> None:
        """Apply the game's totals for the previous rounds: close the round, set the MVPs and cross-check our counts."""
        played = event.round_number - 1
        if self.open_round is not None and (self.open_round.is_decided or self.open_round.number <= played):
            self._close()
        if self.open_round is None:
            self._mark_missing_before(event.round_number)
        if 0 < played < MAX_ROUND_NUMBER:
            self.mvps.game[played] = {player.player_id: player.mvps for player in event.players}
        if not self.rounds or self.rounds[-1].number != played:
            return
        self.rounds[-1].has_game_counts = True
        if self.is_complete and not any(record.has_respawns for record in self.rounds):
            rows, known = rows_of(self.rounds), self.discrepancies
            known += crosscheck.compare(rows, event.players, known, round_number=played, was_restored=self.was_restored)

    def _mvp_named(self, event: ev.MvpNamed) -> None:
        begun = self._last_number() if self.open_round is None else self.open_round.number
        if self.was_restored and event.round_number > begun:
            return  # a late report of a round that is played again; the report of the new attempt follows its start
        if 0 < event.round_number < MAX_ROUND_NUMBER:
            self.mvps.count_by_plugin(event.round_number, event.player_id, event.mvps)

    def _mvp_named_late(self, event: ev.MvpNamed) -> None:
        # The plugin reports over its own connection, so the MVP of the last round may arrive after the map ended.
        if self.rounds and self.rounds[-1].number == event.round_number and not self.may_lack_end:
            self._mvp_named(event)

    def _shots_counted(self, event: ev.ShotsCounted) -> None:
        """Replace the shots of the round. A restore drops them together with the round."""
        # An empty report may be older than the stored counts, unless it is known to be the newest.
        if event.shots or event.is_newest or event.round_number not in self.shots:
            self.shots[event.round_number] = {player_id: Shots(*counted) for player_id, counted in event.shots.items()}

    def _complete_shots(self) -> RoundShots:
        """Return the shots if all rounds are reported, otherwise nothing, because a partial sum would look complete."""
        numbers = [record.number for record in self.rounds]
        # During play the report of the latest round may still be on its way.
        expected = numbers if self.phase is RoundPhase.ENDED else numbers[:-1]
        return self.shots if all(self.shots.get(number) for number in expected) else {}


# Each handler accepts its own event type, which a common signature cannot express.
_Handlers = dict[type[ev.Event], Callable[[Ledger, Any], None]]

_WHILE_LIVE: _Handlers = {
    ev.MapLive: Ledger._map_live,
    ev.RoundStarted: Ledger._round_started,
    ev.LineupGrown: Ledger._lineup_grown,
    ev.LineupShrunk: Ledger._lineup_shrunk,
    ev.RoundDecided: Ledger._round_decided,
    ev.RoundRestored: Ledger._round_restored,
    ev.MapEnded: Ledger._map_ended,
    ev.LogGap: Ledger._log_lost,
    ev.ServerRestarted: Ledger._log_lost,
    ev.Damage: combat_counts.count_damage,
    ev.Kill: combat_counts.count_kill,
    ev.Death: combat_counts.count_death,
    ev.PlayerGone: combat_counts.count_departure,
    ev.Assist: combat_counts.count_assist,
    ev.Blinded: combat_counts.count_blinded,
    ev.GrenadeThrown: combat_counts.count_grenade,
    ev.ChickenKilled: combat_counts.count_chicken,
    ev.BombPlanted: combat_counts.count_plant,
    ev.BombDefused: combat_counts.count_defuse,
    ev.EconomyCounted: combat_counts.count_economy,
    ev.GameCounted: Ledger._game_counted,
    ev.MvpNamed: Ledger._mvp_named,
    ev.ShotsCounted: Ledger._shots_counted,
}

_WHILE_NOT_LIVE: dict[RoundPhase, _Handlers] = {
    RoundPhase.BEFORE: {ev.MapLive: Ledger._map_live},
    RoundPhase.ENDED: {
        ev.MapLive: Ledger._map_live,
        ev.RoundRestored: Ledger._round_restored,
        ev.MvpNamed: Ledger._mvp_named_late,
        ev.ShotsCounted: Ledger._shots_counted,
    },
}
