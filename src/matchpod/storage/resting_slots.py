"""Store resting slots: their servers get no other match for a while, after an invalid answer on their console.

A row is deleted when the rest is over. Until then, only the match that is named in the row may use the slot. In fleets
that start a server per match, slots never rest, because the next match gets another server.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement

REST_MS: Final = 5 * 60_000
"""How long a faulty server gets no other match, because it would probably fail that match too. It is half of the time
that a match waits for a server by default, so a region with only one server still plays matches."""

SKEW_MS: Final = 60_000
"""Tolerance for a rest that seems to end too late, because the clocks of replicas differ, and because `now_ms` may be
older than the row."""


class RestingSlot(msgspec.Struct, frozen=True):
    """A slot whose server rests, the match that it failed, and when the slot may be used for other matches."""

    slot: str
    server_id: str
    until_ms: int

    def is_over(self, now_ms: int) -> bool:
        """True if the rest is over, or if the clock was set back far since the rest began."""
        return not 0 < self.until_ms - now_ms <= REST_MS + SKEW_MS


def rest(region: str, slot: str, server_id: str, now_ms: int) -> Statement:
    """Let a slot rest after its match, whether the match was played or not."""
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
