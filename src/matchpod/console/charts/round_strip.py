"""Draw the rounds of a map as a strip: a row per team, a column per round.

The strip is a table, so it can be read aloud and its rounds can be links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from cs2_protocol.game import RoundEndReason, Team
from matchpod.console.charts.halves import Part, split_rounds
from matchpod.console.charts.parts import LegendItem, render_empty, render_table
from matchpod.console.charts.reasons import REASONS, ReasonMark
from matchpod.console.charts.wording import SIDE_CLASSES, clean, number, plural, side_letter
from matchpod.core.views.round_shapes import StoredRound

MAX_ROUNDS: Final = 200
"""Rounds in a strip, the last ones; a map with ten overtimes has fewer, and more would make the page slow."""


class _Strip(msgspec.Struct, frozen=True):
    """What the cells of a strip need to know about all of it."""

    names: dict[Team, str]
    is_linked: bool
    open_round: int | None
    """The number of the round that is being played."""
    firsts: frozenset[int]
    """The rounds before which there is a gap."""

    def kind(self, one: StoredRound, *more: str) -> str:
        """Return the CSS classes of a cell in the column of a round."""
        classes = ["gap" * (one.number in self.firsts), "open" * (one.number == self.open_round), *more]
        classes.append("incomplete" * (not one.complete))
        return " ".join(filter(None, classes))


class _Part(msgspec.Struct, frozen=True):
    """The heading of the rounds of a half; without a name it is empty."""

    size: int
    kind: str
    name: str


class _Head(msgspec.Struct, frozen=True):
    """The heading of a round."""

    number: int
    kind: str
    title: str
    text: str


class _Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A round of a team; a sign with an icon is read aloud too."""

    number: int
    kind: str
    title: str
    icon: str
    sign: str
    words: str
    alive: str


class _Row(msgspec.Struct, frozen=True):
    """The rounds of a team."""

    team: str
    name: str
    score: str
    cells: list[_Cell]


class _Table(msgspec.Struct, frozen=True, kw_only=True):
    """The strip as it is shown."""

    caption: str
    is_linked: bool
    parts: list[_Part]
    heads: list[_Head]
    rows: list[_Row]
    legend: list[LegendItem]


def round_strip(
    rounds: Sequence[StoredRound], team1_name: str, team2_name: str, *, is_linked: bool = True, is_over: bool = False
) -> Markup:
    """Draw the rounds of a map; the last one is open if it is not decided, unless the map is over.

    With `is_linked` each round links to `?round=N#feed`.
    """
    if not rounds:
        return render_empty("round-strip", "No rounds yet.")
    shown = rounds[-MAX_ROUNDS:]
    names = {Team.TEAM1: clean(team1_name, "Team 1"), Team.TEAM2: clean(team2_name, "Team 2")}
    parts = split_rounds(shown)
    is_open = shown[-1].reason is None and not is_over
    strip = _Strip(
        names=names,
        is_linked=is_linked,
        open_round=shown[-1].number if is_open else None,
        firsts=frozenset(part.rounds[0].number for part in parts[1:]),
    )
    caption = f"Rounds of {names[Team.TEAM1]} against {names[Team.TEAM2]}"
    table = _Table(
        caption=caption,
        is_linked=is_linked,
        parts=_parts(parts),
        heads=[_head(strip, one) for one in shown],
        rows=[_row(strip, team, shown) for team in Team],
        legend=_legend(shown, strip),
    )
    return render_table("round-strip", "strip", table)


def _parts(parts: Sequence[Part]) -> list[_Part]:
    if not any(part.name for part in parts):
        return []
    return [_Part(len(part.rounds), "gap" if index else "", part.name) for index, part in enumerate(parts)]


def _head(strip: _Strip, one: StoredRound) -> _Head:
    text = f"{one.number}" if one.complete else f"{one.number}*"
    return _Head(one.number, strip.kind(one), _sentence(strip, one), text)


def _row(strip: _Strip, team: Team, rounds: Sequence[StoredRound]) -> _Row:
    scores = [one.score for one in rounds if one.score is not None]
    total = None if not scores else scores[-1].team1 if team is Team.TEAM1 else scores[-1].team2
    return _Row(team.value, strip.names[team], number(total), [_cell(strip, team, one) for one in rounds])


def _cell(strip: _Strip, team: Team, one: StoredRound) -> _Cell:
    own = one.team1 if team is Team.TEAM1 else one.team2
    kinds: list[str] = []
    if one.winner is team:
        kinds = ["won", SIDE_CLASSES[one.winner_side] if one.winner_side else "unknown"]
    icon, sign, words = _result(strip, team, one)
    return _Cell(
        number=one.number,
        kind=strip.kind(one, *kinds),
        title=_sentence(strip, one),
        icon=icon,
        sign=sign,
        words=words,
        alive=number(own.survivors),
    )


def _result(strip: _Strip, team: Team, one: StoredRound) -> tuple[str, str, str]:
    """Return the icon, the sign and the words for what a round was for a team."""
    own = one.team1 if team is Team.TEAM1 else one.team2
    if one.number == strip.open_round:
        return "", side_letter(own.side), "being played"
    if one.winner is None:
        is_draw = one.reason is not None and one.winner_side is None
        return ("", "=", "draw") if is_draw else ("", "?", "winner unknown")
    if one.winner is not team:
        return "", "", "lost"
    mark = _mark(one)
    return mark.icon, side_letter(one.winner_side), f"won, {mark.words}"


def _mark(one: StoredRound) -> ReasonMark:
    return REASONS[one.reason] if one.reason is not None else REASONS[RoundEndReason.UNKNOWN]


def _sentence(strip: _Strip, one: StoredRound) -> str:
    """Return what happened in a round, for its tooltip."""
    parts = [f"Round {one.number}: {_outcome(strip, one)}"]
    if one.score is not None:
        parts.append(f"Score {one.score.team1}:{one.score.team2}")
    if one.team1.survivors is not None and one.team2.survivors is not None:
        parts.append(f"Alive {one.team1.survivors} against {one.team2.survivors}")
    if not one.complete:
        parts.append("Log lines are missing, so numbers may be wrong")
    return ". ".join(parts) + "."


def _outcome(strip: _Strip, one: StoredRound) -> str:
    if one.number == strip.open_round:
        return "being played"
    if one.reason is None:
        return "its end is not in the log"
    words = _mark(one).words
    if one.winner is not None:
        return f"{strip.names[one.winner]} won as {side_letter(one.winner_side)}, {words}"
    return words if one.winner_side is None else f"{side_letter(one.winner_side)} won, {words}, team unknown"


def _legend(rounds: Sequence[StoredRound], strip: _Strip) -> list[LegendItem]:
    """Explain the icons that occur in the strip."""
    marks = {mark.words: mark for one in rounds if one.reason is not None for mark in [_mark(one)]}
    items = [LegendItem(mark.icon, words) for words, mark in marks.items()]
    if any(one.team1.survivors is not None for one in rounds):
        items.append(LegendItem("", "small number: players alive at the end"))
    if strip.open_round is not None:
        items.append(LegendItem("●", "being played"))
    if missing := sum(not one.complete for one in rounds):
        items.append(LegendItem("*", f"log lines are missing in {plural(missing, 'round')}"))
    return items
