"""How does the map stand, and how does the server say it? Phase, score, rounds and sides, and the lines that tell.

The first team is the one named by `mp_teamname_1`; it begins a map as CT, unless the teams were told to swap before.
The score is kept by team, every line shows it by side.
"""

from __future__ import annotations

from enum import StrEnum

from matchpod.core.model import Side
from matchpod.cs2.log_lines.world_lines import MatchScore, Notice, TeamPlaying, TeamScored, WorldTriggered
from matchpod.simulator.play.arena import Arena
from matchpod.simulator.play.watcher import RoundEnd

WARMUP_ROUNDS = -1
"""What `RoundsPlayed` says outside a match."""

SIDES = (Side.CT, Side.T)
"""In the order in which the log names them."""


class Phase(StrEnum):
    """What is being played."""

    LOADING = "loading"
    WARMUP = "warmup"
    KNIFE = "knife"
    LIVE = "live"
    OVER = "over"


class Standing:
    """The state of a map that everybody can see."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self.phase = Phase.LOADING
        self.score = (0, 0)
        self.rounds_played = 0
        self.team1_side = Side.CT
        self._first_side = Side.CT
        """Where team 1 begins."""
        self._named_side = Side.CT
        """Where the lines believe team 1 to be: they learn of changed sides only when the next round ends."""

    def reset(self, phase: Phase) -> None:
        """Begin from nothing, on the sides the teams were given."""
        self.set_to(phase, score=(0, 0), rounds_played=0, team1_side=self._first_side)

    def set_to(self, phase: Phase, *, score: tuple[int, int], rounds_played: int, team1_side: Side) -> None:
        """Begin from a given point."""
        self.phase = phase
        self.score = score
        self.rounds_played = rounds_played
        self.team1_side = self._named_side = team1_side

    def forget_sides(self) -> None:
        """The first team will begin as CT again."""
        self._first_side = Side.CT

    def forget_score(self) -> None:
        """Warmup follows a map, but the lines still name the teams as they stood."""
        self.phase = Phase.WARMUP
        self.score = (0, 0)
        self.rounds_played = 0

    def change_sides(self) -> None:
        """The teams go to the other sides, for the rounds that come."""
        self.team1_side = self.team1_side.other

    def swap_teams(self) -> None:
        """The teams go to the other sides, and will begin there too."""
        self._first_side = self._first_side.other
        self.team1_side = self._named_side = self.team1_side.other

    def count(self, side: Side | None) -> None:
        """A round was won by a side, or drawn."""
        self.rounds_played += 1
        self._named_side = self.team1_side
        team = self.team_on(side)
        self.score = (self.score[0] + (team == 1), self.score[1] + (team == 2))

    def team_on(self, side: Side | None) -> int | None:
        """Which team stands on a side: 1 or 2."""
        if side is None:
            return None
        return 1 if side is self.team1_side else 2

    def side_score(self, side: Side) -> int:
        """The score of the team on a side."""
        return self.score[0 if side is self.team1_side else 1]

    def team_name(self, side: Side) -> str:
        """The name of the team on a side; empty when it has none."""
        return self._name_of(1 if side is self.team1_side else 2)

    def write_teams(self) -> None:
        """`Team playing`, for each side with a name."""
        for side in SIDES:
            name = self._believed_name(side)
            if name:
                self._arena.log.write(TeamPlaying(side, name, is_status=False))

    def write_status(self) -> None:
        """The three `MatchStatus` lines."""
        arena = self._arena
        for side in SIDES:
            arena.log.write(TeamPlaying(side, self._believed_name(side) or None, is_status=True))
        rounds = self.rounds_played if self.phase is not Phase.WARMUP else WARMUP_ROUNDS
        ct, t = map(self.side_score, SIDES)
        arena.log.write(MatchScore(ct, t, arena.map_name, rounds))

    def write_scores(self, *, is_round_end: bool = False) -> None:
        """The two `scored` lines. At the end of a round every player counts twice, as in a real match of ten."""
        for side in SIDES:
            count = len(self._arena.on(side)) * (2 if is_round_end else 1)
            self._arena.log.write(TeamScored(side, self.side_score(side), count))

    def write_round_end(self, end: RoundEnd) -> None:
        """Everything a decision says, in the order of the game."""
        ct, t = map(self.side_score, SIDES)
        self._arena.log.write(Notice(end.side, end.notice, ct, t))
        self.write_scores(is_round_end=True)
        self.write_status()
        self._arena.log.write(WorldTriggered("Round_End"))

    def write_match_start(self) -> None:
        """`Match_Start` and who plays."""
        self._arena.log.write(WorldTriggered("Match_Start", self._arena.map_name))
        self.write_teams()

    def _believed_name(self, side: Side) -> str:
        return self._name_of(1 if side is self._named_side else 2)

    def _name_of(self, team: int) -> str:
        return self._arena.variables.text(f"mp_teamname_{team}")
