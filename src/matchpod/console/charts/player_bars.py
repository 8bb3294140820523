"""Draw the average damage per round (ADR) and the KAST of each player on a map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from matchpod.console.charts.parts import MAX_PLAYERS, Cell, Mark, bar, label, line, render, render_drawing
from matchpod.console.charts.people import Subject, player_subject, rows_by_team, team_names
from matchpod.console.charts.wording import number, shorten, team_class
from matchpod.core.views.result_shapes import StoredPlayer

_WIDTH: Final = 400
_LEFT: Final = 138
"""The x coordinate at which bars begin."""
_REACH: Final = 168
_ROW: Final = 38
_LEAST_ADR: Final = 100.0
"""Minimum ADR for the scale of the bars: a full-length bar stands for this ADR or a higher maximum."""

Averages = tuple[float | None, float | None]
"""A player's average damage per round (ADR) and KAST."""


def player_bars(players: Sequence[StoredPlayer], team1_name: str, team2_name: str) -> Markup:
    """Draw the players of a map, or of a series (without KAST). Players who played no round have no averages."""
    shown: list[tuple[Subject, Averages]] = [
        (
            player_subject(player.steam_id, player.name, player.team),
            (player.adr, player.kast_percent) if player.rounds_played else (None, None),
        )
        for player in players[:MAX_PLAYERS]
    ]
    if not shown:
        return render("empty", "player-bars", "No players with statistics per round.")
    names = team_names(team1_name, team2_name)
    draw = partial(_bars, scale=max([_LEAST_ADR, *(adr for _, (adr, _) in shown if adr is not None)]))
    best_first = sorted(shown, key=lambda entry: -1.0 if entry[1][0] is None else entry[1][0], reverse=True)
    marks, height = rows_by_team(best_first, draw, names, top=0, row=_ROW)
    table: list[list[Cell]] = [["Player", "Team", "ADR", "KAST"]]
    table += [[(subject.name, ""), (names[subject.team], ""), *_texts(averages)] for subject, averages in shown]
    return render_drawing(
        "player-bars",
        "Average damage per round (ADR) and KAST of each player",
        (_WIDTH, height),
        marks,
        table=table,
    )


def _bars(subject: Subject, averages: Averages, y: float, *, scale: float) -> list[Mark]:
    (adr, kast), (adr_text, kast_text) = averages, _texts(averages)
    title = f"{subject.name}: ADR {adr_text}, KAST {kast_text}"
    kind = team_class(subject.team)
    return [
        label("name", (0, y + 20), shorten(subject.name), subject.name),
        line("axis", (_LEFT, y), (_LEFT, y + _ROW - 4)),
        bar(f"bar {kind}", (_LEFT, y + 2), (_length(adr, scale), 13), title),
        label("value", (_LEFT + _REACH + 10, y + 13), f"ADR {adr_text}"),
        bar(f"bar pale {kind}", (_LEFT, y + 18), (_length(kast, 100.0), 13), title),
        label("value", (_LEFT + _REACH + 10, y + 29), f"KAST {kast_text}"),
    ]


def _length(value: float | None, scale: float) -> float:
    return 0.0 if value is None else min(1.0, max(0.0, value / scale)) * _REACH


def _texts(averages: Averages) -> tuple[str, str]:
    adr, kast = averages
    return number(adr, 1), number(kast, 1) + ("" if kast is None else " %")
