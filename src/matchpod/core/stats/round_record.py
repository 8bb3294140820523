"""Record one round: its winner and times, the counters of each player, and the order in which players dropped out.

Records are written while the round is played. Statistics of the whole round (clutches, trades, KAST) are computed by
`round_totals` when the round closes.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from cs2_protocol.game import PlayerId, RoundEndReason, Side, Team
from matchpod.core.events import EconomyCounted, LineupGrown, RoundDecided, RoundStarted
from matchpod.core.stats.player_round import PlayerRound

MAX_FALLS = 128
"""Maximum number of falls per round, and of attackers whose damage is stored. A server has at most 64 players, but a
log can contain forged ids."""

MAX_ROWS = 80_000
"""Maximum number of rows per map. A round has a row for each player, and for each of their weapons, victims, falls and
amounts of money. 32 players who play rounds for six hours have 60,000 rows; a day of deathmatch with a thousand players
has 20,000. A row takes up to half a kilobyte."""

ASSIST_DAMAGE = 40
"""Minimum damage by an enemy for an assist, if the victim later dies by their own grenade."""


class Fall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A player dropped out of the round: killed, dead without a killer (suicide, bomb), or left the server.

    `is_death` is False if the game does not count a death: a player left, or was killed by the bomb after the decision.
    """

    at_ms: int
    victim: PlayerId
    killer: PlayerId | None = None
    is_enemy: bool = False
    is_death: bool = True
    weapon: str = ""
    helper: PlayerId | None = None
    """The enemy who gets an assist because the player died by their own grenade. The game counts such an assist without
    logging it (3 of 3 real cases)."""
    has_left: bool = False


class Plant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The bomb was planted; the site is None if the log does not name it."""

    at_ms: int
    player_id: PlayerId
    site: str | None = None


class Defuse(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The bomb was defused; the player is None if unknown."""

    at_ms: int
    player_id: PlayerId | None = None


class Shots(msgspec.Struct, array_like=True, gc=False):
    """Shots counted by a plugin."""

    fired: int = 0
    hit: int = 0


class RoundDetails(msgspec.Struct, array_like=True):
    """Damage and money of a round. Only the rounds view reads them."""

    damage_to: dict[PlayerId, dict[PlayerId, int]] = {}
    """Health that each enemy lost, by attacker and victim; not stored in a deathmatch."""
    money: dict[PlayerId, int] = {}
    """Money at the start of freeze time."""
    spent: dict[PlayerId, int] = {}
    equipment: dict[PlayerId, int] = {}
    """Value of the equipment that was carried out of the buy zone."""


