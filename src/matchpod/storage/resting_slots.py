"""Store the slots whose servers rest, because they sent over their consoles what no game server sends.

A row is deleted when the rest is over; until then only the match that is named in it may use the slot. A server that is
started for each match never rests: the next one in its slot is another.
"""

from __future__ import annotations

from typing import Final

import msgspec

from matchpod.ports import Database, Statement

REST_MS: Final = 5 * 60_000
"""How long such a server gets no other match: it is likely to fail that one too, and the next. It is half of the time
that a match waits for a server by default, so in a region with one server a match still gets its chance."""

SKEW_MS: Final = 60_000
"""How far the clocks of two replicas may differ; and a time may be older than the rest that is compared with it."""


class RestingSlot(msgspec.Struct, frozen=True):
    """A slot whose server rests, the match in which it was at fault, and when it may get the next one."""

    slot: str
    server_id: str
    until_ms: int

    def is_over(self, now_ms: int) -> bool:
        """True if the server has rested; also if the clock was set back far since it began."""
        return not 0 < self.until_ms - now_ms <= REST_MS + SKEW_MS


def rest(region: str, slot: str, server_id: str, now_ms: int) -> Statement:
    """Let the server of a slot rest after the match that it played, or was to play."""
    return Statement(
        "INSERT INTO resting_slots (region, slot, server_id, until_ms) VALUES (:region, :slot, :server_id, :until_ms)"
        " ON CONFLICT (region, slot) DO UPDATE SET server_id = excluded.server_id, until_ms = excluded.until_ms",
        {"region": region, "slot": slot, "server_id": server_id, "until_ms": now_ms + REST_MS},
    )


async def resting(db: Database) -> dict[str, list[RestingSlot]]:
    """Return the slots whose servers rest, by region and in the order of their names."""
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
