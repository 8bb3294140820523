"""What has everybody done on this map so far? A fold over events, one round at a time.

Nothing counts before the map is live or after it ended. A restore drops rounds, so every number is kept by round and
only summed when asked for. What is known to be missing is remembered, never guessed. The whole ledger is plain data:
written out and read back at any point, it goes on as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from matchpod.core import events as ev
from matchpod.core.model import PlayerId
from matchpod.core.stats import crosscheck
from matchpod.core.stats.crosscheck import Discrepancy
from matchpod.core.stats.player_line import PlayerLine, sum_rounds
from matchpod.core.stats.round_record import Fall, PlayerRound, RoundRecord, Shots
from matchpod.core.stats.settlement import settle
from matchpod.core.stats.weapons import PISTOLS, SNIPERS, UTILITY, is_knife

FULL_HEALTH = 100

# No map lasts as long, overtime included; a larger number in a log must not make a list of that length.
MAX_ROUND_NUMBER = 500

# A restore kills everybody before it is told, in the same tick: those are not deaths of the game. Log files stamp
# whole seconds, and a tick can lie on both sides of one.
RESTORE_MOMENT_MS = 1000

_THROWN = {
    ev.GrenadeKind.HE: "he_thrown",
    ev.GrenadeKind.FLASH: "flash_thrown",
    ev.GrenadeKind.SMOKE: "smoke_thrown",
    ev.GrenadeKind.MOLLY: "molly_thrown",
    ev.GrenadeKind.DECOY: "decoy_thrown",
}


class Phase(StrEnum):
    """Whether what happens counts."""

    BEFORE = "before"
    LIVE = "live"
    ENDED = "ended"


class LiveCount(msgspec.Struct, frozen=True, gc=False):
    """What the live view shows of a player; flash assists are assists here, as on the scoreboard."""

    kills: int = 0
    deaths: int = 0
    assists: int = 0


def health_lost(damage: int, before: int, after: int) -> int:
    """How much health a hit really took.

    The log prints damage without its fraction, so the fall in health is up to 1 more; summed over a real match it
    equals the game's own total exactly (10,341), where the printed damage capped at the health is 1.5 % short. The
    printed damage stays the limit: health lost in a fall must not go to the next attacker.
    """
    if after > before:  # more health than we knew of: only the hit itself is certain
        return damage
    return min(damage + 1, before - after)


class Ledger(msgspec.Struct, omit_defaults=True):
    """The statistics of one map."""

    is_free_for_all: bool = False
    has_respawns: bool = False
    phase: Phase = Phase.BEFORE
    rounds: list[RoundRecord] = []
    open_round: RoundRecord | None = None
    missing_rounds: list[int] = []
    """Rounds that were played but never told."""
    torn_rounds: list[int] = []
    """Rounds of which a part was lost."""
    discrepancies: list[Discrepancy] = []
    health: dict[PlayerId, int] = {}
    died_at_ms: dict[PlayerId, int] = {}
    shots_reported: dict[PlayerId, Shots] = {}

    def apply(self, event: ev.Event) -> None:
        """Fold one event; those that say nothing about statistics change nothing."""
        handlers = _WHILE_LIVE if self.phase is Phase.LIVE else _WHILE_NOT_LIVE[self.phase]
        handler = handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    @property
    def is_complete(self) -> bool:
        """False when the numbers lack something that was played."""
        return not self.missing_rounds and not self.torn_rounds

    def lines(self) -> list[PlayerLine]:
        """Everybody who stood in a line-up or did something, most kills first, with the round being played."""
        rounds = self.rounds
        if self.open_round is not None:
            # Settled as a copy: reading must not change what is kept.
            players = {player_id: msgspec.structs.replace(row) for player_id, row in self.open_round.players.items()}
            provisional = msgspec.structs.replace(self.open_round, players=players)
            settle(provisional)
            rounds = [*rounds, provisional]
        return sum_rounds(rounds, has_teams=not self.is_free_for_all)

    def live_counts(self) -> dict[PlayerId, LiveCount]:
        """Kills, deaths and assists of everybody, with the round being played; cheaper than `lines`."""
        totals: dict[PlayerId, tuple[int, int, int]] = {}
        for record in (*self.rounds, *(() if self.open_round is None else (self.open_round,))):
            for player_id, row in record.players.items():
                kills, deaths, assists = totals.get(player_id, (0, 0, 0))
                totals[player_id] = (
                    kills + row.kills,
                    deaths + row.deaths,
                    assists + row.assists + row.flash_assists,
                )
        return {player_id: LiveCount(*counts) for player_id, counts in totals.items()}

    def player_ids(self) -> set[PlayerId]:
        """Everybody who has a line."""
        records = (*self.rounds, *(() if self.open_round is None else (self.open_round,)))
        return {player_id for record in records for player_id in record.players}

    # --- the flow of a map --------------------------------------------------------------------------------------

    def _map_live(self, event: ev.MapLive) -> None:
        fresh = Ledger(is_free_for_all=self.is_free_for_all, has_respawns=self.has_respawns, phase=Phase.LIVE)
        for name in self.__struct_fields__:
            setattr(self, name, getattr(fresh, name))
        self._miss_before(event.rounds_played + 1)

    def _round_started(self, event: ev.RoundStarted) -> None:
        number, record = event.round_number, self.open_round
        self.health.clear()
        self.died_at_ms.clear()
        if record is not None and record.number == number and not record.is_started:
            record.start(event.team1, event.team2)
            return
        if record is not None and (record.is_decided or record.number < number):
            self._close()
        if self.open_round is not None or number <= self._last_number():
            # A number that comes again is a round played again, restore or not: the newer one counts.
            self._drop_after(number - 1)
        self._open(number).start(event.team1, event.team2)

    def _round_decided(self, event: ev.RoundDecided) -> None:
        number, record = event.round_number, self.open_round
        if record is not None and record.number < number:
            if record.is_started:
                self._close()
            else:  # opened by what happened in it, under a guessed number
                record.number = number
                self._miss_before(number)
        if self.open_round is None and number > self._last_number():
            self._open(number)
        record = self.open_round
        if record is None or record.number != number or record.is_decided:
            return
        if not record.is_started and not record.has_respawns:
            self._tear()
        record.decide(event.winner)

    def _round_restored(self, event: ev.RoundRestored) -> None:
        if self.open_round is not None and self.open_round.is_decided:
            self._close()
        self._drop_after(event.rounds_kept)
        self.phase = Phase.LIVE
        if self.rounds:
            self.rounds[-1].forget_suicides(event.at_ms - RESTORE_MOMENT_MS)
            settle(self.rounds[-1])
        self._miss_before(event.rounds_kept + 1)

    def _map_ended(self, event: ev.MapEnded) -> None:
        if not event.is_complete:
            self._tear()
        self._close(is_loss=False)  # a deathmatch is never decided, and an end can cut a round
        self.phase = Phase.ENDED

    def _log_lost(self, _event: ev.LogGap | ev.ServerRestarted) -> None:
        self._tear()

    def _open(self, number: int) -> RoundRecord:
        self._miss_before(number)
        self.open_round = RoundRecord(number, has_respawns=self.has_respawns or self.is_free_for_all)
        return self.open_round

    def _close(self, *, is_loss: bool = True) -> None:
        """Settle the open round. One that nobody decided lost its end, unless the map ended with it."""
        record = self.open_round
        if record is None:
            return
        if is_loss and not record.is_decided:
            self._tear()
        self.open_round = None
        settle(record)
        self.rounds.append(record)

    def _drop_after(self, number: int) -> None:
        self.open_round = None
        self.rounds = [record for record in self.rounds if record.number <= number]
        self.missing_rounds = [missing for missing in self.missing_rounds if missing <= number]
        self.torn_rounds = [torn for torn in self.torn_rounds if torn <= number]
        self.discrepancies = [found for found in self.discrepancies if found.round_number <= number]

    def _last_number(self) -> int:
        return max([0, *self.missing_rounds[-1:], *(record.number for record in self.rounds[-1:])])

    def _miss_before(self, number: int) -> None:
        """Every round below this number was played: remember the ones we never saw."""
        first = self._last_number() + 1
        self.missing_rounds.extend(range(first, min(number, MAX_ROUND_NUMBER)))

    def _tear(self) -> None:
        number = self._last_number() + 1 if self.open_round is None else self.open_round.number
        if number not in self.torn_rounds:
            self.torn_rounds.append(number)

    # --- combat -------------------------------------------------------------------------------------------------

    def _record(self) -> RoundRecord:
        """The open round; without one (deathmatch, a lost start) what happens opens it."""
        return self.open_round or self._open(self._last_number() + 1)

    def _counts(self, player_id: PlayerId) -> PlayerRound:
        return self._record().counts(player_id)

    def _damage(self, event: ev.Damage) -> None:
        victim = event.victim
        before = self.health.get(victim, FULL_HEALTH)
        # A hit on the dead is a late pellet of the same moment; later, or with health left, he has come back.
        if before <= 0 and (event.health > 0 or event.at_ms != self.died_at_ms.get(victim)):
            before = FULL_HEALTH
        self.health[victim] = event.health
        if event.health <= 0:
            self.died_at_ms[victim] = event.at_ms
        if not event.is_enemy:
            return
        counts = self._counts(event.attacker)
        lost = health_lost(event.damage, before, event.health)
        counts.damage += lost
        if event.weapon in UTILITY:
            counts.utility_damage += lost

    def _kill(self, event: ev.Kill) -> None:
        record, killer, weapon = self._record(), event.killer, event.weapon
        self.health[event.victim] = 0
        self.died_at_ms[event.victim] = event.at_ms
        record.add_fall(Fall(event.at_ms, event.victim, killer, event.is_enemy))
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
        # In freeze time nobody dies in a round: a change of sides prints a suicide too. The bomb's victim is printed
        # twice, by the bomb and by the world.
        record, player_id = self.open_round, event.player_id
        if record is None or record.is_out(player_id):
            return
        self.health[player_id] = 0
        self.died_at_ms[player_id] = event.at_ms
        record.add_fall(Fall(event.at_ms, player_id))

    def _player_gone(self, event: ev.PlayerGone) -> None:
        record = self.open_round
        self.health.pop(event.player_id, None)  # where players come back, he comes back unhurt
        if record is not None and not record.is_out(event.player_id):
            record.add_fall(Fall(event.at_ms, event.player_id, is_death=False))

    def _assist(self, event: ev.Assist) -> None:
        if not event.is_enemy:
            return
        counts = self._counts(event.player_id)
        if event.is_flash:
            counts.flash_assists += 1
        else:
            counts.assists += 1

    def _blinded(self, event: ev.Blinded) -> None:
        # The log blinds the dead too: 4 of 20 enemies in a real match, and the game counts none of them.
        if event.is_enemy and not self._record().is_out(event.victim):
            self._counts(event.thrower).enemies_flashed += 1

    def _grenade_thrown(self, event: ev.GrenadeThrown) -> None:
        counts, name = self._counts(event.player_id), _THROWN[event.kind]
        setattr(counts, name, getattr(counts, name) + 1)

    def _chicken_killed(self, event: ev.ChickenKilled) -> None:
        self._counts(event.player_id).chicken_kills += 1

    def _bomb_planted(self, event: ev.BombPlanted) -> None:
        self._counts(event.player_id).bomb_plants += 1

    def _bomb_defused(self, event: ev.BombDefused) -> None:
        if event.player_id is not None:
            self._counts(event.player_id).bomb_defuses += 1

    # --- what others counted ------------------------------------------------------------------------------------

    def _game_counted(self, event: ev.GameCounted) -> None:
        """The game's totals for the rounds before this one: they end the round, name the MVPs and check our count."""
        played = event.round_number - 1
        if self.open_round is not None and (self.open_round.is_decided or self.open_round.number <= played):
            self._close()
        if self.open_round is None:
            self._miss_before(event.round_number)
        if not self.rounds or self.rounds[-1].number != played:
            return
        last = self.rounds[-1]
        last.mvps = {player.player_id: player.mvps for player in event.players}
        last.has_game_mvps = True
        if self.is_complete and not any(record.has_respawns for record in self.rounds):
            lines = sum_rounds(self.rounds)
            news = crosscheck.compare(lines, event.players, self.discrepancies, round_number=played)
            self.discrepancies.extend(news)

    def _mvp_named(self, event: ev.MvpNamed) -> None:
        record = self.open_round
        if record is None or record.number != event.round_number:
            record = next((closed for closed in self.rounds if closed.number == event.round_number), None)
        if record is not None and not record.has_game_mvps:
            record.mvps[event.player_id] = event.mvps

    def _mvp_named_late(self, event: ev.MvpNamed) -> None:
        # The plugin reports on a way of its own, so the last round's MVP may come after the end of the map.
        if self.rounds and self.rounds[-1].number == event.round_number:
            self._mvp_named(event)

    def _shots_counted(self, event: ev.ShotsCounted) -> None:
        """Credit what was added since the last report, so that a restore takes shots back with their round."""
        last = self.shots_reported.get(event.player_id, Shots())
        self.shots_reported[event.player_id] = Shots(event.fired, event.hit)
        record = self.open_round or (self.rounds[-1] if self.rounds else None)
        if record is None:
            return
        row = record.shots.setdefault(event.player_id, Shots())
        if event.fired < last.fired or event.hit < last.hit:
            # The count went back: the plugin followed a restore, or began anew. What we kept is already credited.
            last = self._shots_kept(event.player_id)
        row.fired += max(0, event.fired - last.fired)
        row.hit += max(0, event.hit - last.hit)

    def _shots_kept(self, player_id: PlayerId) -> Shots:
        records = (*self.rounds, *(() if self.open_round is None else (self.open_round,)))
        rows = [record.shots[player_id] for record in records if player_id in record.shots]
        return Shots(sum(row.fired for row in rows), sum(row.hit for row in rows))


# The handlers take an event of their own type, which a common signature cannot say.
_Handlers = dict[type[ev.Event], Callable[[Ledger, Any], None]]

_WHILE_LIVE: _Handlers = {
    ev.MapLive: Ledger._map_live,
    ev.RoundStarted: Ledger._round_started,
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
    ev.GameCounted: Ledger._game_counted,
    ev.MvpNamed: Ledger._mvp_named,
    ev.ShotsCounted: Ledger._shots_counted,
}

_WHILE_NOT_LIVE: dict[Phase, _Handlers] = {
    Phase.BEFORE: {ev.MapLive: Ledger._map_live},
    Phase.ENDED: {
        ev.MapLive: Ledger._map_live,
        ev.RoundRestored: Ledger._round_restored,
        ev.MvpNamed: Ledger._mvp_named_late,
    },
}
