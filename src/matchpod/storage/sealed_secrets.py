"""Encrypt the stored secrets of all tables again with the current key, while services use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from matchpod.ports import Database, Statement

SEALED: Final = {
    "organizations": ("webhook_secret", "old_webhook_secret"),
    "servers": ("callback_auth", "rcon_password", "server_password", "log_token", "report_token"),
    "callbacks": ("auth",),
    "webhooks": ("url", "secret", "old_secret"),
}
"""Columns that contain sealed (encrypted) secrets, by table; the primary key of each table is `id`."""

_PAGE: Final = 500
"""Number of rows read at a time."""


class Resealed(msgspec.Struct, frozen=True, kw_only=True):
    """Number of secrets that were encrypted again, that already had the current key, and that no key could decrypt."""

    changed: int = 0
    unchanged: int = 0
    unreadable: int = 0


async def reseal_all(db: Database, reseal: Callable[[bytes], bytes | None]) -> dict[str, Resealed]:
    """Encrypt all secrets again with `reseal`, which returns None if a secret needs no change; return numbers by table.

    A secret that is replaced at the same time keeps its new value. No lease or fence changes.
    """
    return {table: await _reseal_table(db, table, reseal) for table in SEALED}


async def _reseal_table(db: Database, table: str, reseal: Callable[[bytes], bytes | None]) -> Resealed:
    columns = SEALED[table]
    some = " OR ".join(f"{column} IS NOT NULL" for column in columns)
    page = f"SELECT id, {', '.join(columns)} FROM {table} WHERE id > :after AND ({some}) ORDER BY id LIMIT {_PAGE}"
    counts, after = Counter[str](), ""
    while found := await db.read(page, {"after": after}):
        for row_id, *values in found:
            after = str(row_id)
            updates: list[Statement] = []
            for column, sealed in zip(columns, values, strict=True):
                if not isinstance(sealed, bytes):
                    continue
                state, again = _reseal(sealed, reseal)
                counts[state] += 1
                if again is not None:
                    update = f"UPDATE {table} SET {column} = :again WHERE id = :id AND {column} = :sealed"
                    updates.append(Statement(update, {"again": again, "id": after, "sealed": sealed}))
            if updates:
                await db.write(updates)
    return Resealed(**counts)


def _reseal(sealed: bytes, reseal: Callable[[bytes], bytes | None]) -> tuple[str, bytes | None]:
    """Return the name of the field of `Resealed` that counts the secret, and the secret's new value, if it has one."""
    try:
        again = reseal(sealed)
    except ValueError:
        return "unreadable", None
    return ("unchanged" if again is None else "changed"), again
