"""Draw tables of kills and damage between players, with a row per attacker and a column per victim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from markupsafe import Markup

from cs2_protocol.game import Team
from matchpod.console.charts.parts import MAX_PLAYERS, render
from matchpod.console.charts.people import Subject, by_team, player_subject, players_of, subject_of, team_names
from matchpod.console.charts.wording import MISSING, number, plural, team_class
from matchpod.core.views.round_shapes import StoredRound
from matchpod.core.views.timeline_items import KillItem, MapLiveItem, RoundRestoredItem, TimelineItem

HEAT_STEPS: Final = 5
"""Number of shades, without the shade for zero. People cannot distinguish more shades."""

Pair = tuple[str, str]
"""The keys of the attacker and the victim."""

_OTHERS: Final = Subject("", "bots, unlisted", None)
"""Stands for all bots and unlisted players together, where they are victims of damage."""


def kill_matrix(items: Iterable[TimelineItem], team1_name: str | None, team2_name: str | None) -> Markup:
    """Draw the kills in the timeline of a map. Team kills are marked, but not counted."""
    subjects: dict[str, Subject] = {}
    values: Counter[Pair] = Counter()
    team_kills: Counter[Pair] = Counter()
    fights: Counter[str] = Counter()
    kills: Counter[str] = Counter()
    for kill in counted_kills(items):
        killer, victim = subject_of(kill.killer), subject_of(kill.victim)
        subjects |= {killer.key: killer, victim.key: victim}
        fights.update({killer.key: 1, victim.key: 1})
        (team_kills if kill.team_kill else values)[killer.key, victim.key] += 1
        kills[killer.key] += not kill.team_kill
    if not subjects:
        return render("empty", "kill-matrix", "No kills yet.")
    shown = [subjects[key] for key, _ in fights.most_common(MAX_PLAYERS)]
    remarks = [
        "TK: team kills, not in the totals." if team_kills else "",
        _hidden(len(subjects) - len(shown), "fewer fights"),
    ]
    return _render(
        "kill-matrix",
        rows=sorted(shown, key=lambda subject: -kills[subject.key]),
        columns=sorted(shown, key=lambda subject: (subject.name, subject.key)),
        values=values,
        notes={pair: f"{count} TK" for pair, count in team_kills.items()},
        names=team_names(team1_name, team2_name),
        unit="killed",
        caption="Kills: a row per killer, a column per victim",
        corner="Killer",
        row_total="Kills",
        column_total="Was killed",
        remark=" ".join(filter(None, remarks)),
    )


def damage_pairs(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the damage between enemies, as the sum of all rounds."""
    values: Counter[Pair] = Counter()
    known = players_of(rounds)
    dealt: Counter[str] = Counter(dict.fromkeys(known, 0))
    for pair in (pair for record in rounds for pair in record.damage_pairs):
        attacker, victim = pair.attacker_steam_id, pair.victim_steam_id or _OTHERS.key
        values[attacker, victim] += pair.damage
        dealt[attacker] += pair.damage
        dealt[victim] += 0
    if not values:
        return render("empty", "damage-pairs", "No damage yet.")
    dealt.pop(_OTHERS.key, None)
    rows = [known.get(key) or player_subject(key, None, None) for key, _ in dealt.most_common(MAX_PLAYERS)]
    columns = sorted(rows, key=lambda subject: (subject.name, subject.key))
    involved = {key for pair in values for key in pair}
    if _OTHERS.key in involved:
        columns.append(_OTHERS)
    return _render(
        "damage-pairs",
        rows=rows,
        columns=columns,
        values=values,
        names=team_names(team1_name, team2_name),
        unit="damage to",
        caption="Damage: a row per attacker, a column per victim",
        corner="Attacker",
        row_total="Dealt",
        column_total="Taken",
        remark=_hidden(len(involved - {subject.key for subject in [*rows, _OTHERS]}), "less damage"),
    )


def counted_kills(items: Iterable[TimelineItem]) -> list[KillItem]:
    """Return the kills (also team kills) except those before a restart, or in rounds dropped by restoring a backup."""
    kills: list[KillItem] = []
    for item in items:
        if isinstance(item, KillItem):
            kills.append(item)
        elif isinstance(item, MapLiveItem):
            kills.clear()
        elif isinstance(item, RoundRestoredItem):
            kills = [kill for kill in kills if (kill.round_number or 0) <= item.rounds_kept]
    return kills


def heat(value: int, most: int) -> int:
    """Return the shade of a number: 0 for zero, up to HEAT_STEPS for the highest number `most`."""
    return 0 if value <= 0 else min(HEAT_STEPS, 1 + (value * HEAT_STEPS - 1) // max(most, 1))


def _render(
    kind: str,
    rows: Sequence[Subject],
    columns: Sequence[Subject],
    values: Mapping[Pair, int],
    *,
    unit: str,
    names: Mapping[Team | None, str],
    notes: Mapping[Pair, str] = {},
    **words: str,
) -> Markup:
    """Return a table with the players grouped by team. Pairs without a value are shown as zero.

    The unit is used in tooltips such as `Ann: 3 <unit> Ben`. Notes are shown next to values and do not count toward the
    totals. `words` contains the caption, the text of the corner cell, the headings of the totals (`row_total` and
    `column_total`), and a remark, which may be empty.
    """
    actors, targets = {actor.key for actor in rows}, {target.key for target in columns}
    shown = {pair: value for pair, value in values.items() if pair[0] in actors and pair[1] in targets}
    groups = by_team(columns, lambda subject: subject.team)
    order = [(member, member is members[0]) for _, members in groups for member in members]
    cell = partial(_cell, values=shown, notes=notes, unit=unit, most=max(shown.values(), default=0))
    acted, suffered = _totals(shown, 0), _totals(shown, 1)
    lines = [
        (row, [(*cell(row, column), is_first) for column, is_first in order], number(acted[row.key])) for row in rows
    ]
    heads = [(len(members), team_class(team), names[team] if team else MISSING) for team, members in groups]
    return render(
        "matrix",
        kind,
        groups=[] if groups[0][0] is None else heads,  # without teams, there is a single group
        columns=[(subject.name, is_first, number(suffered[subject.key])) for subject, is_first in order],
        bodies=by_team(lines, lambda line: line[0].team),
        total=number(sum(shown.values())),
        **words,
    )


def _cell(
    row: Subject, column: Subject, *, values: Mapping[Pair, int], notes: Mapping[Pair, str], unit: str, most: int
) -> tuple[str, str, str, str]:
    """Return CSS class, tooltip, number and note of a cell."""
    value, note = values.get((row.key, column.key), 0), notes.get((row.key, column.key), "")
    is_mate = row.key == column.key or (row.team is not None and row.team is column.team)
    if is_mate and not value:
        return "mate", note and f"{row.name}: {note} {column.name}", "", note
    return f"heat{heat(value, most)}", f"{row.name}: {number(value)} {unit} {column.name}", number(value), note


def _totals(values: Mapping[Pair, int], index: int) -> Counter[str]:
    totals: Counter[str] = Counter()
    for pair, value in values.items():
        totals[pair[index]] += value
    return totals


def _hidden(hidden: int, what: str) -> str:
    """Return a remark with the number of players who were left out of the table; empty if there are none."""
    return f"{plural(hidden, 'player')} with {what} not shown or counted." if hidden else ""
