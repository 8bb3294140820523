"""Store which servers of a fleet are tried with its secret while none is known to accept it, and which rejected it.

Each region has a few places per secret, for all processes together: a place is taken while a server is tried, and kept
if the server rejects the secret. So no number of processes can try more servers than there are places.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement, Value

TRIAL_MS: Final = 5 * 60_000
"""After this time a trial counts as ended: it takes a minute at most, and its process may have died."""
KEPT_MS: Final = 24 * 3_600_000
"""How long the places of other secrets are kept. Until then all processes have the secret that replaced them."""

_IS_FREE: Final = "(is_rejected = 0 AND (at_ms <= :expired_ms OR at_ms > :ahead_ms))"
"""A trial that seems to begin later is of a replica whose clock is ahead; far later, the clock was set back."""


async def begin(db: Database, region: str, secret: str, trial: str, *, places: int, now_ms: int) -> bool:
    """Take a place for the trial of one more server; False if none is free."""
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
    """Keep the place of a trial whose server rejected the secret, and forget secrets that were replaced long ago."""
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
    """Free the places of the servers that rejected the secret, since one accepts it, and that of its trial."""
    sql = (
        "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND (is_rejected = 1 OR trial = :trial)"
    )
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial or ""})])


async def drop(db: Database, region: str, secret: str, trial: str) -> None:
    """Free the place of a trial that said nothing."""
    sql = "DELETE FROM secret_trials WHERE region = :region AND secret = :secret AND trial = :trial AND is_rejected = 0"
    await db.write([Statement(sql, {"region": region, "secret": secret, "trial": trial})])


async def rejected(db: Database, region: str, secret: str) -> int:
    """Return how many servers have rejected the secret since the last one accepted it."""
    sql = "SELECT COUNT(*) FROM secret_trials WHERE region = :region AND secret = :secret AND is_rejected = 1"
    row = await db.read_one(sql, {"region": region, "secret": secret})
    return 0 if row is None else msgspec.convert(row[0], int)
