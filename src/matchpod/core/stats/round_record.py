"""What happened in one round? Counters of each player, and who fell in which order.

Everything here is written while the round is played; what can only be said about a whole round (clutches, trades,
KAST) is worked out by `settlement` when it closes.
"""

from __future__ import annotations

import msgspec

from matchpod.core.model import PlayerId, Team


class PlayerRound(msgspec.Struct, array_like=True, gc=False):
    """One player's counters in one round. All are whole numbers, so that a map is the sum of its rounds.

    Written as arrays: that makes the snapshot of a map a third smaller.
    """

    rounds_played: int = 0
    kills: int = 0
    deaths: int = 0
    assists: int = 0
    flash_assists: int = 0
    headshots: int = 0
    damage: int = 0
    utility_damage: int = 0
    team_kills: int = 0
    pistol_kills: int = 0
    sniper_kills: int = 0
    knife_kills: int = 0
    chicken_kills: int = 0
    enemies_flashed: int = 0
    bomb_plants: int = 0
    bomb_defuses: int = 0
    he_thrown: int = 0
    flash_thrown: int = 0
    smoke_thrown: int = 0
    molly_thrown: int = 0
    decoy_thrown: int = 0
    # From here on: said about the whole round, by `settlement`.
    first_kills: int = 0
    first_deaths: int = 0
    trade_kills: int = 0
    traded_deaths: int = 0
    clutch_kills: int = 0
    clutch1v1: int = 0
    clutch1v2: int = 0
    clutch1v3: int = 0
    clutch1v4: int = 0
    clutch1v5: int = 0
    double_kills: int = 0
    triple_kills: int = 0
    quad_kills: int = 0
    aces: int = 0
    kast_rounds: int = 0


class Fall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Somebody dropped out of the round: killed, dead by his own hand (no killer), or gone alive (no death)."""

    at_ms: int
    victim: PlayerId
    killer: PlayerId | None = None
    is_enemy: bool = False
    is_death: bool = True


class Shots(msgspec.Struct, array_like=True, gc=False):
    """Shots that a plugin counted."""

    fired: int = 0
    hit: int = 0


class RoundRecord(msgspec.Struct, omit_defaults=True):
    """A round being played, or played. `is_started` is False where its start was never told."""

    number: int
    team1: tuple[PlayerId, ...] = ()
    team2: tuple[PlayerId, ...] = ()
    is_started: bool = False
    is_decided: bool = False
    winner: Team | None = None
    # How many had fallen when the round was decided; None until then.
    falls_when_decided: int | None = None
    # Players come back in this round (deathmatch): nothing can be said about it as a whole, so no falls are kept.
    has_respawns: bool = False
    players: dict[PlayerId, PlayerRound] = {}
    falls: list[Fall] = []
    weapon_kills: dict[PlayerId, dict[str, int]] = {}
    shots: dict[PlayerId, Shots] = {}
    # Running MVP totals of the map after this round, and whether the game itself printed them.
    mvps: dict[PlayerId, int] = {}
    has_game_mvps: bool = False

    def start(self, team1: tuple[PlayerId, ...], team2: tuple[PlayerId, ...]) -> None:
        """Freeze time is over and these players stand in the round."""
        self.is_started = True
        self.team1, self.team2 = team1, team2
        for player_id in team1 + team2:
            self.counts(player_id).rounds_played = 1

    def decide(self, winner: Team | None) -> None:
        """The round has its winner; who falls from now on falls after it."""
        self.is_decided = True
        self.winner = winner
        self.falls_when_decided = len(self.falls)

    def counts(self, player_id: PlayerId) -> PlayerRound:
        """The player's counters, made on first use."""
        counts = self.players.get(player_id)
        if counts is None:
            counts = self.players[player_id] = PlayerRound()
        return counts

    def is_out(self, player_id: PlayerId) -> bool:
        """True when the player fell in this round."""
        return any(fall.victim == player_id for fall in self.falls)

    def add_fall(self, fall: Fall) -> None:
        """Remember who fell; a second death of the same player proves that players come back here."""
        if fall.is_death:
            counts = self.counts(fall.victim)
            if counts.deaths > 0:
                self.has_respawns = True
                self.falls.clear()
            counts.deaths += 1
        if not self.has_respawns:
            self.falls.append(fall)

    def forget_suicides(self, since_ms: int) -> None:
        """Take back the falls without a killer from this moment on."""
        taken_back = [fall for fall in self.falls if fall.killer is None and fall.at_ms >= since_ms]
        for fall in taken_back:
            self.falls.remove(fall)
            if fall.is_death:
                self.counts(fall.victim).deaths -= 1

    def team_of(self, player_id: PlayerId) -> Team | None:
        """The team in whose line-up the player stands."""
        if player_id in self.team1:
            return Team.TEAM1
        return Team.TEAM2 if player_id in self.team2 else None
