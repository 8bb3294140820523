"""Accumulate the statistics of a map from events, one record per round.

Play counts only while the map is live. A restore drops rounds, so every number is stored per round and summed on
demand. Missing data is recorded, never estimated. The ledger is plain data, which can be serialized at any point.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from cs2_protocol.game import PlayerId
from cs2_protocol.weapons import PISTOLS, SNIPERS, UTILITY, is_knife
from matchpod.core import events as ev
from matchpod.core.stats import crosscheck
from matchpod.core.stats.crosscheck import Discrepancy
from matchpod.core.stats.health import FULL_HEALTH, health_lost
from matchpod.core.stats.mvps import MvpReports
from matchpod.core.stats.player_line import LiveCount, PlayerLine, RoundShots, rows_of, sum_rounds
from matchpod.core.stats.player_round import PlayerRound
from matchpod.core.stats.round_record import Defuse, Fall, Plant, RoundRecord, Shots
from matchpod.core.stats.round_totals import compute_totals

# Missing rounds are recorded below this number, which no map reaches: a larger one must not create a long list.
MAX_ROUND_NUMBER = 500

# Suicides this shortly before a restore do not count: the restore itself kills all players in the same tick, before it
# is logged. Log files have timestamps in whole seconds, and the tick may span two of them.
RESTORE_MOMENT_MS = 1000

_THROWN = {kind: f"{kind}_thrown" for kind in ev.GrenadeKind}
"""The counter of each grenade type."""


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
    """Rounds with lost log lines; after a loss between two rounds, both."""
    discrepancies: list[Discrepancy] = []
    health: dict[PlayerId, int] = {}
    died_at_ms: dict[PlayerId, int] = {}
    shots: dict[int, dict[PlayerId, Shots]] = {}
    """Shots by round. Reports may overtake the log, so a round may be here before its record."""
    mvps: MvpReports = msgspec.field(default_factory=MvpReports)
    was_restored: bool = False
    """A backup was restored: the game's totals of damage still contain the dropped rounds."""
    may_lack_end: bool = False
    """Rounds may have been played after the last record."""

    def apply(self, event: ev.Event) -> None:
        """Apply an event; events without effect on statistics are ignored."""
        handlers = _WHILE_LIVE if self.phase is RoundPhase.LIVE else _WHILE_NOT_LIVE[self.phase]
        handler = handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    @property
    def is_complete(self) -> bool:
        """False if data of a played round is missing."""
        return not self.missing_rounds and not self.torn_rounds

    def lines(self) -> list[PlayerLine]:
        """Return the totals of all players including the open round, most kills first."""
        rounds = finished = self.rounds
        if self.open_round is not None:
            # Compute totals on a copy: reading must not change the stored round.
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
        """Return the ids of all players with statistics."""
        return {player_id for record in self.records() for player_id in record.players}

    def records(self) -> list[RoundRecord]:
        """Return the records of all rounds, the open one last."""
        return self.rounds if self.open_round is None else [*self.rounds, self.open_round]

    # --- the flow of a map --------------------------------------------------------------------------------------

    def _map_live(self, event: ev.MapLive) -> None:
        fresh = Ledger(is_free_for_all=self.is_free_for_all, has_respawns=self.has_respawns, phase=RoundPhase.LIVE)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))
        self._mark_missing_before(event.rounds_played + 1)

    def _round_started(self, event: ev.RoundStarted) -> None:
        number, record = event.round_number, self.open_round
        self.health.clear()
        self.died_at_ms.clear()
        if record is not None and record.number == number and not record.is_started:
            record.start(event)
            return
        if record is not None and (record.is_decided or record.number < number):
            self._close()
        if self.open_round is not None or number <= self._last_number():
            # A repeated number is a round played again, with or without a restore: the newer one counts.
            self._drop_after(number - 1)
        if not event.is_certain:
            self._mark_torn(number)
        self._open(number).start(event)

    def _lineup_grown(self, event: ev.LineupGrown) -> None:
        if self.open_round is not None:
            self.open_round.add_to_lineup(event)

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
        self._drop_after(event.rounds_kept)
        self.phase, self.may_lack_end, self.was_restored = RoundPhase.LIVE, False, True
        if self.rounds:
            self.rounds[-1].remove_suicides(event.at_ms - RESTORE_MOMENT_MS)
            compute_totals(self.rounds[-1])
        self._mark_missing_before(event.rounds_kept + 1)

    def _map_ended(self, event: ev.MapEnded) -> None:
        if not event.is_complete:
            self._mark_torn()
        self._close(is_loss=False)  # a deathmatch round is never decided, and a map may end during a round
        self.phase, self.may_lack_end = RoundPhase.ENDED, not event.is_complete

    def _log_lost(self, _event: ev.LogGap | ev.ServerRestarted) -> None:
        self._mark_torn()
        if self.open_round is not None and self.open_round.is_decided:  # the next line-ups are logged now
            self._mark_torn(self.open_round.number + 1)

    def _open(self, number: int) -> RoundRecord:
        self._mark_missing_before(number)
        self.open_round = RoundRecord(number, has_respawns=self.has_respawns or self.is_free_for_all)
        return self.open_round

    def _close(self, *, is_loss: bool = True) -> None:
        """Close the open round. An undecided round is marked torn, unless the map ended with it."""
        record = self.open_round
        if record is None:
            return
        if is_loss and not record.is_decided:
            self._mark_torn()
        self.open_round = None
        compute_totals(record)
        self.rounds.append(record)

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
        """Record all rounds before this number that are not in the log as missing."""
        missing = range(self._last_number() + 1, min(number, MAX_ROUND_NUMBER))
        if missing:
            self.missing_rounds.extend(missing)
            self.mvps.forget()

    def _mark_torn(self, number: int | None = None) -> None:
        """Record that lines of a round are lost: of the open one, or else of the next."""
        if number is None:
            number = self._last_number() + 1 if self.open_round is None else self.open_round.number
        if number not in self.torn_rounds:
            self.torn_rounds.append(number)
        self.mvps.forget()

    # --- combat -------------------------------------------------------------------------------------------------

    def _record(self) -> RoundRecord:
        """Return the open round, or open one (in a deathmatch, or if the round start was lost)."""
        return self.open_round or self._open(self._last_number() + 1)

    def _counts(self, player_id: PlayerId) -> PlayerRound:
        return self._record().counts(player_id)

    def _damage(self, event: ev.Damage) -> None:
        victim = event.victim
        before = self.health.get(victim, FULL_HEALTH)
        # A hit on a dead player at the time of death is a late pellet; otherwise the player has respawned.
        if before <= 0 and (event.health > 0 or event.at_ms != self.died_at_ms.get(victim)):
            before = FULL_HEALTH
        self.health[victim] = event.health
        if event.health <= 0:
            self.died_at_ms[victim] = event.at_ms
        if not event.is_enemy:
            return
        record, attacker = self._record(), event.attacker
        counts = record.counts(attacker)
        lost = health_lost(event.damage, before, event.health)
        counts.damage += lost
        if lost and not self.has_respawns:
            record.add_damage(attacker, victim, lost)
        if event.weapon in UTILITY:
            counts.utility_damage += lost

    def _kill(self, event: ev.Kill) -> None:
        record, killer, weapon = self._record(), event.killer, event.weapon
        self.health[event.victim] = 0
        self.died_at_ms[event.victim] = event.at_ms
        record.add_fall(Fall(event.at_ms, event.victim, killer, event.is_enemy, weapon=weapon))
        counts = record.counts(killer)
        if not event.is_enemy:
            counts.team_kills += 1
            return
        counts.kills += 1
        counts.headshots += event.is_headshot
        counts.pistol_kills += weapon in PISTOLS
        counts.sniper_kills += weapon in SNIPERS
        counts.knife_kills += is_knife(weapon)
        weapons = record.weapon_kills.setdefault(killer, {})
        weapons[weapon] = weapons.get(weapon, 0) + 1

    def _death(self, event: ev.Death) -> None:
        # Deaths in freeze time do not count: a change of sides is logged as a suicide. A death by the bomb is logged
        # twice, by the bomb and as a suicide; after the decision the game does not count it (4 of 4 real cases).
        record, player_id = self.open_round, event.player_id
        if record is None:
            return
        if record.is_out(player_id):
            record.kill_leaver(event.at_ms, player_id, event.cause)
            return
        self.health[player_id] = 0
        self.died_at_ms[player_id] = event.at_ms
        helper = record.helper_against(player_id) if event.cause in UTILITY else None
        is_death = not (event.cause == ev.BOMB and record.is_decided)
        record.add_fall(Fall(event.at_ms, player_id, is_death=is_death, weapon=event.cause, helper=helper))
        if helper is not None:
            record.counts(helper).assists += 1

    def _player_gone(self, event: ev.PlayerGone) -> None:
        record = self.open_round
        self.health.pop(event.player_id, None)  # a player who rejoins has full health
        if record is not None and not record.is_out(event.player_id):
            record.add_fall(Fall(event.at_ms, event.player_id, is_death=False, has_left=True))

    def _assist(self, event: ev.Assist) -> None:
        if not event.is_enemy:
            return
        counts = self._counts(event.player_id)
        counts.flash_assists += event.is_flash
        counts.assists += not event.is_flash

    def _blinded(self, event: ev.Blinded) -> None:
        # The log includes blinded dead players (4 of 20 enemies in a real match); the game does not count them.
        if event.is_enemy and not self._record().is_out(event.victim):
            self._counts(event.thrower).enemies_flashed += 1

    def _grenade_thrown(self, event: ev.GrenadeThrown) -> None:
        counts, name = self._counts(event.player_id), _THROWN[event.kind]
        setattr(counts, name, getattr(counts, name) + 1)

    def _chicken_killed(self, event: ev.ChickenKilled) -> None:
        self._counts(event.player_id).chicken_kills += 1

    def _bomb_planted(self, event: ev.BombPlanted) -> None:
        record = self._record()
        record.counts(event.player_id).bomb_plants += 1
        record.plant = Plant(event.at_ms, event.player_id, event.site)

    def _bomb_defused(self, event: ev.BombDefused) -> None:
        record, player_id = self.open_round, event.player_id
        if player_id is not None:
            record = self._record()
            record.counts(player_id).bomb_defuses += 1
        if record is not None:
            record.defuse = Defuse(event.at_ms, player_id)

    def _economy_counted(self, event: ev.EconomyCounted) -> None:
        if self.open_round is not None and self.open_round.number == event.round_number:
            self.open_round.count_economy(event)

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
        if 0 < event.round_number < MAX_ROUND_NUMBER:
            self.mvps.count_by_plugin(event.round_number, event.player_id, event.mvps)

    def _mvp_named_late(self, event: ev.MvpNamed) -> None:
        # The plugin reports over its own connection, so the MVP of the last round may arrive after the map ended.
        if self.rounds and self.rounds[-1].number == event.round_number and not self.may_lack_end:
            self._mvp_named(event)

    def _shots_counted(self, event: ev.ShotsCounted) -> None:
        """Replace the shots of the round. A restore drops them together with the round."""
        # An empty report may have been overtaken, unless it is known to be the newest one.
        if event.shots or event.is_newest or event.round_number not in self.shots:
            self.shots[event.round_number] = {player_id: Shots(*counted) for player_id, counted in event.shots.items()}

    def _complete_shots(self) -> RoundShots:
        """Return the shots if all rounds are reported, else nothing: a partial sum would pass for a total."""
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
    ev.RoundDecided: Ledger._round_decided,
    ev.RoundRestored: Ledger._round_restored,
    ev.MapEnded: Ledger._map_ended,
    ev.LogGap: Ledger._log_lost,
    ev.ServerRestarted: Ledger._log_lost,
    ev.Damage: Ledger._damage,
    ev.Kill: Ledger._kill,
    ev.Death: Ledger._death,
    ev.PlayerGone: Ledger._player_gone,
    ev.Assist: Ledger._assist,
    ev.Blinded: Ledger._blinded,
    ev.GrenadeThrown: Ledger._grenade_thrown,
    ev.ChickenKilled: Ledger._chicken_killed,
    ev.BombPlanted: Ledger._bomb_planted,
    ev.BombDefused: Ledger._bomb_defused,
    ev.EconomyCounted: Ledger._economy_counted,
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
