"""Identify and name the players in a chart, and group them by team."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from cs2_protocol.game import Team
from matchpod.console.charts.parts import Mark, label
from matchpod.console.charts.wording import clean, shorten, team_class
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import Person

T = TypeVar("T")

_HEAD: Final = 24
"""Height of the heading with the name of a team."""
_HEAD_CHARS: Final = 24
_GAP: Final = 6


class Subject(msgspec.Struct, frozen=True):
    """A row or column of a chart: a player, a bot, or all unlisted players together."""

    key: str
    """The player's id; for a bot its name; empty for all unlisted players together."""
    name: str
    team: Team | None


def subject_of(person: Person) -> Subject:
    if person.steam_id is not None:
        return player_subject(person.steam_id, person.name, person.team)
    if not person.name:
        return Subject("", "unlisted players", None)
    name = clean(person.name, "nameless")
    return Subject(f"bot {person.team} {name}", f"{name} (bot)", person.team)


def player_subject(steam_id: str, name: str | None, team: Team | None) -> Subject:
    """Return a player as shown in a chart. If the name is unknown, the player's id is shown."""
    return Subject(steam_id, clean(name, clean(steam_id)), team)


def players_of(rounds: Iterable[StoredRound]) -> dict[str, Subject]:
    """Return all players who took part in these rounds, by id."""
    return {
        player.steam_id: player_subject(player.steam_id, player.name, player.team)
        for record in rounds
        for player in record.players
    }


def by_team(entries: Iterable[T], team_of: Callable[[T], Team | None]) -> list[tuple[Team | None, list[T]]]:
    """Group entries by team: team 1, team 2, then entries without a team. Empty groups are left out."""
    groups: dict[Team | None, list[T]] = {Team.TEAM1: [], Team.TEAM2: [], None: []}
    for entry in entries:
        groups[team_of(entry)].append(entry)
    return [(team, members) for team, members in groups.items() if members]


def team_names(team1_name: str | None, team2_name: str | None) -> dict[Team | None, str]:
    """Return the names of the teams; None is the key of the name for players without a team."""
    return {Team.TEAM1: clean(team1_name, "Team 1"), Team.TEAM2: clean(team2_name, "Team 2"), None: "No team"}


def rows_by_team(
    entries: Iterable[tuple[Subject, T]],
    draw: Callable[[Subject, T, float], list[Mark]],
    names: Mapping[Team | None, str],
    *,
    top: int,
    row: int,
) -> tuple[list[Mark], int]:
    """Return each team name with the rows of its players below it, and the y coordinate at which the last row ends."""
    marks: list[Mark] = []
    for team, members in by_team(entries, lambda entry: entry[0].team):
        marks.append(label(f"name {team_class(team)}", (0, top + 16), shorten(names[team], _HEAD_CHARS), names[team]))
        for index, (subject, numbers) in enumerate(members):
            marks += draw(subject, numbers, top + _HEAD + row * index)
        top += _HEAD + row * len(members) + _GAP
    return marks, top
