"""Store resting slots. After an invalid answer on a server's console, its slot is not used for other matches for a
while.

A row is deleted when the rest is over. Until then, only the match that the row names may use the slot. In fleets that
start a new server for each match, no slot rests.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement

REST_MS: Final = 5 * 60_000
"""Duration of a rest in ms. Another match would probably fail on the faulty server, too. It is half of the default time
that a match waits for a server, so that a region with only one server still plays matches."""

SKEW_MS: Final = 60_000
"""Tolerance in ms for a rest that seems longer than REST_MS, because the clocks of replicas differ, or because `now_ms`
was read before the row was written."""


class RestingSlot(msgspec.Struct, frozen=True):
    """A resting slot, the match that failed on its server, and the time when other matches may use the slot."""

    slot: str
    server_id: str
    until_ms: int

    def is_over(self, now_ms: int) -> bool:
        """True if the rest is over, or ends so far in the future that the clock must have been set back."""
        return not 0 < self.until_ms - now_ms <= REST_MS + SKEW_MS


def rest(region: str, slot: str, server_id: str, now_ms: int) -> Statement:
    """Let a slot rest after its match has ended, or has to get another server."""
    return Statement(
        "INSERT INTO resting_slots (region, slot, server_id, until_ms) VALUES (:region, :slot, :server_id, :until_ms)"
        " ON CONFLICT (region, slot) DO UPDATE SET server_id = excluded.server_id, until_ms = excluded.until_ms",
        {"region": region, "slot": slot, "server_id": server_id, "until_ms": now_ms + REST_MS},
    )


async def resting(db: Database) -> dict[str, list[RestingSlot]]:
    """Return the resting slots by region, ordered by name."""
    found: dict[str, list[RestingSlot]] = {}
    rows = await db.read("SELECT region, slot, server_id, until_ms FROM resting_slots ORDER BY region, slot")
    for region, slot, server_id, until_ms in msgspec.convert(rows, list[tuple[str, str, str, int]]):
        found.setdefault(region, []).append(RestingSlot(slot, server_id, until_ms))
    return found


async def end_rests(db: Database, now_ms: int) -> None:
    over = [(region, slot) for region, found in (await resting(db)).items() for slot in found if slot.is_over(now_ms)]
    if over:
        await db.write([_end(region, slot) for region, slot in over])


def _end(region: str, resting: RestingSlot) -> Statement:
    return Statement(
        "DELETE FROM resting_slots WHERE region = :region AND slot = :slot AND until_ms = :until_ms",
        {"region": region, "slot": resting.slot, "until_ms": resting.until_ms},
    )
