"""Draw, after each round, by how many rounds a team leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.columns import WIDTH, place, team_labels
from matchpod.console.charts.parts import Cell, Mark, bar, label, line, render, render_drawing
from matchpod.console.charts.people import team_names
from matchpod.console.charts.wording import MISSING
from matchpod.core.views.result_shapes import Score
from matchpod.core.views.round_shapes import StoredRound

_AXIS: Final = 134
_REACH: Final = 64
"""Height of a full-length bar."""
_HEIGHT: Final = 232
_LEAST_SCALE: Final = 4
"""Minimum lead for the scale of the bars: a full-length bar stands for this lead or a higher maximum. So a lead of one
round never looks large."""


def score_race(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the difference of the scores: upward if team 1 leads, downward if team 2 leads."""
    if not any(record.score is not None for record in rounds):
        return render("empty", "score-race", "No score yet.")
    names = team_names(team1_name, team2_name)
    columns, width, marks = place(rounds)
    leads = [abs(record.score.team1 - record.score.team2) for record, _ in columns if record.score is not None]
    unit = _REACH / max([_LEAST_SCALE, *leads])
    marks += [*team_labels(names, _HEIGHT, " ahead"), line("axis", (0, _AXIS), (width, _AXIS))]
    table: list[list[Cell]] = [["Round", "Score", "Lead"]]
    for record, x in columns:
        marks += _marks(record, x, unit, names)
        table.append(_row(record, names))
    return render_drawing(
        "score-race",
        f"Lead of {names[Team.TEAM1]} or {names[Team.TEAM2]} after each round",
        (width, _HEIGHT),
        marks,
        caption="Lead after each round",
        table=table,
        is_wide=True,
    )


def _marks(record: StoredRound, x: float, unit: float, names: Mapping[Team | None, str]) -> list[Mark]:
    if record.score is None:
        return [label("value middle muted", (x, _AXIS - 4), MISSING, f"Round {record.number}: no score")]
    team, lead = _leader(record.score)
    title = f"Round {record.number}: {record.score.team1}:{record.score.team2}, "
    if team is None:
        return [label("value middle muted", (x, _AXIS - 4), "0", f"{title}tied")]
    length = lead * unit
    top, text_y = (_AXIS - length, _AXIS - length - 3) if team is Team.TEAM1 else (_AXIS, _AXIS + length + 12)
    return [
        bar(
            f"bar {team.value}", (x - WIDTH / 2 + 3, top), (WIDTH - 6, length), f"{title}{names[team]} ahead by {lead}"
        ),
        label("value middle", (x, text_y), str(lead)),
    ]


def _row(record: StoredRound, names: Mapping[Team | None, str]) -> list[Cell]:
    if record.score is None:
        return [record.number, MISSING, MISSING]
    team, lead = _leader(record.score)
    leader = (names[team], f" ahead by {lead}") if team else "tied"
    return [record.number, f"{record.score.team1}:{record.score.team2}", leader]


def _leader(score: Score) -> tuple[Team | None, int]:
    lead = score.team1 - score.team2
    return Team.TEAM1 if lead > 0 else Team.TEAM2 if lead < 0 else None, abs(lead)
