"""Limit on how many servers a fleet's secret is tried at a time, while no server is known to accept it.

A trial is an attempt to use the secret on a server. Each region has a few places per secret, which all processes share.
A trial occupies a place until it ends. If the server rejects the secret, the place stays occupied. So the secret is
tried on at most as many servers as there are places, however many processes there are.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value

TRIAL_MS: Final = 5 * 60_000
"""After this time, a trial counts as ended. It needs at most a minute, so its process has probably died."""
KEPT_MS: Final = 24 * 3_600_000
"""How long the rows of a replaced secret are kept. After this time, all processes use the new secret."""

_IS_FREE: Final = "(is_rejected = 0 AND (at_ms <= :expired_ms OR at_ms > :ahead_ms))"
"""SQL condition for a place that is free again after a trial. A start in the near future is of a replica whose clock is
ahead; a start in the far future means that a clock was set back."""


async def begin(db: Database, region: str, secret: str, trial: str, *, places: int, now_ms: int) -> bool:
    """Reserve a place for the trial of another server; False if no place is free."""
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
    """Keep the place of a trial whose server rejected the secret, and delete the rows of long replaced secrets."""
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
    """Free the place of the trial whose server accepted the secret, and those of all servers that rejected it."""
    sql = (
        "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND (is_rejected = 1 OR trial = :trial)"
    )
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial or ""})])


async def drop(db: Database, region: str, secret: str, trial: str) -> None:
    """Free the place of an inconclusive trial."""
    sql = "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND trial = :trial AND is_rejected = 0"
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial})])


async def rejected(db: Database, region: str, secret: str) -> int:
    """Return how many servers have rejected the secret since a server last accepted it."""
    sql = "SELECT COUNT(*) FROM secret_trials WHERE region = :region AND secret = :secret AND is_rejected = 1"
    row = await db.read_one(sql, {"region": region, "secret": secret})
    return 0 if row is None else msgspec.convert(row[0], int)
