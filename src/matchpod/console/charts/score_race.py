"""Draw by how many rounds a team was ahead after each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.columns import WIDTH, Columns, place
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
from matchpod.console.charts.people import team_names
from matchpod.console.charts.wording import MISSING, shorten
from matchpod.core.views.round_shapes import StoredRound

_MIDDLE: Final = 134
_REACH: Final = 64
"""The height of the longest bar."""
_HEIGHT: Final = 232
_LEAST_SCALE: Final = 4
"""A lead that has the longest bar at least, so that a lead of one round does not look like a rout."""


def score_race(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the difference of the score: up for the first team, down for the second one."""
    if not any(one.score is not None for one in rounds):
        return render_empty("score-race", "No score yet.")
    names = team_names(team1_name, team2_name)
    columns = place(rounds)
    leads = [_lead(one) for one in columns.rounds]
    unit = _REACH / max(_LEAST_SCALE, *(abs(lead) for lead in leads if lead is not None))
    title = f"Lead of {names[Team.TEAM1]} or {names[Team.TEAM2]} after each round"
    body: list[Mark] = [
        *columns.heads(28),
        label("name team1", (0, 46), f"▲ {shorten(names[Team.TEAM1])} ahead", names[Team.TEAM1]),
        label("name team2", (0, _HEIGHT - 6), f"▼ {shorten(names[Team.TEAM2])} ahead", names[Team.TEAM2]),
        line("axis", (0, _MIDDLE), (columns.width, _MIDDLE)),
        *(mark for one, x in columns for mark in _marks(one, x, unit, names)),
    ]
    drawing = Drawing((columns.width, _HEIGHT), title, body, is_wide=True)
    return render_drawing("score-race", drawing, _table(columns, names))


def _lead(one: StoredRound) -> int | None:
    return None if one.score is None else one.score.team1 - one.score.team2


def _marks(one: StoredRound, x: float, unit: float, names: dict[Team | None, str]) -> list[Mark]:
    lead = _lead(one)
    title = _sentence(one, names)
    if not lead:  # a tie, or no score
        return [label("value middle muted", (x, _MIDDLE - 4), MISSING if lead is None else "0", title)]
    length = abs(lead) * unit
    top, text_y = (_MIDDLE - length, _MIDDLE - length - 3) if lead > 0 else (_MIDDLE, _MIDDLE + length + 12)
    kind = f"bar {'team1' if lead > 0 else 'team2'}"
    return [
        bar(kind, (x - WIDTH / 2 + 3, top), (WIDTH - 6, length), title),
        label("value middle", (x, text_y), str(abs(lead))),
    ]


def _sentence(one: StoredRound, names: dict[Team | None, str]) -> str:
    lead = _lead(one)
    if one.score is None or lead is None:
        return f"Round {one.number}: no score"
    leader = f"{names[Team.TEAM1 if lead > 0 else Team.TEAM2]} ahead by {abs(lead)}" if lead else "tied"
    return f"Round {one.number}: {one.score.team1}:{one.score.team2}, {leader}"


def _table(columns: Columns, names: dict[Team | None, str]) -> NumbersTable:
    rows: list[list[Cell]] = []
    for one in columns.rounds:
        lead = _lead(one)
        leader: Cell = MISSING if lead is None else "tied"
        if lead:
            leader = Name(names[Team.TEAM1 if lead > 0 else Team.TEAM2], f" ahead by {abs(lead)}")
        rows.append([one.number, MISSING if one.score is None else f"{one.score.team1}:{one.score.team2}", leader])
    return NumbersTable("Lead after each round", ["Round", "Score", "Lead"], rows)
