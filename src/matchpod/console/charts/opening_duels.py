"""Draw how many opening duels each player won and lost. The first kill of a round is its opening duel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from matchpod.console.charts.parts import MAX_PLAYERS, Cell, Mark, bar, label, line, render, render_drawing
from matchpod.console.charts.people import Subject, players_of, rows_by_team, subject_of, team_names
from matchpod.console.charts.wording import plural, shorten
from matchpod.core.views.round_shapes import StoredRound

_WIDTH: Final = 400
_AXIS: Final = 255
"""The x coordinate at which bars begin: lost duels extend to the left, won duels to the right."""
_REACH: Final = 105
_TOP: Final = 20
_ROW: Final = 24
_LEAST_SCALE: Final = 3
"""Minimum count for the scale of the bars: a full-length bar stands for this count or a higher maximum."""

Duels = tuple[int, int]
"""Numbers of duels that a player won and lost."""


def opening_duels(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the first kills and first deaths per player, according to the first kill of each round."""
    duels = _count(rounds)
    most = max((count for _, counts in duels for count in counts), default=0)
    if not most:
        return render("empty", "opening-duels", "No first kills yet.")
    names = team_names(team1_name, team2_name)
    draw = partial(_bars, unit=_REACH / max(_LEAST_SCALE, most))
    marks, height = rows_by_team(duels, draw, names, top=_TOP, row=_ROW)
    heads = [label("tick end", (_AXIS - 6, 14), "◀ lost"), label("tick", (_AXIS + 6, 14), "won ▶")]
    table: list[list[Cell]] = [["Player", "Team", "Won", "Lost"]]
    table += [[(subject.name, ""), (names[subject.team], ""), *counts] for subject, counts in duels]
    return render_drawing(
        "opening-duels",
        "First fights of the rounds, won and lost by each player",
        (_WIDTH, height),
        [*heads, *marks, line("axis", (_AXIS, _TOP), (_AXIS, height))],
        table=table,
    )


def _count(rounds: Sequence[StoredRound]) -> list[tuple[Subject, Duels]]:
    subjects = players_of(rounds)
    won: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for record in rounds:
        if record.first_kill is None:
            continue
        killer, victim = subject_of(record.first_kill.killer), subject_of(record.first_kill.victim)
        subjects = {killer.key: killer, victim.key: victim} | subjects
        won[killer.key] += 1
        lost[victim.key] += 1
    duels = [(subject, (won[key], lost[key])) for key, subject in subjects.items()]
    duels.sort(key=lambda entry: (-entry[1][0], entry[1][1], entry[0].name))
    return duels[:MAX_PLAYERS]


def _bars(subject: Subject, duels: Duels, y: float, *, unit: float) -> list[Mark]:
    won, lost = duels
    title = f"{subject.name}: won {plural(won, 'first fight')}, lost {lost}"
    return [
        label("name", (0, y + 16), shorten(subject.name), subject.name),
        bar("bar bad", (_AXIS - lost * unit, y + 4), (lost * unit, 16), title),
        bar("bar good", (_AXIS, y + 4), (won * unit, 16), title),
        label("value end", (_AXIS - lost * unit - 5, y + 16), str(lost)),
        label("value", (_AXIS + won * unit + 5, y + 16), str(won)),
    ]
