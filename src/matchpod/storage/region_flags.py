"""Store which regions an operator has switched on or off. A region without a row is on."""

from __future__ import annotations

import msgspec

from matchpod.ports import Database, Statement


async def active_flags(db: Database) -> dict[str, bool]:
    """Return, by region, whether it is on; regions that were never switched are left out."""
    rows = await db.read("SELECT code, is_active FROM region_flags ORDER BY code")
    return {code: flag == 1 for code, flag in msgspec.convert(rows, list[tuple[str, int]])}


async def is_active(db: Database, code: str) -> bool:
    """True if the region is on: it was never switched, or last switched on."""
    row = await db.read_one("SELECT is_active FROM region_flags WHERE code = :code", {"code": code})
    return row is None or row[0] == 1


async def set_active(db: Database, code: str, is_active: bool, *also: Statement) -> None:
    """Switch a region on or off, in one transaction with the statements in `also`. A restart does not change it."""
    switch = (
        "INSERT INTO region_flags (code, is_active) VALUES (:code, :is_active)"
        " ON CONFLICT (code) DO UPDATE SET is_active = excluded.is_active"
    )
    await db.write([Statement(switch, {"code": code, "is_active": int(is_active)}), *also])