class RoundRecord(msgspec.Struct, omit_defaults=True):
    """One round. `is_started` is False if its start is not in the log. Fields that are not in the log are None."""

    number: int
    team1: tuple[PlayerId, ...] = ()
    team2: tuple[PlayerId, ...] = ()
    is_started: bool = False
    is_decided: bool = False
    is_cut: bool = False
    """True if lines were lost since the record was opened."""
    unseen: tuple[PlayerId, ...] = ()
    """Players whom no log line has mentioned since lines were lost before the round."""
    winner: Team | None = None
    started_at_ms: int | None = None
    decided_at_ms: int | None = None
    team1_side: Side | None = None
    winner_side: Side | None = None
    reason: RoundEndReason | None = None
    score: tuple[int, int] | None = None
    # Number of falls when the round was decided; None until then.
    falls_when_decided: int | None = None
    # True if players respawn (deathmatch). Only kills are stored in this case, not falls, as rounds have no meaning.
    has_respawns: bool = False
    players: dict[PlayerId, PlayerRound] = {}
    falls: list[Fall] = []
    respawn_kills: dict[PlayerId, dict[str, int]] = {}
    plant: Plant | None = None
    defuse: Defuse | None = None
    details: RoundDetails | bytes = msgspec.field(default_factory=RoundDetails)
    """The details, compressed to a tenth of their size once the round is closed. Otherwise they would be half of the
    record."""
    has_money_lines: bool = False
    # True if the game printed its own statistics after this round.
    has_game_counts: bool = False
    # The maximum number of rows stored for this round, and the number of its rows, including those not stored.
    max_rows: int = MAX_ROWS
    rows: int = 0

    def pack(self) -> None:
        """Compress the details, once the round is closed."""
        if isinstance(self.details, RoundDetails):
            self.details = zlib.compress(_ENCODER.encode(self.details), level=1)

    def read_details(self) -> RoundDetails:
        """Return the details, which the caller must not change."""
        return self.details if isinstance(self.details, RoundDetails) else _unpacked(self.details)

    def _details(self) -> RoundDetails:
        """Return the details, decompressed if necessary, so that they can be changed."""
        if isinstance(self.details, bytes):
            self.details = _unpacked(self.details)
        return self.details

    def start(self, event: RoundStarted) -> None:
        """Start the round with its line-ups, at the end of freeze time."""
        self.is_started = True
        self.started_at_ms, self.team1_side = event.at_ms, event.team1_side if event.is_certain else None
        self.team1, self.team2, self.unseen = event.team1, event.team2, event.unseen
        for player_id in event.team1 + event.team2:
            self.counts(player_id).rounds_played = 1

    def add_to_lineup(self, event: LineupGrown) -> None:
        """Add a player who was on the server at the start of the round, but was first mentioned later."""
        is_known = event.was_unseen and event.player_id in self.unseen
        if not self.is_started or (self.is_decided and not is_known) or self.team_of(event.player_id) is not None:
            return
        self.unseen = tuple(player_id for player_id in self.unseen if player_id != event.player_id)
        if event.team is Team.TEAM1:
            self.team1 = (*self.team1, event.player_id)
        else:
            self.team2 = (*self.team2, event.player_id)
        self.counts(event.player_id).rounds_played = 1

    def decide(self, event: RoundDecided) -> None:
        """Record the winner and the score, and the number of falls before the decision."""
        self.is_decided = True
        self.decided_at_ms, self.reason = event.at_ms, event.reason
        self.winner, self.winner_side = event.winner, event.winner_side
        self.score = (event.team1_score, event.team2_score)
        if event.winner_side is not None:
            # If log lines were lost, the sides known at the start may be wrong, or still unknown.
            sides = {Team.TEAM1: event.winner_side, Team.TEAM2: event.winner_side.other, None: None}
            self.team1_side = sides[event.winner]
        self.falls_when_decided = len(self.falls)

    def counts(self, player_id: PlayerId) -> PlayerRound:
        """Return the player's counters, created on first use. They are not stored if the map has too many rows."""
        counts = self.players.get(player_id)
        if counts is None:
            counts = PlayerRound()
            if self._add_row():
                self.players[player_id] = counts
        return counts

    def weapon_kills(self) -> dict[PlayerId, dict[str, int]]:
        """Return each player's kills of enemies by weapon."""
        if self.has_respawns:
            return self.respawn_kills
        found: dict[PlayerId, dict[str, int]] = {}
        for fall in self.falls:
            if fall.killer is not None and fall.is_enemy:
                weapons = found.setdefault(fall.killer, {})
                weapons[fall.weapon] = weapons.get(fall.weapon, 0) + 1
        return found

    def add_weapon_kill(self, killer: PlayerId, weapon: str) -> None:
        """Count a kill of an enemy by its weapon if players respawn; otherwise the falls contain the weapons."""
        if not self.has_respawns:
            return
        weapons = self.respawn_kills.get(killer)
        if weapons is not None and weapon in weapons:
            weapons[weapon] += 1
        elif self._add_row():
            self.respawn_kills.setdefault(killer, {})[weapon] = 1

    def _add_row(self) -> bool:
        """Count a row; return False if there are too many rows to store it."""
        self.rows += 1
        return self.rows <= self.max_rows

    def add_damage(self, attacker: PlayerId, victim: PlayerId, lost: int) -> None:
        damage_to = self._details().damage_to
        victims = damage_to.get(attacker)
        if victims is not None and victim in victims:
            victims[victim] += lost
        elif (victims is not None or len(damage_to) < MAX_FALLS) and self._add_row():
            damage_to.setdefault(attacker, {})[victim] = lost

    def helper_against(self, victim: PlayerId) -> PlayerId | None:
        """Return the enemy on the server who did most damage to a player, if the damage is enough for an assist.

        None if players respawn, because the damage may be from an earlier life.
        """
        if self.has_respawns:
            return None
        gone = {fall.victim for fall in self.falls if fall.has_left}
        damage_to = self._details().damage_to
        damage = {attacker: victims.get(victim, 0) for attacker, victims in damage_to.items() if attacker not in gone}
        helper = max(damage, key=damage.__getitem__, default="")
        return helper if damage.get(helper, 0) >= ASSIST_DAMAGE else None

    def count_economy(self, event: EconomyCounted) -> None:
        """Replace the money and equipment of the round; each event contains all known values."""
        details = self._details()
        before = len(details.money) + len(details.spent) + len(details.equipment)
        self.rows += len(event.money) + len(event.spent) + len(event.equipment) - before
        if self.rows > self.max_rows:
            return
        details.money, details.spent, details.equipment = event.money, event.spent, event.equipment
        self.has_money_lines = event.has_money_lines

    def is_out(self, player_id: PlayerId) -> bool:
        """True if the player dropped out of this round."""
        return any(fall.victim == player_id for fall in self.falls)

    def death_by(self, cause: str, at_ms: int, player_id: PlayerId) -> Fall | None:
        """Return the death of a player at this time by this cause, without a killer; None if there is none."""
        for fall in reversed(self.falls):
            if (fall.at_ms, fall.victim, fall.killer, fall.weapon) == (at_ms, player_id, None, cause):
                return fall if fall.is_death else None
        return None

    def kill_leaver(self, at_ms: int, player_id: PlayerId, cause: str) -> None:
        """Count the death of a player who was alive when they left at this time; the game counts it too."""
        for index, fall in enumerate(self.falls):
            if (fall.at_ms, fall.victim) == (at_ms, player_id) and fall.has_left and not fall.is_death:
                self.falls[index] = msgspec.structs.replace(fall, is_death=True, weapon=cause)
                self.counts(player_id).deaths += 1

    def add_fall(self, fall: Fall) -> None:
        """Record a fall. A second death of a player proves that players respawn, so falls are no longer stored."""
        if not self.has_respawns and (len(self.falls) >= MAX_FALLS or not self._add_row()):
            self._stop_storing_falls()
        if fall.is_death:
            counts = self.counts(fall.victim)
            if counts.deaths > 0:
                self._stop_storing_falls()
            counts.deaths += 1
        if not self.has_respawns:
            self.falls.append(fall)

    def _stop_storing_falls(self) -> None:
        self.respawn_kills = self.weapon_kills()
        self.has_respawns = True
        self.falls.clear()

    def remove_suicides(self, since_ms: int) -> None:
        """Remove the falls without a killer since this time, and the deaths counted for them."""
        removed = [fall for fall in self.falls if fall.killer is None and fall.at_ms >= since_ms]
        for fall in removed:
            self.falls.remove(fall)
            if fall.is_death:
                self.counts(fall.victim).deaths -= 1
            if fall.helper is not None:
                self.counts(fall.helper).assists -= 1

    def alive(self, team: Team) -> set[PlayerId]:
        """Return the players of a line-up who were alive and present at the decision.

        Before the decision, return the players who are alive and present now.
        """
        fallen = {fall.victim for fall in self.falls[: self.falls_when_decided]}
        return set(self.team1 if team is Team.TEAM1 else self.team2) - fallen

    def first_kill(self) -> Fall | None:
        """Return the first kill of an enemy before the decision."""
        falls = self.falls[: self.falls_when_decided]
        return next((fall for fall in falls if fall.killer is not None and fall.is_enemy), None)

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return the team whose line-up has the player; None if neither team has."""
        if player_id in self.team1:
            return Team.TEAM1
        return Team.TEAM2 if player_id in self.team2 else None


def _unpacked(packed: bytes) -> RoundDetails:
    return _DECODER.decode(zlib.decompress(packed))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(RoundDetails)
