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
from matchpod.console.charts.parts import empty, figure, join, scroll
from matchpod.console.charts.reasons import REASONS, ReasonMark, icon
from matchpod.console.charts.wording import SIDE_CLASSES, clean, number, plural, side_letter
from matchpod.core.views.round_shapes import StoredRound, StoredRoundTeam

MAX_ROUNDS: Final = 200
"""Rounds in a strip, the last ones; a map with ten overtimes has fewer, and more would make the page slow."""

_TABLE: Final = Markup(
    '<table class="strip"><caption class="visually-hidden">{caption}</caption><thead>{parts}<tr>{corner}{numbers}</tr>'
    "</thead><tbody>{rows}</tbody></table>"
)
_PARTS: Final = Markup('<tr class="parts"><td></td>{}</tr>')
_PART: Final = Markup('<th scope="colgroup" colspan="{}" class="{}">{}</th>')
_UNNAMED_PART: Final = Markup('<td colspan="{}" class="{}"></td>')
_CORNER: Final = Markup('<th scope="col"><span class="visually-hidden">Team</span></th>')
_NUMBER: Final = Markup('<th scope="col" class="{kind}" title="{title}">{content}</th>')
_ROW: Final = Markup(
    '<tr class="{team}"><th scope="row" title="{name}"><span class="line"><bdi>{name}</bdi> <b>{score}</b></span></th>'
    "{cells}</tr>"
)
_CELL: Final = Markup('<td class="{kind}" title="{title}">{content}</td>')
_LINK: Final = Markup('<a href="?round={number}#feed">{content}</a>')
_SECOND_LINK: Final = Markup('<a href="?round={number}#feed" tabindex="-1">{content}</a>')
"""Not reached with the Tab key: the number of the round links to the same place."""

_RESULT: Final = Markup('{icon}<span class="side">{letter}</span><span class="visually-hidden">{words}</span>')
_ALIVE: Final = Markup('<small class="alive">{}<span class="visually-hidden"> alive</span></small>')
_HIDDEN: Final = Markup('<span class="visually-hidden">{}</span>')
_SIGN: Final = Markup('<span class="side" aria-hidden="true">{}</span><span class="visually-hidden">{}</span>')
_LEGEND: Final = Markup('<ul class="legend">{}</ul>')
_LEGEND_ITEM: Final = Markup("<li>{} {}</li>")
_LIVE: Final = Markup('<span class="live-dot" aria-hidden="true">●</span>')
_GAP: Final = Markup('<span class="side" aria-hidden="true">*</span>')


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


def round_strip(
    rounds: Sequence[StoredRound], team1_name: str, team2_name: str, *, is_linked: bool = True, is_over: bool = False
) -> Markup:
    """Draw the rounds of a map; the last one is open if it is not decided, unless the map is over.

    With `is_linked` each round links to `?round=N#feed`.
    """
    if not rounds:
        return figure("round-strip", empty("No rounds yet."))
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
    table = _TABLE.format(
        caption=caption,
        parts=_part_row(parts),
        corner=_CORNER,
        numbers=join(_number_cell(strip, one) for one in shown),
        rows=join(_row(strip, team, shown) for team in Team),
    )
    return figure("round-strip", scroll(caption, table), _legend(shown, strip))


def _part_row(parts: Sequence[Part]) -> Markup:
    if not any(part.name for part in parts):
        return Markup("")
    cells = (
        (_PART if part.name else _UNNAMED_PART).format(len(part.rounds), "gap" if index else "", part.name)
        for index, part in enumerate(parts)
    )
    return _PARTS.format(join(cells))


def _number_cell(strip: _Strip, one: StoredRound) -> Markup:
    content = Markup("{}{}").format(one.number, "" if one.complete else "*")
    if strip.is_linked:
        content = _LINK.format(number=one.number, content=content)
    return _NUMBER.format(kind=strip.kind(one), title=_sentence(strip, one), content=content)


def _row(strip: _Strip, team: Team, rounds: Sequence[StoredRound]) -> Markup:
    scores = [one.score for one in rounds if one.score is not None]
    total = None if not scores else scores[-1].team1 if team is Team.TEAM1 else scores[-1].team2
    cells = join(_cell(strip, team, one) for one in rounds)
    return _ROW.format(team=team.value, name=strip.names[team], score=number(total), cells=cells)


def _cell(strip: _Strip, team: Team, one: StoredRound) -> Markup:
    own = one.team1 if team is Team.TEAM1 else one.team2
    kinds: list[str] = []
    if one.winner is team:
        kinds = ["won", SIDE_CLASSES[one.winner_side] if one.winner_side else "unknown"]
    content = _result(strip, team, one) + _alive(own)
    if strip.is_linked:
        content = _SECOND_LINK.format(number=one.number, content=content)
    return _CELL.format(kind=strip.kind(one, *kinds), title=_sentence(strip, one), content=content)


def _result(strip: _Strip, team: Team, one: StoredRound) -> Markup:
    own = one.team1 if team is Team.TEAM1 else one.team2
    if one.number == strip.open_round:
        return _SIGN.format(side_letter(own.side), "being played")
    if one.winner is None:
        is_draw = one.reason is not None and one.winner_side is None
        return _SIGN.format("=" if is_draw else "?", "draw" if is_draw else "winner unknown")
    if one.winner is not team:
        return _HIDDEN.format("lost")
    mark = _mark(one)
    return _RESULT.format(icon=icon(mark), letter=side_letter(one.winner_side), words=f"won, {mark.words}")


def _alive(own: StoredRoundTeam) -> Markup:
    return _ALIVE.format(number(own.survivors))


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


def _legend(rounds: Sequence[StoredRound], strip: _Strip) -> Markup:
    """Explain the icons that occur in the strip."""
    marks = {mark.words: mark for one in rounds if one.reason is not None for mark in [_mark(one)]}
    items = [_LEGEND_ITEM.format(icon(mark), words) for words, mark in marks.items()]
    if any(one.team1.survivors is not None for one in rounds):
        items.append(_LEGEND_ITEM.format("", "small number: players alive at the end"))
    if strip.open_round is not None:
        items.append(_LEGEND_ITEM.format(_LIVE, "being played"))
    if missing := sum(not one.complete for one in rounds):
        items.append(_LEGEND_ITEM.format(_GAP, f"log lines are missing in {plural(missing, 'round')}"))
    return _LEGEND.format(join(items))
