"""Compress the results, callbacks, statistics and logs of ended matches. The functions that read these rows return the
same data as before.

While the replicas of a shared database are upgraded, processes of an older version, which cannot read compressed rows,
may still run or be restarted. So in a shared database, nothing is compressed until no such process has run for a day
(`may_begin`). In any database, `compact` skips matches that ended in the last day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, TypeVar

import msgspec

from matchpod.ports import Database, Statement
from matchpod.storage import heartbeats, raw_log
from matchpod.storage.history import MapStats
from matchpod.storage.packed import cut_result, is_packed, lacks_result, pack, unpack
from matchpod.storage.rows import parameter_list, read_all

DAY_MS: Final = 24 * 60 * 60 * 1000
PAGE_MATCHES: Final = 20
"""Maximum number of matches per transaction, few enough that other writers hardly wait."""
COUNTED_MATCHES: Final = 1_000
PAUSE_S: Final = 0.1
"""Pause in seconds between two transactions in a running service, so that running matches are not delayed."""

_COMPACTED_TO: Final = "compacted_to"
_COMPACTED_FROM_MS: Final = "compacted_from_ms"
"""Names of two rows in the table `installation`: the id of the last compacted match, and when compaction may begin."""


class _End(msgspec.Struct, frozen=True):
    server_id: str
    at_ms: int


class _Outcome(msgspec.Struct, frozen=True):
    server_id: str
    at_ms: int
    result: bytes | None
    callback_body: bytes


class _Callback(msgspec.Struct, frozen=True):
    id: str
    server_id: str
    body: bytes


_E = TypeVar("_E", _End, _Outcome)


async def compact(db: Database, now_ms: int, *, pause_s: float = 0.0) -> int:
    """Compact the matches that are due; return how many were examined, whether or not anything was compressed."""
    if not await may_begin(db, now_ms):
        return 0
    count, after_id = 0, await _value(db, _COMPACTED_TO) or ""
    while outcomes := await _read_due(db, _Outcome, after_id, now_ms, limit=PAGE_MATCHES):
        after_id = outcomes[-1].server_id
        callbacks, stats = await _read_rows(db, [outcome.server_id for outcome in outcomes])
        changes = await asyncio.to_thread(_changes, outcomes, callbacks, stats)
        if db.is_shared:  # without sharing, the log was compressed when the server was released
            for outcome in outcomes:
                await raw_log.compress(db, outcome.server_id)
        await db.write([*changes, _set(_COMPACTED_TO, after_id)])
        count += len(outcomes)
        await asyncio.sleep(pause_s)
    return count


async def count_due(db: Database, now_ms: int) -> int:
    """Return the number of matches that `compact` would examine."""
    from_ms = await _value(db, _COMPACTED_FROM_MS)
    if db.is_shared and (from_ms is None or now_ms < int(from_ms)):
        return 0
    count, after_id = 0, await _value(db, _COMPACTED_TO) or ""
    while ends := await _read_due(db, _End, after_id, now_ms, limit=COUNTED_MATCHES):
        count, after_id = count + len(ends), ends[-1].server_id
    return count


async def _read_due(db: Database, struct: type[_E], after_id: str, now_ms: int, *, limit: int) -> list[_E]:
    """Return the next matches in order of id, up to but excluding the first match that ended in the last day.

    Server ids sort by creation time. An end in the future (after the clock was set back) does not count as recent.
    """
    rest = "FROM outcomes WHERE server_id > :after_id ORDER BY server_id LIMIT :limit"
    found = await read_all(db, struct, rest, {"after_id": after_id, "limit": limit})
    return list(takewhile(lambda outcome: not now_ms - DAY_MS <= outcome.at_ms <= now_ms, found))


async def compact_stats(db: Database, server_id: str) -> None:
    """Compact the statistics of a match that were written after the rest of the match was compacted."""
    if server_id <= (await _value(db, _COMPACTED_TO) or ""):
        _, stats = await _read_rows(db, [server_id])
        if changes := _changes((), (), stats):
            await db.write(changes)


async def may_begin(db: Database, now_ms: int) -> bool:
    """True if rows may be compressed. In a shared database, processes of older versions must not have run for a day."""
    if not db.is_shared:
        return True
    from_ms = await _value(db, _COMPACTED_FROM_MS)
    if from_ms is None or await heartbeats.has_older_process(db, now_ms):
        await db.write([_set(_COMPACTED_FROM_MS, str(now_ms + DAY_MS))])
        return False
    return now_ms >= int(from_ms)


async def _value(db: Database, name: str) -> str | None:
    row = await db.read_one("SELECT value FROM installation WHERE name = :name", {"name": name})
    return None if row is None else msgspec.convert(row[0], str)


def _set(name: str, value: str) -> Statement:
    sql = (
        "INSERT INTO installation (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    return Statement(sql, {"name": name, "value": value})


async def _read_rows(db: Database, server_ids: Sequence[str]) -> tuple[list[_Callback], list[MapStats]]:
    listed, params = parameter_list("id", server_ids)
    callbacks = await read_all(db, _Callback, f"FROM callbacks WHERE server_id IN {listed}", params)
    of_maps = f"FROM map_stats WHERE map_id IN (SELECT id FROM maps WHERE server_id IN {listed})"
    return callbacks, await read_all(db, MapStats, of_maps, params)


def _changes(
    outcomes: Sequence[_Outcome], callbacks: Sequence[_Callback], stats: Sequence[MapStats]
) -> list[Statement]:
    results = {outcome.server_id: unpack(outcome.result) for outcome in outcomes if outcome.result is not None}
    statements = [
        Statement(
            "UPDATE outcomes SET result = :result, callback_body = :body WHERE server_id = :id",
            # Emptied, because `callbacks` has this body too. Only canceled matches, whose result is NULL, keep it here.
            {"id": outcome.server_id, "result": pack(outcome.result), "body": b""},
        )
        for outcome in outcomes
        if outcome.result is not None and (outcome.callback_body or not is_packed(outcome.result))
    ]
    statements += [
        Statement(
            "UPDATE callbacks SET body = :body WHERE id = :id",
            {"id": callback.id, "body": cut_result(callback.body, results[callback.server_id])},
        )
        for callback in callbacks
        if callback.server_id in results and not lacks_result(callback.body)
    ]
    for stat in stats:
        columns = {name: pack(getattr(stat, name)) for name in ("players", "anti_cheat", "leaderboard")}
        if any(columns[name] != getattr(stat, name) for name in columns):
            # If the statistics have been recomputed since they were read, their version differs and nothing is written.
            statements.append(
                Statement(
                    "UPDATE map_stats SET players = :players, anti_cheat = :anti_cheat, leaderboard = :leaderboard"
                    " WHERE map_id = :map_id AND stats_version = :stats_version",
                    {**columns, "map_id": stat.map_id, "stats_version": stat.stats_version},
                )
            )
    return statements
