"""Append the log entries of many servers in one transaction.

With PostgreSQL, the transaction is a single statement. It takes only one round trip, and a process that freezes cannot
leave the servers' rows locked between two statements. With SQLite, a single statement assigns all entry numbers.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value
from matchpod.storage import raw_log
from matchpod.storage.announcements import CHANNEL
from matchpod.storage.rows import write_one

LOCK_MS: Final = 2_000
"""Lock timeout in ms for a group of entries whose servers' rows another transaction has locked. PostgreSQL ends the
transaction of a frozen process only after 15 s."""
LOCK_ALONE_MS: Final = 250
"""Lock timeout in ms for each single entry after the group has timed out. It is short because other matches wait."""
ANNOUNCED_TOGETHER: Final = 100
"""Maximum number of servers per NOTIFY. PostgreSQL limits its payload to 8,000 bytes."""

MAX_PLAIN_BYTES: Final = 700
"""Maximum size in bytes of a body that SQLite stores uncompressed; the row of a larger body would not fit into a
database page. If many matches run, most bodies are larger."""

# Rows of `raw_log_heads` are locked in the order of ids, as Python sorts them (collation C). All processes, including
# those of earlier versions, lock in this order, so they cannot deadlock.
_APPEND: Final = f"""
WITH lock_limit AS MATERIALIZED (
    SELECT set_config('lock_timeout', :lock_ms, true) AS value
), new AS MATERIALIZED (
    SELECT * FROM unnest(
        CAST(:server_ids AS TEXT[]), CAST(:kinds AS TEXT[]), CAST(:received_ms AS BIGINT[]),
        CAST(:headers AS BYTEA[]), CAST(:bodies AS BYTEA[]), CAST(:attempts AS TEXT[])
    ) WITH ORDINALITY AS new (server_id, kind, received_ms, headers, body, attempt, place)
), grown AS MATERIALIZED (
    SELECT server_id, COUNT(*) AS entries, SUM(LENGTH(body)) AS size
    FROM new CROSS JOIN lock_limit WHERE lock_limit.value IS NOT NULL GROUP BY server_id
), heads AS (
    INSERT INTO raw_log_heads (server_id, seq, bytes)
    SELECT server_id, entries, size FROM grown ORDER BY server_id COLLATE "C"
    ON CONFLICT (server_id) DO UPDATE
    SET seq = raw_log_heads.seq + excluded.seq, bytes = raw_log_heads.bytes + excluded.bytes
    RETURNING server_id, seq, bytes
), stored AS (
    INSERT INTO raw_log (server_id, seq, kind, received_ms, headers, body, attempt, is_compressed)
    SELECT server_id, seq - entries + ROW_NUMBER() OVER (PARTITION BY server_id ORDER BY place),
        kind, received_ms, headers, body, attempt, 0
    FROM new JOIN grown USING (server_id) JOIN heads USING (server_id)
), announced AS MATERIALIZED (
    SELECT pg_notify('{CHANNEL}', string_agg(server_id || ':' || seq, ' ')) FROM (
        SELECT server_id, seq, (ROW_NUMBER() OVER () - 1) / {ANNOUNCED_TOGETHER} AS part
        FROM heads WHERE server_id = ANY(CAST(:announced AS TEXT[]))
    ) AS parts GROUP BY part
)
SELECT server_id, seq, bytes FROM heads WHERE (SELECT COUNT(*) FROM announced) >= 0
"""

_GROW_SQLITE: Final = """
INSERT INTO raw_log_heads (server_id, seq, bytes)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]')
FROM json_each(:grown) WHERE true
ON CONFLICT (server_id) DO UPDATE
SET seq = raw_log_heads.seq + excluded.seq, bytes = raw_log_heads.bytes + excluded.bytes
RETURNING server_id, seq, bytes
"""
_STORE_SQLITE: Final = """
INSERT INTO raw_log (server_id, seq, kind, received_ms, headers, body, attempt, is_compressed)
SELECT server_id, seq - :later, :kind, :received_ms, :headers, :body, :attempt, :is_compressed
FROM raw_log_heads WHERE server_id = :server_id
"""

NewRow = tuple[str, str, int, bytes, bytes, str]
"""A log entry to store: server id, kind, time of receipt, headers, body and attempt."""


async def append_group(
    db: Database, group: Sequence[NewRow], announced: Collection[str] = (), *, lock_ms: int = LOCK_MS
) -> list[tuple[int, int]]:
    """Store entries in order. Return, per entry, its number and the size in bytes of its server's log up to this entry.

    `announced` are the servers whose new entries are announced, because other processes may drive their matches.
    RowLockedError if another transaction keeps a server's row locked for `lock_ms`.
    """
    if not group:
        return []
    if db.is_postgres:
        names = ("server_ids", "kinds", "received_ms", "headers", "bodies", "attempts")
        columns = dict(zip(names, map(list, zip(*group, strict=True)), strict=True))
        rows = await write_one(db, _APPEND, {**columns, "announced": list(announced), "lock_ms": str(lock_ms)})
    elif len(group) == 1:
        ((server_id, kind, received_ms, headers, body, attempt),) = group
        heads, _ = await db.write(
            raw_log.append(server_id, kind, received_ms=received_ms, headers=headers, body=body, attempt=attempt)
        )
        rows = [(server_id, *heads[0])]
    else:
        rows = (await db.write(_statements(group)))[0]
    newest = {server_id: (seq, size) for server_id, seq, size in msgspec.convert(rows, list[tuple[str, int, int]])}
    numbers = []
    for server_id, *_, body, _ in reversed(group):
        seq, size = newest[server_id]
        numbers.append((seq, size))
        newest[server_id] = seq - 1, size - len(body)
    return numbers[::-1]


def _statements(group: Sequence[NewRow]) -> list[Statement]:
    """Return the statements for SQLite. The first returns, per server, the newest entry number and the log's total
    bytes.
    """
    grown: dict[str, tuple[int, int]] = {}
    stores = []
    for server_id, kind, received_ms, headers, body, attempt in reversed(group):
        later, size = grown.get(server_id, (0, 0))
        grown[server_id] = later + 1, size + len(body)
        is_compressed = len(body) > MAX_PLAIN_BYTES
        params: dict[str, Value] = {
            "server_id": server_id,
            "later": later,
            "kind": kind,
            "received_ms": received_ms,
            "headers": headers,
            "body": _compressed(body) if is_compressed else body,
            "attempt": attempt,
            "is_compressed": int(is_compressed),
        }
        stores.append(Statement(_STORE_SQLITE, params, must_change=True))
    heads = msgspec.json.encode([(server_id, *of_server) for server_id, of_server in grown.items()]).decode()
    return [Statement(_GROW_SQLITE, {"grown": heads}), *reversed(stores)]


def _compressed(body: bytes) -> bytes:
    """Compress a body to about a third of its size. A small window takes only a quarter of the usual time to set up."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, wbits=11, memLevel=4)
    return compressor.compress(body) + compressor.flush()
