"""End matches of a console site without a game server, and record attempts to deliver their callbacks."""

from __future__ import annotations

from matchpod.core.effects import CancelReason
from matchpod.core.outcome import Outcome
from matchpod.ports import Delivery
from matchpod.service.access.webhook_signature import attempt_headers, mask_headers
from matchpod.service.end_match import end_match
from matchpod.storage import outbox, servers
from tests.contract.console.console_site import OWNER, ConsoleSite

URL = "https://hooks.example.com/cs2?token=hidden"
SECRET = "whsec_" + "QUJD" * 10
AT_S = 1_790_000_000


async def ended_match(
    site: ConsoleSite, external_id: str, *, who: str = OWNER, result: bytes | None = None, **fields: object
) -> str:
    server_id = await site.create_match(who, externalMatchId=external_id, callbackUrl=URL, **fields)
    await end(site, server_id, result=result)
    return f"msg_{server_id}"


async def end(
    site: ConsoleSite, server_id: str, *, result: bytes | None = None, reason: CancelReason = CancelReason.SERVER_LOST
) -> None:
    row = await servers.get(site.resources.db, server_id)
    assert row is not None
    outcome = Outcome(at_ms=site.resources.clock.now_ms(), reason=None if result else reason)
    await site.resources.db.write(end_match(row, outcome, result=result, fence=None, callback_id=f"msg_{server_id}"))


async def record_attempt(
    site: ConsoleSite, callback_id: str, *, number: int = 1, status: int | None = 500, error: str | None = None
) -> None:
    """Record an attempt after which no other one is scheduled."""
    headers = attempt_headers(
        [SECRET], callback_id, b"{}", timestamp_s=AT_S, attempt=number, version="1.2.3", authorization="Bearer hidden"
    )
    delivery = Delivery(status=status, duration_ms=5, error=error)
    statements = outbox.record_attempt(
        callback_id, delivery, number=number, at_ms=AT_S * 1000, next_at_ms=None, headers=mask_headers(headers)
    )
    await site.resources.db.write(statements)


async def given_up(site: ConsoleSite, external_id: str, *, who: str = OWNER) -> str:
    """End a match whose callback was given up; return the id of the callback."""
    callback_id = await ended_match(site, external_id, who=who)
    await record_attempt(site, callback_id)
    return callback_id
