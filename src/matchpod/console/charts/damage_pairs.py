"""Draw how much damage each player did to each enemy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from matchpod.console.charts.matrix import Matrix, Pair, render_matrix
from matchpod.console.charts.parts import render_empty
from matchpod.console.charts.people import MAX_SHOWN, Subject, player_subject, players_of, team_names
from matchpod.console.charts.wording import plural
from matchpod.core.views.round_shapes import StoredRound

_OTHERS: Final = Subject("", "bots, unlisted", None)
"""Stands for all bots and unlisted players together."""


def damage_pairs(rounds: Sequence[StoredRound], team1_name: str, team2_name: str) -> Markup:
    """Draw the damage between enemies, summed over the rounds."""
    values: Counter[Pair] = Counter()
    for one in rounds:
        for pair in one.damage_pairs:
            values[pair.attacker_steam_id, pair.victim_steam_id or _OTHERS.key] += pair.damage
    if not values:
        return render_empty("damage-pairs", "No damage yet.")
    players = _players(rounds, values)
    keys = {one.key for one in players} | {_OTHERS.key}
    has_others = any(victim == _OTHERS.key for _, victim in values)
    hidden = len({key for pair in values for key in pair} - keys)
    note = f"{plural(hidden, 'player')} with less damage not shown or counted." if hidden else ""
    matrix = Matrix(
        caption="Damage: a row per attacker, a column per victim",
        corner="Attacker",
        row_total="Dealt",
        column_total="Taken",
        rows=players,
        columns=[*sorted(players, key=lambda one: (one.name, one.key)), *([_OTHERS] if has_others else [])],
        values={pair: damage for pair, damage in values.items() if keys.issuperset(pair)},
        unit="damage to",
    )
    return render_matrix("damage-pairs", matrix, team_names(team1_name, team2_name), [note])


def _players(rounds: Sequence[StoredRound], values: Counter[Pair]) -> list[Subject]:
    """Return the players, most damage first."""
    known = players_of(rounds)
    dealt: Counter[str] = Counter(dict.fromkeys(known, 0))
    for (attacker, victim), damage in values.items():
        dealt[attacker] += damage
        if victim:
            dealt[victim] += 0
    return [known.get(key) or player_subject(key, None, None) for key, _ in dealt.most_common(MAX_SHOWN)]
