"""Rule on matches that have ended, and withdraw rulings, for the API, the console and the command line.

A ruling does not change the outcome or the result of its match, and sends no callback. All rulings on a match are
stored, but only the last ruling counts. The web layer has already checked scope and role.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from matchpod.core import errors
from matchpod.core.faults import stated_fault
from matchpod.core.iso_dates import iso_time
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.json_limits import decode_json
from matchpod.core.requests.ruling_request import WINNER, read_ruling_request
from matchpod.core.rulings import (
    RULING_DAYS,
    RuledWinner,
    Ruling,
    RulingRequest,
    has_ruled_teams,
    ruling_words,
    rulings_end_ms,
)
from matchpod.core.stored.stored_settings import read_settings
from matchpod.ports import Clock, Database, DuplicateError, NothingChangedError, Statement
from matchpod.service.access.audit import Action, Audit
from matchpod.service.access.rate_limit import RateLimiter
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_ruling_id
from matchpod.service.identity.principals import Principal, require_own
from matchpod.service.reading.endings import read_ruling, ruling_of
from matchpod.service.request_keys import check_key, made_before, used_key
from matchpod.service.streams import organization_event_lines
from matchpod.storage import organization_events, rulings, servers
from matchpod.storage.rulings import RulingRow
from matchpod.storage.servers import Idempotency, ServerRow

PER_MINUTE: Final = 120
"""Maximum number of rulings and withdrawals per organization and minute. They are limited because they are stored
forever, and sent to all subscribers of the organization's stream."""

_encode: Final = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


class Rulings:
    """Stores and withdraws rulings on the matches of all organizations. `wake` is called after an event was stored."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        audit: Audit,
        wake: Callable[[], None] = lambda: None,
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._db = db
        self._clock = clock
        self._audit = audit
        self._wake = wake
        self._random_bytes = random_bytes
        self._limiter = RateLimiter(
            PER_MINUTE, lambda: clock.now_ms() / 1000, owner="this organization", unit="rulings and withdrawals"
        )

    @unavailable_on_outage
    async def rule(
        self, principal: Principal, server_id: str, body: bytes, request_key: str | None
    ) -> tuple[Ruling, bool]:
        """Rule on a match of the organization, or return the ruling made with the same key and body in the last day.

        The second value is True if an earlier ruling is returned.
        """
        check_key(request_key)
        decoded = decode_json(body)
        request = read_ruling_request(decoded)
        used = used_key(principal.org_id, request_key, decoded, self._clock.now_ms(), place=f"ruling {server_id}")
        row = await self._own_row(principal, server_id)
        earlier = await self._earlier(used)
        if earlier is not None:
            return earlier, True
        try:
            return await self.make(row, request, actor=principal.actor, key_id=principal.key_id, used=used), False
        except DuplicateError:  # a concurrent request used the same key
            earlier = await self._earlier(used)
            if earlier is None:
                raise
            return earlier, True

    @unavailable_on_outage
    async def withdraw(self, principal: Principal, server_id: str) -> None:
        """Withdraw the current ruling on a match of the caller's organization; NotFoundError if there is no ruling."""
        row = await self._own_row(principal, server_id)
        await self.end(row, actor=principal.actor, key_id=principal.key_id)

    async def make(
        self, row: ServerRow, request: RulingRequest, *, actor: str, key_id: str, used: Idempotency | None = None
    ) -> Ruling:
        """Store a ruling, which becomes the current ruling. `actor` is for the audit log, `key_id` for the ruling."""
        if request.winner is not RuledWinner.NONE and not has_ruled_teams(read_settings(row.settings)):
            raise errors.InvalidFieldsError((stated_fault(WINNER.name, "must be none: a deathmatch has no teams"),))
        now_ms = self._check_time(row)
        self._limiter.acquire(row.org_id)
        ruling = Ruling(
            id=new_ruling_id(now_ms, self._random_bytes(ID_RANDOM_BYTES)),
            winner=request.winner,
            reason=request.reason,
            by=request.by,
            ruled_at=iso_time(now_ms),
        )
        stored = RulingRow(
            id=ruling.id,
            server_id=row.id,
            org_id=row.org_id,
            winner=ruling.winner,
            reason=ruling.reason,
            person=ruling.by,
            ruled_at_ms=now_ms,
            ruled_by=key_id,
        )
        changes = rulings.add(stored, _encode(ruling))
        if used is not None:
            changes += servers.insert_key(used, ruling.id)
        record = self._audit.entry(
            Action.MATCH_RULED, org_id=row.org_id, actor=actor, target=row.id, detail=ruling_words(ruling)
        )
        await self._write(row, [*changes, record], ruling, at_ms=now_ms)
        return ruling

    async def end(self, row: ServerRow, *, actor: str, key_id: str) -> None:
        """Withdraw the current ruling. Earlier rulings do not become current again."""
        ruling = read_ruling(row.ruling)
        if row.ruling is None or ruling is None:
            raise errors.NotFoundError("There is no ruling on this match.")
        now_ms = self._check_time(row)
        self._limiter.acquire(row.org_id)
        changes = rulings.withdraw(row.id, ruling.id, row.ruling, at_ms=now_ms, by=key_id)
        record = self._audit.entry(
            Action.RULING_WITHDRAWN, org_id=row.org_id, actor=actor, target=row.id, detail=ruling_words(ruling)
        )
        try:
            await self._write(row, [*changes, record], None, at_ms=now_ms)
        except NothingChangedError:
            raise errors.NotFoundError(
                "The ruling was replaced or withdrawn by another request. Get the match to see its current ruling."
            ) from None

    def _check_time(self, row: ServerRow) -> int:
        """Return the current time. Raise an error if the match has not ended, or ended too long ago for a ruling."""
        now_ms = self._clock.now_ms()
        if not row.has_ended or row.ended_at_ms is None:
            raise errors.MatchNotEndedError("The match has not ended. It can be ruled on once it has an outcome.")
        if now_ms > rulings_end_ms(row.ended_at_ms):
            raise errors.RulingTooLateError(f"The match ended more than {RULING_DAYS} days ago. Its rulings are final.")
        return now_ms

    async def _write(self, row: ServerRow, changes: Sequence[Statement], ruling: Ruling | None, *, at_ms: int) -> None:
        event = organization_event_lines.match_ruled(row, ruling, at_ms=at_ms)
        await self._db.write([*changes, *organization_events.append(row.org_id, [event], at_ms=at_ms)])
        self._wake()
        winner = "withdrawn" if ruling is None else ruling.winner.value
        _log.info("match ruled", extra={"server_id": row.id, "org_id": row.org_id, "winner": winner})

    async def _own_row(self, principal: Principal, server_id: str) -> ServerRow:
        found = await servers.get(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "server")

    async def _earlier(self, used: Idempotency | None) -> Ruling | None:
        """Return the ruling of an earlier request with the same key; IdempotencyConflictError if the bodies differ."""
        ruling_id = await made_before(self._db, used)
        row = None if ruling_id is None else await rulings.get(self._db, ruling_id)
        return None if row is None else ruling_of(row)
