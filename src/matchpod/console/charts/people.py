"""Identify the players of a chart, give them a name, and sort them by team."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from cs2_protocol.game import Team
from matchpod.console.charts.wording import clean
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import Person

T = TypeVar("T")

MAX_SHOWN: Final = 32
"""Players in a chart, the first ones; a full server has fewer. A deathmatch with many guests may have more."""


class Subject(msgspec.Struct, frozen=True):
    """A player, all unlisted players, or a bot, as shown in a chart."""

    key: str
    """The player ID; for a bot its name; empty for all unlisted players."""
    name: str
    team: Team | None


def subject_of(person: Person) -> Subject:
    """Return the person as shown in a chart."""
    if person.steam_id is not None:
        return player_subject(person.steam_id, person.name, person.team)
    if not person.name:
        return Subject("", "unlisted players", None)
    name = clean(person.name, "nameless")
    return Subject(f"bot {person.team} {name}", f"{name} (bot)", person.team)


def player_subject(steam_id: str, name: str | None, team: Team | None) -> Subject:
    """Return a player as shown in a chart; a player without a name is shown with their ID."""
    return Subject(steam_id, clean(name, clean(steam_id)), team)


def players_of(rounds: Iterable[StoredRound]) -> dict[str, Subject]:
    """Return all players who took part in the rounds, by their IDs."""
    return {
        player.steam_id: player_subject(player.steam_id, player.name, player.team)
        for one in rounds
        for player in one.players
    }


def by_team(entries: Iterable[T], team_of: Callable[[T], Team | None]) -> list[tuple[Team | None, list[T]]]:
    """Group entries by team, the first team first and those without a team last. Groups are not empty."""
    groups: dict[Team | None, list[T]] = {Team.TEAM1: [], Team.TEAM2: [], None: []}
    for entry in entries:
        groups[team_of(entry)].append(entry)
    return [(team, members) for team, members in groups.items() if members]


def team_names(team1_name: str | None, team2_name: str | None) -> dict[Team | None, str]:
    """Return the names of the teams, also for players without a team."""
    names: Sequence[str] = clean(team1_name, "Team 1"), clean(team2_name, "Team 2")
    return {Team.TEAM1: names[0], Team.TEAM2: names[1], None: "No team"}
