"""The parts of the page of a match."""

from __future__ import annotations

import re

from matchpod.console.match_view import PARTS, RosterTeam
from matchpod.console.rendering import fragment
from matchpod.core.model import Side, Team
from matchpod.core.progress import RosterPlayer


def roster_team(team: Team, name: str, side: Side | None) -> RosterTeam:
    return RosterTeam(team=team, name=name, side=side, players=[RosterPlayer(steam_id=f"id of {name}", team=team)])


def test_roster_says_which_side_each_team_plays_on() -> None:
    teams = [roster_team(Team.TEAM1, "Owls", Side.T), roster_team(Team.TEAM2, "Foxes", Side.CT)]
    shown = fragment(PARTS, "roster", teams, {}, True).decode()
    heads = re.findall(r'<bdi class="name">(\w+)</bdi> <span class="side (\w+)">(\w+)</span></th>', shown)
    assert heads == [("Owls", "t", "T"), ("Foxes", "ct", "CT")]
    assert "team1" not in re.sub(r'class="mark team1"', "", shown)  # a player has no colour of a team
