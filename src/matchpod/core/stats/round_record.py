"""Record one round: the counters of each player, and the order in which players dropped out (`Fall`).

Records are written while the round is played. Statistics of the whole round (clutches, trades, KAST) are computed by
`round_totals` when the round closes.
"""

from __future__ import annotations

import msgspec

from matchpod.core.model import PlayerId, Team
from matchpod.core.stats.player_round import PlayerRound


class Fall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A player dropped out of the round: killed, dead without a killer (suicide, bomb), or left alive (no death)."""

    at_ms: int
    victim: PlayerId
    killer: PlayerId | None = None
    is_enemy: bool = False
    is_death: bool = True


class Shots(msgspec.Struct, array_like=True, gc=False):
    """Shots counted by a plugin."""

    fired: int = 0
    hit: int = 0


class RoundRecord(msgspec.Struct, omit_defaults=True):
    """One round. `is_started` is False if its start is not in the log."""

    number: int
    team1: tuple[PlayerId, ...] = ()
    team2: tuple[PlayerId, ...] = ()
    is_started: bool = False
    is_decided: bool = False
    winner: Team | None = None
    # Number of falls when the round was decided; None until then.
    falls_when_decided: int | None = None
    # Players respawn (deathmatch): totals of the whole round have no meaning, so no falls are stored.
    has_respawns: bool = False
    players: dict[PlayerId, PlayerRound] = {}
    falls: list[Fall] = []
    weapon_kills: dict[PlayerId, dict[str, int]] = {}
    # The game printed its own statistics after this round.
    has_game_counts: bool = False

    def start(self, team1: tuple[PlayerId, ...], team2: tuple[PlayerId, ...]) -> None:
        """Start the round with these line-ups, at the end of freeze time."""
        self.is_started = True
        self.team1, self.team2 = team1, team2
        for player_id in team1 + team2:
            self.counts(player_id).rounds_played = 1

    def decide(self, winner: Team | None) -> None:
        """Record the winner, and the number of falls before the decision."""
        self.is_decided = True
        self.winner = winner
        self.falls_when_decided = len(self.falls)

    def counts(self, player_id: PlayerId) -> PlayerRound:
        """Return the player's counters, created on first use."""
        counts = self.players.get(player_id)
        if counts is None:
            counts = self.players[player_id] = PlayerRound()
        return counts

    def is_out(self, player_id: PlayerId) -> bool:
        """True if the player dropped out of this round."""
        return any(fall.victim == player_id for fall in self.falls)

    def add_fall(self, fall: Fall) -> None:
        """Record a fall; a second death of a player proves that players respawn, so falls are no longer stored."""
        if fall.is_death:
            counts = self.counts(fall.victim)
            if counts.deaths > 0:
                self.has_respawns = True
                self.falls.clear()
            counts.deaths += 1
        if not self.has_respawns:
            self.falls.append(fall)

    def remove_suicides(self, since_ms: int) -> None:
        """Remove the falls without a killer since this time, and the deaths counted for them."""
        removed = [fall for fall in self.falls if fall.killer is None and fall.at_ms >= since_ms]
        for fall in removed:
            self.falls.remove(fall)
            if fall.is_death:
                self.counts(fall.victim).deaths -= 1

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return the team whose line-up has the player; None if neither has."""
        if player_id in self.team1:
            return Team.TEAM1
        return Team.TEAM2 if player_id in self.team2 else None
