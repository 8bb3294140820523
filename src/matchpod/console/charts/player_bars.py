"""Draw the average damage per round (ADR) and the KAST of each player on a map."""

from __future__ import annotations

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
from matchpod.console.charts.people import MAX_SHOWN, Subject, by_team, player_subject, team_names
from matchpod.console.charts.wording import number, shorten, team_class
from matchpod.core.views.result_shapes import StoredPlayer

_WIDTH: Final = 400
_LEFT: Final = 138
"""Where bars begin."""
_REACH: Final = 168
_ROW: Final = 38
_HEAD: Final = 24
_LEAST_ADR: Final = 100.0
"""An average that has the longest bar at least."""


class _Player(msgspec.Struct, frozen=True):
    subject: Subject
    adr: float | None
    kast: float | None


def player_bars(players: Sequence[StoredPlayer], team1_name: str, team2_name: str) -> Markup:
    """Draw the players of a map, or of a series, which has no KAST. A player without a round has no averages."""
    shown = [_player(one) for one in players[:MAX_SHOWN]]
    if not shown:
        return render_empty("player-bars", "No players with statistics per round.")
    names = team_names(team1_name, team2_name)
    scale = max([_LEAST_ADR, *(one.adr for one in shown if one.adr is not None)])
    body: list[Mark] = []
    y = 0
    for team, members in by_team(shown, lambda one: one.subject.team):
        members.sort(key=lambda one: -1.0 if one.adr is None else one.adr, reverse=True)
        body.append(label(f"name {team_class(team)}", (0, y + 16), shorten(names[team], 24), names[team]))
        for index, one in enumerate(members):
            body += _bars(one, y + _HEAD + _ROW * index, scale)
        y += _HEAD + _ROW * len(members) + 6
    title = "Average damage per round (ADR) and KAST of each player"
    return render_drawing("player-bars", Drawing((_WIDTH, y), title, body), _table(shown, title, names))


def _player(one: StoredPlayer) -> _Player:
    subject = player_subject(one.steam_id, one.name, one.team)
    return _Player(subject, one.adr, one.kast_percent) if one.rounds_played else _Player(subject, None, None)


def _bars(one: _Player, y: float, scale: float) -> list[Mark]:
    name = one.subject.name
    adr, kast = _adr_text(one), _kast_text(one)
    title = f"{name}: ADR {adr}, KAST {kast}"
    kind = team_class(one.subject.team)
    return [
        label("name", (0, y + 20), shorten(name), name),
        line("axis", (_LEFT, y), (_LEFT, y + _ROW - 4)),
        bar(f"bar {kind}", (_LEFT, y + 2), (_length(one.adr, scale), 13), title),
        label("value", (_LEFT + _REACH + 10, y + 13), f"ADR {adr}"),
        bar(f"bar pale {kind}", (_LEFT, y + 18), (_length(one.kast, 100.0), 13), title),
        label("value", (_LEFT + _REACH + 10, y + 29), f"KAST {kast}"),
    ]


def _length(value: float | None, scale: float) -> float:
    return 0.0 if value is None else min(1.0, max(0.0, value / scale)) * _REACH


def _adr_text(one: _Player) -> str:
    return number(one.adr, 1)


def _kast_text(one: _Player) -> str:
    return number(one.kast, 1) + ("" if one.kast is None else " %")


def _table(players: Sequence[_Player], title: str, names: dict[Team | None, str]) -> NumbersTable:
    rows: list[list[Cell]] = [
        [Name(one.subject.name), Name(names[one.subject.team]), _adr_text(one), _kast_text(one)] for one in players
    ]
    return NumbersTable(title, ["Player", "Team", "ADR", "KAST"], rows)
