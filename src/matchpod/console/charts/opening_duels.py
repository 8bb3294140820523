"""Draw how often each player won or lost the first fight of a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.parts import (
    Cell,
    Drawing,
    Mark,
    Name,
    NumbersTable,
    bar,
    label,
    line,
    render_drawing,
    render_empty,
)
from matchpod.console.charts.people import MAX_SHOWN, Subject, by_team, players_of, subject_of, team_names
from matchpod.console.charts.wording import plural, shorten, team_class
from matchpod.core.views.round_shapes import StoredRound

_WIDTH: Final = 400
_AXIS: Final = 255
"""Where bars begin: to the left for fights that were lost, to the right for those that were won."""
_REACH: Final = 105
_ROW: Final = 24
_LEAST_SCALE: Final = 3
"""A count that has the longest bar at least."""


class _Duels(msgspec.Struct, frozen=True):
    subject: Subject
    won: int
    lost: int


def opening_duels(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the first kills and first deaths of each player, from the first kill of each round."""
    duels = _count(rounds)
    if not any(one.won or one.lost for one in duels):
        return render_empty("opening-duels", "No first kills yet.")
    names = team_names(team1_name, team2_name)
    unit = _REACH / max(_LEAST_SCALE, *(max(one.won, one.lost) for one in duels))
    body: list[Mark] = [label("tick end", (_AXIS - 6, 14), "◀ lost"), label("tick", (_AXIS + 6, 14), "won ▶")]
    y = 20
    for team, members in by_team(duels, lambda one: one.subject.team):
        body.append(label(f"name {team_class(team)}", (0, y + 16), shorten(names[team], 24), names[team]))
        for index, one in enumerate(members, start=1):
            body += _bars(one, y + _ROW * index, unit)
        y += _ROW * (len(members) + 1) + 6
    body.append(line("axis", (_AXIS, 20), (_AXIS, y)))
    title = "First fights of the rounds, won and lost by each player"
    return render_drawing("opening-duels", Drawing((_WIDTH, y), title, body), _table(duels, title, names))


def _count(rounds: Sequence[StoredRound]) -> list[_Duels]:
    subjects = players_of(rounds)
    won: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for one in rounds:
        if one.first_kill is None:
            continue
        killer, victim = subject_of(one.first_kill.killer), subject_of(one.first_kill.victim)
        subjects = {killer.key: killer, victim.key: victim} | subjects
        won[killer.key] += 1
        lost[victim.key] += 1
    duels = [_Duels(subject, won[key], lost[key]) for key, subject in subjects.items()]
    duels.sort(key=lambda one: (-one.won, one.lost, one.subject.name))
    return duels[:MAX_SHOWN]


def _bars(one: _Duels, y: float, unit: float) -> list[Mark]:
    name = one.subject.name
    title = f"{name}: won {plural(one.won, 'first fight')}, lost {one.lost}"
    return [
        label("name", (0, y + 16), shorten(name), name),
        bar("bar bad", (_AXIS - one.lost * unit, y + 4), (one.lost * unit, 16), title),
        bar("bar good", (_AXIS, y + 4), (one.won * unit, 16), title),
        label("value end", (_AXIS - one.lost * unit - 5, y + 16), str(one.lost)),
        label("value", (_AXIS + one.won * unit + 5, y + 16), str(one.won)),
    ]


def _table(duels: Sequence[_Duels], title: str, names: dict[Team | None, str]) -> NumbersTable:
    rows: list[list[Cell]] = [
        [Name(one.subject.name), Name(names[one.subject.team]), one.won, one.lost] for one in duels
    ]
    return NumbersTable(title, ["Player", "Team", "Won", "Lost"], rows)
