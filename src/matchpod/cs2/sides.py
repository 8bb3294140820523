"""Track which players belong to which team, and which side each team is on.

Listed players belong to the team that lists them, all others to the team on whose side they were when a round began.
When freeze time starts, the side of team1 is decided by a majority vote of the players' sides, because at halftime the
server moves players one by one. When a round starts or ends, players seen since the last round vote again, in case
lines were lost. The score is a second source: no team's score decreases, and at halftime the game swaps the two
numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cs2_protocol.game import PlayerId, Side, Team, is_human
from matchpod.core.match.roster import Roster
from matchpod.core.model import GameSettings
from matchpod.cs2.plugin_names import plain_name, plugin_name, shown_name

MAX_PLAYERS = 256
"""Maximum number of players on the sides, to limit the work per vote. A server has at most 64; ids may be forged."""

MAX_MEMBERS = 1024
"""Maximum number of players whose team is stored: far more than join a server during one match."""


class SideTracker(msgspec.Struct):
    """The players, sides and teams of one server."""

    listed: dict[PlayerId, Team] = {}
    guests: dict[PlayerId, None] = {}
    """Spectators and coaches."""
    names: dict[Team, str] = {}
    """The names of the teams, as the match plugin displays them."""
    members: dict[PlayerId, Team] = {}
    player_sides: dict[PlayerId, Side] = {}
    seen: dict[PlayerId, Side] = {}
    """The sides of players seen since the last round was decided."""
    unproven: dict[PlayerId, None] = {}
    """Players on a side whom no log line has mentioned since lines were lost. They may have left in the meantime."""
    team1_side: Side = Side.CT
    is_doubtful: bool = False
    """True if log lines were lost and the sides have not been confirmed since: the teams may have changed sides."""

    @staticmethod
    def of(settings: GameSettings) -> SideTracker:
        """Return the sides at the start of a match, without players. Team1 starts as CT."""
        shown = {team: shown_name(settings, team) for team in Team}
        sides = SideTracker(names={team: plugin_name(team, name) for team, name in shown.items() if name})
        sides.follow(Roster.of(settings))
        return sides

    def follow(self, roster: Roster) -> None:
        """Apply a changed roster. People who no longer play are removed from the sides."""
        self.listed = {player: team for player in roster.players if (team := roster.team_of(player))}
        self.guests = dict.fromkeys(roster.guests())
        for player_id in self.guests:
            self.set_side(player_id, None)
            self.members.pop(player_id, None)

    @property
    def has_humans(self) -> bool:
        return any(map(is_human, self.player_sides))

    @property
    def is_certain(self) -> bool:
        """True if the sides of all players are certain. In matches without a roster, lost lines make them uncertain."""
        return not self.is_doubtful or (bool(self.listed) and self.seen.keys() >= self.player_sides.keys())

    def mark_doubtful(self) -> None:
        """Record that log lines were lost: players may have left, and the teams may have changed sides."""
        self.seen.clear()
        self.unproven = dict.fromkeys(self.player_sides)
        self.is_doubtful = bool(self.listed or self.members)

    def set_side(self, player_id: PlayerId, side: Side | None) -> None:
        """Set the side of a player who is on the server. None removes the player from both sides."""
        self.unproven.pop(player_id, None)
        if side is None or player_id in self.guests:
            self.player_sides.pop(player_id, None)
            self.seen.pop(player_id, None)
        elif player_id in self.player_sides or len(self.player_sides) < MAX_PLAYERS:
            self.player_sides[player_id] = self.seen[player_id] = side

    def clear_sides(self) -> None:
        """Remove all players from the sides for a map change. Team1 starts as CT, and team membership is kept."""
        self.player_sides.clear()
        self.seen.clear()
        self.unproven.clear()
        self.team1_side, self.is_doubtful = Side.CT, False

    def team_of(self, player_id: PlayerId) -> Team | None:
        """Return a player's team: from the roster, or else from the last line-up, or else from their current side."""
        team = self.listed.get(player_id) or self.members.get(player_id)
        if team is None and (side := self.player_sides.get(player_id)) is not None:
            return self.team_on(side)
        return team

    def team_on(self, side: Side) -> Team:
        return Team.TEAM1 if side is self.team1_side else Team.TEAM2

    def by_team(self, ct: int, t: int) -> tuple[int, int]:
        """Convert a score by side to a score by team."""
        return (ct, t) if self.team1_side is Side.CT else (t, ct)

    def names_by_team(self, names: Mapping[Side, str | None]) -> tuple[str | None, str | None]:
        return names.get(self.team1_side), names.get(self.team1_side.other)

    def decide_start_side(self, side_names: Mapping[Side, str | None]) -> None:
        """Set team1's side when a map goes live: from the listed players, or else the team names, or else a vote."""
        balance = 0 if self.is_doubtful else self._vote_balance(self.listed) or self._name_balance(side_names)
        if balance:
            self._set_team1_side(Side.CT if balance > 0 else Side.T)
        else:
            self.vote()

    def vote(self, *, is_seen_only: bool = False) -> bool:
        """Set team1's side by a majority vote of the players' sides; True if the teams changed sides.

        A tie, or a vote without voters, changes nothing. With `is_seen_only`, only players seen since the last round
        vote, and the lead in votes must exceed half of all players, because the vote may overrule an earlier vote.
        The same rule applies after lost lines; it is then also enough if all listed players seen since the loss agree.
        """
        people = {player: team for player, team in self.members.items() if is_human(player)}
        for voters in (self.listed, people, self.members):
            there = [player for player in self.player_sides if player in voters]
            if any(player not in self.unproven for player in there):
                known = len(there)
                balance = self._vote_balance(voters, is_seen_only=is_seen_only or self.is_doubtful)
                is_enough = 2 * abs(balance) > known
                if self.is_doubtful and voters is self.listed:
                    is_enough |= 0 < abs(balance) == sum(player in voters for player in self.seen)
                elif not self.is_doubtful and not is_seen_only:
                    is_enough = balance != 0
                return is_enough and self._set_team1_side(Side.CT if balance > 0 else Side.T)
        return False

    def follow_score(self, by_side: tuple[int, int], by_team: tuple[int, int]) -> bool:
        """Set team1's side if the score fits only one side, as no score decreases. True if the teams changed sides."""
        as_ct, as_t = (all(map(int.__le__, by_team, score)) for score in (by_side, by_side[::-1]))
        return as_ct != as_t and self._set_team1_side(Side.CT if as_ct else Side.T)

    def lineups(self) -> tuple[tuple[PlayerId, ...], tuple[PlayerId, ...]]:
        """Return the current players of both teams. Unlisted players are assigned to the team of their side.

        While the sides are in doubt, the members of the teams do not change. Players who may have left are in neither
        team.
        """
        if len(self.members) > MAX_MEMBERS:
            self.members.clear()
        members = dict(self.members) if self.is_doubtful else {}
        teams: dict[Team, list[PlayerId]] = {Team.TEAM1: [], Team.TEAM2: []}
        for player_id, side in self.player_sides.items():
            if player_id in self.unproven:
                continue
            team = self.listed.get(player_id) or members.get(player_id)
            if team is None:
                team = self.team_on(side)
                if not members:
                    self.members[player_id] = team
            teams[team].append(player_id)
        return tuple(teams[Team.TEAM1]), tuple(teams[Team.TEAM2])

    def _vote_balance(self, voters: Mapping[PlayerId, Team], *, is_seen_only: bool = False) -> int:
        """Return the number of votes for team1 as CT, minus the number of votes for team1 as T."""
        balance = 0
        for player_id, side in self.player_sides.items():
            team = voters.get(player_id)
            is_voter = player_id in self.seen if is_seen_only else player_id not in self.unproven
            if team is not None and is_voter:
                balance += 1 if (team is Team.TEAM1) == (side is Side.CT) else -1
        return balance

    def _name_balance(self, side_names: Mapping[Side, str | None]) -> int:
        shown = (plain_name(side_names.get(Side.CT) or ""), plain_name(side_names.get(Side.T) or ""))
        ours = (self.names.get(Team.TEAM1, ""), self.names.get(Team.TEAM2, ""))
        if not all(ours) or ours[0] == ours[1]:
            return 0
        return (shown == ours) - (shown == ours[::-1])

    def _set_team1_side(self, team1_side: Side) -> bool:
        has_moved = team1_side is not self.team1_side
        if has_moved and self.is_doubtful:  # players not seen since the loss have moved too
            moved = {player: side.other for player, side in self.player_sides.items() if player not in self.seen}
            self.player_sides.update(moved)
        self.team1_side, self.is_doubtful = team1_side, False
        return has_moved
