"""Draw when each listed player was on the server: one lane per player. Pauses are drawn across all lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.parts import Cell, Mark, bar, label, line, render, render_drawing
from matchpod.console.charts.people import by_team, team_names
from matchpod.console.charts.stays import Lane, TimeRange, find_lanes, find_pauses, seconds
from matchpod.console.charts.wording import MISSING, shorten, team_class
from matchpod.core.views.progress import RosterPlayer
from matchpod.core.views.timeline_items import TimelineItem

_WIDTH: Final = 760
_LEFT: Final = 140
_REACH: Final = _WIDTH - _LEFT - 28
_TOP: Final = 40
_LANE: Final = 24
_MOST_TICKS: Final = 8
_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440, 10080)
"""Possible distances, in minutes, between the lines of the time axis."""


def presence_lanes(
    items: Sequence[TimelineItem],
    roster: Sequence[RosterPlayer],
    *,
    started_at: str | None,
    ended_at: str | None,
    team1_name: str | None = None,
    team2_name: str | None = None,
) -> Markup:
    """Draw the lanes from `started_at` to `ended_at` (ISO 8601), which is the current time for a match in progress.

    The items may be from several maps of the match, in order.
    """
    if started_at is None or ended_at is None:
        return render("empty", "presence-lanes", "Not started yet.")
    window = seconds(started_at), max(seconds(ended_at), seconds(started_at) + 1)
    lanes = find_lanes(items, roster, window)
    if not lanes:
        return render("empty", "presence-lanes", "No listed players.")
    names = team_names(team1_name, team2_name)
    pauses = find_pauses(items, window)
    marks: list[Mark] = []
    table: list[list[Cell]] = [["Player", "Team", "On the server (UTC)", "In total"]]
    y = _TOP
    for team, members in by_team(lanes, lambda lane: lane.subject.team):
        if team is not None:
            marks.append(label(f"name {team.value}", (0, y + 16), shorten(names[team]), names[team]))
            y += _LANE
        for lane in members:
            marks += _lane(lane, y, window)
            table.append(_row(lane, names))
            y += _LANE
    if pauses:
        table.append(["Paused", MISSING, _times(pauses), _total(pauses)])
    height = y + 6
    pause_marks = [mark for pause in pauses for mark in _pause(pause, window, height)]
    return render_drawing(
        "presence-lanes",
        f"When players were on the server, {_clock(window[0])} to {_clock(window[1])} UTC",
        (_WIDTH, height),
        [*_axis(window, height), *pause_marks, *marks],
        table=table,
        is_wide=True,
    )


def _x(at: float, window: TimeRange) -> float:
    return _LEFT + _REACH * (at - window[0]) / (window[1] - window[0])


def _axis(window: TimeRange, height: int) -> list[Mark]:
    minutes = (window[1] - window[0]) / 60
    step = next(
        (size for size in _STEPS if minutes / size <= _MOST_TICKS), max(_STEPS[-1], round(minutes / _MOST_TICKS))
    )
    marks: list[Mark] = []
    for minute in range(0, int(minutes) + 1, step):
        x = _x(window[0] + 60 * minute, window)
        marks += [line("grid", (x, _TOP - 4), (x, height)), label("tick middle", (x, 14), f"{minute} min")]
    return marks


def _pause(pause: TimeRange, window: TimeRange, height: int) -> list[Mark]:
    x, width = _place(pause, window)
    title = f"Paused {_range(pause)}"
    return [
        bar("pause", (x, _TOP - 4), (width, height - _TOP + 4), title),
        label("tick middle", (x + width / 2, _TOP - 8), "paused", title),
    ]


def _lane(lane: Lane, y: float, window: TimeRange) -> list[Mark]:
    name = lane.subject.name
    marks = [
        label("name", (0, y + 16), shorten(name), name),
        bar("lane", (_LEFT, y + 4), (_REACH, 16), f"{name}: {_words(lane)}"),
    ]
    for span in lane.spans:
        x, width = _place(span, window)
        title = f"{name}: on the server {_range(span)}"
        marks.append(bar(f"bar {team_class(lane.subject.team)}", (x, y + 4), (width, 16), title))
    if not lane.spans:
        marks.append(label("value", (_LEFT + 8, y + 16), _words(lane)))
    return marks


def _place(span: TimeRange, window: TimeRange) -> tuple[float, float]:
    """Return the x coordinate at which a bar begins, and its width, which is at least wide enough to be visible."""
    left, right = (_x(at, window) for at in span)
    return left, max(2.0, right - left)


def _row(lane: Lane, names: Mapping[Team | None, str]) -> list[Cell]:
    name, team = lane.subject.name, lane.subject.team
    team_cell = MISSING if team is None else (names[team], "")
    return [(name, ""), team_cell, _times(lane.spans) or _words(lane), _total(lane.spans)]


def _words(lane: Lane) -> str:
    if lane.spans:
        return "not on the server"
    return "not here in this time" if lane.was_here else "never joined"


def _range(span: TimeRange) -> str:
    return f"{_clock(span[0])} to {_clock(span[1])} UTC, {_minutes(span[1] - span[0])}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _minutes(length: float) -> str:
    return f"{int(length) // 60}:{int(length) % 60:02} min"


def _times(spans: Sequence[TimeRange]) -> str:
    return "; ".join(f"{_clock(first)} to {_clock(last)}" for first, last in spans)


def _total(spans: Sequence[TimeRange]) -> str:
    return _minutes(sum(last - first for first, last in spans))
