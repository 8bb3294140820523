"""Store the labels of matches for filtering. The server's row contains them too, for display.

To list matches with a label, the newest matches that have it are read from an index, and then checked for the other
filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from matchpod.core.effects import BY_HAND
from matchpod.core.labels import MAX_LABELED, Label
from matchpod.ports import Database, Statement, Value
from matchpod.storage import rows

_HAND: Final = ", ".join(f"'{reason}'" for reason in BY_HAND)
COMPARED: Final = 1_000
"""Maximum number of matches counted per label. The label with the fewest matches is looked up first."""


def insert(org_id: str, server_id: str, created_at_ms: int, labels: Mapping[str, str]) -> list[Statement]:
    """Store the labels of a new match."""
    if not labels:
        return []
    places = range(len(labels))
    values = ", ".join(f"(:org_id, :name_{at}, :value_{at}, :created_at_ms, :server_id)" for at in places)
    params: dict[str, Value] = {"org_id": org_id, "server_id": server_id, "created_at_ms": created_at_ms}
    for at, (name, value) in enumerate(labels.items()):
        params |= {f"name_{at}": name, f"value_{at}": value}
    sql = f"INSERT INTO server_labels (org_id, name, value, created_at_ms, server_id) VALUES {values}"
    return [Statement(sql, params)]


async def newest_labeled(
    db: Database, org_id: str, labels: Sequence[Label], *, from_ms: int | None = None, before_ms: int | None = None
) -> tuple[str, dict[str, Value]]:
    """Return a query for the newest matches that have all of these labels and were created in a time range.

    The columns of the query are `labeled_id` and `labeled_ms`.
    """
    first, *others = await _rarest_first(db, org_id, labels)
    conditions, params = conditions_of(others, server_id="rarest.server_id", created_at_ms="rarest.created_at_ms")
    params |= {"org_id": org_id, "name": first.name, "value": first.value, "max_labeled": MAX_LABELED}
    if from_ms is not None:
        conditions.append("created_at_ms >= :labeled_from_ms")
        params["labeled_from_ms"] = from_ms
    if before_ms is not None:
        conditions.append("created_at_ms < :labeled_before_ms")
        params["labeled_before_ms"] = before_ms
    where = " AND ".join(["org_id = :org_id AND name = :name AND value = :value", *conditions])
    sql = (
        f"SELECT server_id AS labeled_id, created_at_ms AS labeled_ms FROM server_labels AS rarest WHERE {where}"
        " ORDER BY created_at_ms DESC, server_id LIMIT :max_labeled"
    )
    return sql, params


class LabelProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Number of matches that have a certain value of a label, and how many of these have ended.

    Matches that were canceled on request are not counted.
    """

    value: str
    matches: int
    over: int


async def progress_of(
    db: Database, org_id: str, name: str, values: Sequence[str], *, since_ms: int
) -> list[LabelProgress]:
    """Return the progress for each of these values of a label; values without matches since `since_ms` are left out."""
    listed, params = rows.parameter_list("value", values)
    sql = (
        "SELECT label.value AS value, COUNT(*) AS matches,"
        " SUM(CASE WHEN match_phase = 'ended' THEN 1 ELSE 0 END) AS over"
        " FROM server_labels AS label JOIN servers ON servers.id = label.server_id"
        f" WHERE label.org_id = :org_id AND label.name = :name AND label.value IN {listed}"
        f" AND label.created_at_ms >= :since_ms AND (reason IS NULL OR reason NOT IN ({_HAND})) GROUP BY label.value"
    )
    found = await db.read(sql, {"org_id": org_id, "name": name, "since_ms": since_ms, **params})
    return [rows.from_row(LabelProgress, row) for row in found]


def conditions_of(
    labels: Sequence[Label], *, server_id: str, created_at_ms: str, org_id: str = ":org_id"
) -> tuple[list[str], dict[str, Value]]:
    """Return SQL conditions (with parameters) that a match has all of these labels; other arguments are SQL columns."""
    conditions, params = [], dict[str, Value]()
    for at, label in enumerate(labels):
        conditions.append(
            f"EXISTS (SELECT 1 FROM server_labels AS more WHERE more.org_id = {org_id}"
            f" AND more.name = :label_{at} AND more.value = :labeled_{at}"
            f" AND more.created_at_ms = {created_at_ms} AND more.server_id = {server_id})"
        )
        params |= {f"label_{at}": label.name, f"labeled_{at}": label.value}
    return conditions, params


async def _rarest_first(db: Database, org_id: str, labels: Sequence[Label]) -> Sequence[Label]:
    if len(labels) == 1:
        return labels
    counted = []
    for label in labels:
        found = "SELECT 1 FROM server_labels WHERE org_id = :org_id AND name = :name AND value = :value LIMIT :compared"
        params: dict[str, Value] = {"org_id": org_id, "name": label.name, "value": label.value, "compared": COMPARED}
        counted.append((await rows.read_number(db, f"SELECT COUNT(*) FROM ({found}) AS counted", params), label))
    return [label for _, label in sorted(counted, key=lambda pair: pair[0])]
