"""Draw the rounds of a map as a table with a row per team and a column per round.

Screen readers can read a table aloud, and its rounds can be links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import RoundEndReason, Side, Team
from matchpod.console.charts.halves import split_rounds
from matchpod.console.charts.parts import MAX_ROUNDS, render
from matchpod.console.charts.people import team_names
from matchpod.console.charts.wording import number, plural, side_letter
from matchpod.core.views.round_shapes import StoredRound

REASONS: Final = {
    RoundEndReason.CTS_WIN: ("elimination", "skull"),
    RoundEndReason.TERRORISTS_WIN: ("elimination", "skull"),
    RoundEndReason.TARGET_BOMBED: ("bomb exploded", "burst"),
    RoundEndReason.BOMB_DEFUSED: ("bomb defused", "tick"),
    RoundEndReason.TARGET_SAVED: ("time ran out", "clock"),
    RoundEndReason.HOSTAGES_RESCUED: ("hostages rescued", "person"),
    RoundEndReason.HOSTAGES_NOT_RESCUED: ("hostages not rescued", "lock"),
    RoundEndReason.CTS_SURRENDER: ("surrender", "flag"),
    RoundEndReason.TERRORISTS_SURRENDER: ("surrender", "flag"),
    RoundEndReason.DRAW: ("draw", "equal"),
    RoundEndReason.UNKNOWN: ("reason unknown", "question"),
}
"""Why a round ended, in words, and the name of the matching icon in the template."""

_Cell = tuple[int, str, str, str, str, str, str]
"""A cell: round number, CSS classes, tooltip, icon, sign, words, and the number of the team's survivors."""


def round_strip(
    rounds: Sequence[StoredRound], team1_name: str, team2_name: str, *, address: str = "", is_over: bool = False
) -> Markup:
    """Draw the rounds of a map. If the map is not over, a last round without a result is shown as being played.

    If an `address` is given, each round links to its part of the feed; the link is the address followed by the round
    number.
    """
    if not rounds:
        return render("empty", "round-strip", "No rounds yet.")
    shown = rounds[-MAX_ROUNDS:]
    names = team_names(team1_name, team2_name)
    parts = split_rounds(shown)
    open_round = shown[-1].number if shown[-1].reason is None and not is_over else None
    scores = [(record.score.team1, record.score.team2) for record in shown if record.score is not None]
    heads: list[tuple[int, str, str, str]] = []
    cells: dict[Team, list[_Cell]] = {team: [] for team in Team}
    gaps = {part[0].number for _, part in parts[1:]}
    for record in shown:
        title = _sentence(record, names, open_round)
        before = _classes("gap" * (record.number in gaps), "open" * (record.number == open_round))
        after, star = ("", "") if record.complete else ("incomplete", "*")
        heads.append((record.number, f"{record.number}{star}", _classes(before, after), title))
        for team, own in zip(Team, (record.team1, record.team2), strict=True):
            won = f"won {_side_class(record.winner_side)}" if record.winner is team else ""
            result = _result(record, team, open_round)
            cells[team].append((record.number, _classes(before, won, after), title, *result, number(own.survivors)))
    totals = zip(Team, scores[-1] if scores else (None, None), strict=True)
    return render(
        "strip",
        caption=f"Rounds of {names[Team.TEAM1]} against {names[Team.TEAM2]}",
        address=address,
        parts=[(name, len(part)) for name, part in parts] if any(name for name, _ in parts) else [],
        heads=heads,
        teams=[(team, names[team], number(total), cells[team]) for team, total in totals],
        legend=_legend(shown, open_round),
    )


def _classes(*names: str) -> str:
    return " ".join(filter(None, names))


def _side_class(side: Side | None) -> str:
    return "unknown" if side is None else side.name.lower()


def _result(record: StoredRound, team: Team, open_round: int | None) -> tuple[str, str, str]:
    """Return icon, sign and words for a round from a team's view. Screen readers read a sign only if it has an icon."""
    if record.number == open_round:
        return "", side_letter((record.team1 if team is Team.TEAM1 else record.team2).side), "being played"
    if record.winner is None:
        is_draw = record.reason is not None and record.winner_side is None
        return ("", "=", "draw") if is_draw else ("", "?", "winner unknown")
    if record.winner is not team:
        return "", "", "lost"
    words, icon = _reason(record)
    return icon, side_letter(record.winner_side), f"won, {words}"


def _reason(record: StoredRound) -> tuple[str, str]:
    return REASONS[record.reason or RoundEndReason.UNKNOWN]


def _sentence(record: StoredRound, names: Mapping[Team | None, str], open_round: int | None) -> str:
    """Return the tooltip of a round: its result as a sentence."""
    outcome = "being played" if record.number == open_round else _outcome(record, names)
    parts = [f"Round {record.number}: {outcome}"]
    if record.score is not None:
        parts.append(f"Score {record.score.team1}:{record.score.team2}")
    if record.team1.survivors is not None and record.team2.survivors is not None:
        parts.append(f"Alive {record.team1.survivors} against {record.team2.survivors}")
    if not record.complete:
        parts.append("Log lines are missing, so numbers may be wrong")
    return ". ".join(parts) + "."


def _outcome(record: StoredRound, names: Mapping[Team | None, str]) -> str:
    if record.reason is None:
        return "its end is not in the log"
    words, _ = _reason(record)
    if record.winner is not None:
        return f"{names[record.winner]} won as {side_letter(record.winner_side)}, {words}"
    return words if record.winner_side is None else f"{side_letter(record.winner_side)} won, {words}, team unknown"


def _legend(rounds: Sequence[StoredRound], open_round: int | None) -> list[tuple[str, str]]:
    """Return the icons that occur in the strip, each with its meaning."""
    icons = dict(_reason(record) for record in rounds if record.reason is not None)
    items = [(icon, words) for words, icon in icons.items()]
    if any(record.team1.survivors is not None for record in rounds):
        items.append(("", "small number: players alive at the end"))
    if open_round is not None:
        items.append(("●", "being played"))
    if missing := sum(not record.complete for record in rounds):
        items.append(("*", f"log lines are missing in {plural(missing, 'round')}"))
    return items
