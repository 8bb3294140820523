"""Cache row positions in long lists for a minute, so that pages in the middle of a list are found quickly.

Positions are counted from the oldest row, because new rows are added at the other end. Only a change of an old row,
such as a recomputation, can shift a page by a row until the cache expires.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Final

import msgspec

from matchpod.core.match.played_map import MapStatus
from matchpod.ports import Database, Value
from matchpod.storage.history_counts import DAY_MS, CountedKind, CountKey, DaySpan, days_sql, key_params

KEPT_S: Final = 60.0
MAX_LISTS: Final = 32
"""Maximum number of cached lists. The cache entry of a list with two years of matches takes 50 KB."""
STEP: Final = 2_000
"""Number of rows between two cached positions. Only rows that never started need this, because they have no day."""
PASSING: Final = frozenset({MapStatus.UPCOMING, MapStatus.LIVE})
"""Temporary statuses. In lists filtered by these, the oldest rows leave first, so positions from the oldest row
shift."""
_CHANGING_DAYS: Final = 2
"""Number of most recent days whose positions are not cached, because their rows still change."""


class Start(msgspec.Struct, frozen=True):
    """A row from which a list is read toward newer rows: an SQL condition for these, and the number of older rows."""

    condition: str
    params: Mapping[str, Value]
    position: int


class _Known(msgspec.Struct):
    read_s: float
    days: list[int]
    older: list[int]
    """Per day, the number of rows that started on earlier days; the last item is the number of rows of all these
    days."""
    ids: list[str]
    """Server ids, in order, at distances of about STEP rows among the rows that never started."""
    positions: list[int]
    """Per id in `ids`, the number of never-started rows of older servers."""


class ListPositions:
    """A cache of positions in lists."""

    def __init__(self, *, step: int = STEP, now_s: Callable[[], float] = time.monotonic) -> None:
        self._step = step
        self._now_s = now_s
        self._known: dict[CountKey, _Known] = {}

    async def find(
        self, db: Database, key: CountKey, position: int, *, table: str, conditions: str, params: Mapping[str, Value]
    ) -> Start | None:
        """Return a row at or shortly before `position`, which is counted from the oldest row, or None.

        Return None if the position is among the newest rows, or if the list has a temporary status. `conditions` and
        `params` select the rows of the list from `table`.
        """
        if key.status in PASSING:
            return None
        known = await self._read(db, key)
        found = await db.read_one(*_days(key, "count", DaySpan(0, 1)))
        never_started = 0 if found is None else msgspec.convert(found[0], int)
        if position < never_started:
            if key.kind is CountedKind.SERVER:
                return None
            rows = f"FROM {table} WHERE {conditions}"
            return await self._among_never_started(db, known, position, rows=rows, params=params)
        position -= never_started
        if position >= known.older[-1]:
            return None
        index = bisect_right(known.older, position) - 1
        start_ms = known.days[index] * DAY_MS
        return Start("sort_ms >= :start_ms", {"start_ms": start_ms}, never_started + known.older[index])

    async def _read(self, db: Database, key: CountKey) -> _Known:
        known = self._known.get(key)
        if known is None or self._now_s() - known.read_s >= KEPT_S:
            sql, params = _days(key, "day, count", DaySpan(1))
            rows = await db.read(f"{sql} ORDER BY day", params)
            stable = msgspec.convert(rows, list[tuple[int, int]])[:-_CHANGING_DAYS]
            older = list(accumulate((count for _, count in stable), initial=0))
            known = _Known(self._now_s(), [day for day, _ in stable], older, [""], [0])
            self._known.pop(key, None)
            if len(self._known) >= MAX_LISTS:
                del self._known[next(iter(self._known))]  # the list that was cached first
            self._known[key] = known
        return known

    async def _among_never_started(
        self, db: Database, known: _Known, position: int, *, rows: str, params: Mapping[str, Value]
    ) -> Start:
        rows = f"{rows} AND sort_ms = 0 AND server_id >= :last_id"
        while (last := known.positions[-1]) + self._step <= position:
            found = await db.read(
                f"SELECT server_id, (SELECT COUNT(*) {rows} AND server_id < next_row.server_id)"
                f" FROM (SELECT server_id {rows} ORDER BY server_id LIMIT 1 OFFSET :step) AS next_row",
                {**params, "last_id": known.ids[-1], "step": self._step},
            )
            if not found:
                break
            server_id, between = msgspec.convert(found[0], tuple[str, int])
            if not between:
                break
            if known.positions[-1] == last:  # if they differ, another request has added this position
                known.ids.append(server_id)
                known.positions.append(last + between)
        index = bisect_right(known.positions, position) - 1
        return Start("(sort_ms, server_id) >= (0, :start_id)", {"start_id": known.ids[index]}, known.positions[index])


def _days(key: CountKey, columns: str, span: DaySpan) -> tuple[str, dict[str, Value]]:
    sql, params = days_sql(columns, span)
    return sql, {**key_params(key), **params}
