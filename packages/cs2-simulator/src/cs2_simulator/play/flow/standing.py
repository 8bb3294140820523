"""Keep the phase, score, rounds and sides of a map, and log them.

Team 1 is the team named by `mp_teamname_1`. It begins a map as CT, unless the teams were swapped before.
The score is kept by team; log lines show it by side.
"""

from __future__ import annotations

from enum import StrEnum

from cs2_protocol.game import Side
from cs2_protocol.log_lines.world_lines import MatchScore, RoundEndNotice, TeamPlaying, TeamScored, WorldTriggered
from cs2_simulator.play.arena import Arena
from cs2_simulator.play.watcher import RoundEnd

WARMUP_ROUNDS = -1
"""Value of `RoundsPlayed` while no match is being played."""

SIDES = (Side.CT, Side.T)
"""The sides, in the order in which the game logs them."""


class GamePhase(StrEnum):
    LOADING = "loading"
    WARMUP = "warmup"
    KNIFE = "knife"
    LIVE = "live"
    OVER = "over"


class Standing:
    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.phase = GamePhase.LOADING
        self.score = (0, 0)
        self.rounds_played = 0
        self.team1_side = Side.CT
        self._first_side = Side.CT
        """The side on which team 1 begins."""
        self._logged_side = Side.CT
        """The side of team 1 in lines with team names, which show a change of sides only from the next round end on."""

    def reset(self, phase: GamePhase) -> None:
        """Start at 0:0, with the teams on their first sides."""
        self.set_to(phase, score=(0, 0), rounds_played=0, team1_side=self._first_side)

    def set_to(self, phase: GamePhase, *, score: tuple[int, int], rounds_played: int, team1_side: Side) -> None:
        self.phase = phase
        self._arena.is_map_over = False
        self.score = score
        self.rounds_played = rounds_played
        self.team1_side = self._logged_side = team1_side

    def reset_sides(self) -> None:
        self._first_side = Side.CT

    def reset_score(self) -> None:
        """Go to warmup after a map. Log lines still name the teams on their last sides."""
        self.phase = GamePhase.WARMUP
        self._arena.is_map_over = False
        self.score = (0, 0)
        self.rounds_played = 0

    def change_sides(self) -> None:
        """Move the teams to the other sides for the coming rounds."""
        self.team1_side = self.team1_side.other

    def swap_teams(self) -> None:
        """Move the teams to the other sides, on which they also begin the next match."""
        self._first_side = self._first_side.other
        self.team1_side = self._logged_side = self.team1_side.other

    def count_round(self, side: Side | None) -> None:
        """Count a round that was won by a side or drawn."""
        self.rounds_played += 1
        self._logged_side = self.team1_side
        team = self.team_on(side)
        self.score = (self.score[0] + (team == 1), self.score[1] + (team == 2))

    def team_on(self, side: Side | None) -> int | None:
        """Return the number of the team on a side, 1 or 2; None if `side` is None."""
        if side is None:
            return None
        return 1 if side is self.team1_side else 2

    def side_score(self, side: Side) -> int:
        return self.score[0 if side is self.team1_side else 1]

    def team_name(self, side: Side) -> str:
        return self._name_of(1 if side is self.team1_side else 2)

    def write_teams(self) -> None:
        for side in SIDES:
            name = self._logged_name(side)
            if name:
                self._arena.log.write(TeamPlaying(side, name, is_status=False))

    def write_status(self) -> None:
        arena = self._arena
        for side in SIDES:
            arena.log.write(TeamPlaying(side, self._logged_name(side) or None, is_status=True))
        rounds = self.rounds_played if self.phase is not GamePhase.WARMUP else WARMUP_ROUNDS
        ct, t = map(self.side_score, SIDES)
        arena.log.write(MatchScore(ct, t, arena.map_name, rounds))

    def write_scores(self, *, is_round_end: bool = False) -> None:
        """Log the two `scored` lines. At the end of a round, each player is counted twice in them, as in a real log."""
        for side in SIDES:
            count = len(self._arena.everyone_on(side)) * (2 if is_round_end else 1)
            self._arena.log.write(TeamScored(side, self.side_score(side), count))

    def write_round_end(self, end: RoundEnd) -> None:
        """Log the end of a round. The lines are in the order of the game."""
        ct, t = map(self.side_score, SIDES)
        self._arena.log.write(RoundEndNotice(end.side, end.notice, ct, t))
        self.write_scores(is_round_end=True)
        self.write_status()
        self._arena.log.write(WorldTriggered("Round_End"))

    def write_match_start(self) -> None:
        self._arena.log.write(WorldTriggered("Match_Start", self._arena.map_name))
        self.write_teams()

    def _logged_name(self, side: Side) -> str:
        return self._name_of(1 if side is self._logged_side else 2)

    def _name_of(self, team: int) -> str:
        return self._arena.variables.text(f"mp_teamname_{team}")
