"""Limit the number of servers on which a fleet's secret is tried before any server is known to accept it.

A trial is an attempt to use the secret on a server. Each region has a few places per secret, shared by all processes. A
trial occupies a place until it ends, and keeps it if the server rejects the secret. So the secret is tried on at most
as many servers as there are places, regardless of the number of processes.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value

TRIAL_MS: Final = 5 * 60_000
"""Time in ms after which a trial counts as ended. A trial takes at most a minute, so its process has probably died."""
KEPT_MS: Final = 24 * 3_600_000
"""Retention period in ms for rows of a replaced secret. By then, all processes use the new secret."""

_IS_FREE: Final = "(is_rejected = 0 AND (at_ms <= :expired_ms OR at_ms > :ahead_ms))"
"""SQL condition for a place whose trial counts as ended. If the trial's start is slightly in the future, a replica's
clock is ahead, and the trial has not ended. If it is far in the future, a clock was set back."""


async def begin(db: Database, region: str, secret: str, trial: str, *, places: int, now_ms: int) -> bool:
    """Reserve a place for a trial of the secret on a server; False if no place is free."""
    numbers = " UNION ALL ".join(f"SELECT {number} AS place" for number in range(1, places + 1))
    sql = (
        "INSERT INTO secret_trials (region, secret, place, trial, is_rejected, at_ms)"
        f" SELECT :region, :secret, place, :trial, 0, :now_ms FROM ({numbers}) AS numbers"
        " WHERE place NOT IN (SELECT place FROM secret_trials WHERE region = :region AND secret = :secret"
        f" AND NOT {_IS_FREE}) ORDER BY place LIMIT 1"
        " ON CONFLICT (region, secret, place) DO UPDATE SET trial = excluded.trial, at_ms = excluded.at_ms"
        f" WHERE {_IS_FREE.replace('is_', 'secret_trials.is_').replace('at_ms', 'secret_trials.at_ms')} RETURNING place"
    )
    about: dict[str, Value] = {"region": region, "secret": secret, "trial": trial}
    about |= {"now_ms": now_ms, "expired_ms": now_ms - TRIAL_MS, "ahead_ms": now_ms + TRIAL_MS}
    (rows,) = await db.write([Statement(sql, about)])
    return bool(rows)


async def reject(db: Database, region: str, secret: str, trial: str, *, now_ms: int) -> None:
    """Keep the place of a trial whose server rejected the secret, and delete old rows of earlier secrets."""
    about = {"region": region, "secret": secret}
    await db.write(
        [
            Statement(
                "UPDATE secret_trials SET is_rejected = 1, at_ms = :now_ms"
                " WHERE region = :region AND secret = :secret AND trial = :trial",
                {**about, "trial": trial, "now_ms": now_ms},
            ),
            Statement(
                "DELETE FROM secret_trials WHERE region = :region AND secret <> :secret AND at_ms < :before_ms",
                {**about, "before_ms": now_ms - KEPT_MS},
            ),
        ]
    )


async def accept(db: Database, region: str, secret: str, trial: str | None) -> None:
    """Free the place of the trial whose server accepted the secret, and all places whose server rejected it."""
    sql = (
        "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND (is_rejected = 1 OR trial = :trial)"
    )
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial or ""})])


async def drop(db: Database, region: str, secret: str, trial: str) -> None:
    """Free the place of a trial that ended without acceptance or rejection."""
    sql = "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND trial = :trial AND is_rejected = 0"
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial})])


async def rejected(db: Database, region: str, secret: str) -> int:
    """Return the number of servers that have rejected the secret since a server last accepted it."""
    sql = "SELECT COUNT(*) FROM secret_trials WHERE region = :region AND secret = :secret AND is_rejected = 1"
    row = await db.read_one(sql, {"region": region, "secret": secret})
    return 0 if row is None else msgspec.convert(row[0], int)
