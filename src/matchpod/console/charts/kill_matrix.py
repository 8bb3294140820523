"""Draw who killed whom on a map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from matchpod.console.charts.matrix import Matrix, Pair, render_matrix
from matchpod.console.charts.parts import render_empty
from matchpod.console.charts.people import MAX_SHOWN, Subject, subject_of, team_names
from matchpod.console.charts.wording import plural
from matchpod.core.views.timeline_items import KillItem, MapLiveItem, RoundRestoredItem, TimelineItem


def kill_matrix(items: Iterable[TimelineItem], team1_name: str | None, team2_name: str | None) -> Markup:
    """Draw the kills in the timeline of one map. Team kills are marked and do not count."""
    kills = counted_kills(items)
    subjects: dict[str, Subject] = {}
    values: Counter[Pair] = Counter()
    team_kills: Counter[Pair] = Counter()
    fights: Counter[str] = Counter()
    for one in kills:
        killer, victim = subject_of(one.killer), subject_of(one.victim)
        subjects |= {killer.key: killer, victim.key: victim}
        pair = killer.key, victim.key
        (team_kills if one.team_kill else values)[pair] += 1
        fights.update({killer.key: 1, victim.key: 1})
    if not kills:
        return render_empty("kill-matrix", "No kills yet.")
    shown = [subjects[key] for key, _ in fights.most_common(MAX_SHOWN)]
    keys = {one.key for one in shown}
    matrix = Matrix(
        caption="Kills: a row per killer, a column per victim",
        corner="Killer",
        row_total="Kills",
        column_total="Was killed",
        rows=sorted(shown, key=lambda one: -sum(count for (actor, _), count in values.items() if actor == one.key)),
        columns=sorted(shown, key=lambda one: (one.name, one.key)),
        values={pair: count for pair, count in values.items() if keys.issuperset(pair)},
        notes={pair: f"{count} TK" for pair, count in team_kills.items()},
        unit="killed",
    )
    remarks = [
        "TK: team kills, not in the totals." if team_kills else "",
        _hidden_remark(len(subjects) - len(shown)),
    ]
    return render_matrix("kill-matrix", matrix, team_names(team1_name, team2_name), remarks)


def counted_kills(items: Iterable[TimelineItem]) -> list[KillItem]:
    """Return the kills that still count: not those before a restart, or in rounds dropped by a restored backup."""
    kills: list[KillItem] = []
    for item in items:
        if isinstance(item, KillItem):
            kills.append(item)
        elif isinstance(item, MapLiveItem):
            kills.clear()
        elif isinstance(item, RoundRestoredItem):
            kills = [one for one in kills if (one.round_number or 0) <= item.rounds_kept]
    return kills


def _hidden_remark(hidden: int) -> str:
    return f"{plural(hidden, 'player')} with fewer fights not shown or counted." if hidden else ""
