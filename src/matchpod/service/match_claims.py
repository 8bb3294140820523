"""Record which person takes care of a match that needs attention (a claim), so that other people need not."""

from __future__ import annotations

import logging

from matchpod.core.errors import ForbiddenError, InvalidParamsError
from matchpod.core.requests.history_query import read_server_id
from matchpod.core.requests.text_rules import person_fault, reason_fault
from matchpod.ports import Clock, Database, NothingChangedError
from matchpod.service.access.audit import Action, Audit
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal, require_own
from matchpod.storage import match_claims, servers
from matchpod.storage.match_claims import MatchClaim
from matchpod.storage.servers import ServerSummary

_log = logging.getLogger(__name__)


class MatchClaims:
    """Stores and ends claims on the matches of all organizations."""

    def __init__(self, *, db: Database, clock: Clock, audit: Audit) -> None:
        self._db = db
        self._clock = clock
        self._audit = audit

    @unavailable_on_outage
    async def claim(self, principal: Principal, server_id: str, *, name: str, note: str) -> None:
        """Claim a match of the caller's organization for a person. The claim replaces any earlier claim.

        Raise ForbiddenError if the caller may not act on matches, InvalidParamsError if the name or the note is not
        valid.
        """
        row = await self._own(principal, server_id)
        for field, fault in (("name", person_fault(name)), ("note", reason_fault(note) if note else None)):
            if fault is not None:
                raise InvalidParamsError(f"The {field} {fault.message}.")
        given = MatchClaim(
            server_id=row.id,
            org_id=row.org_id,
            name=name,
            note=note,
            claimed_by=principal.key_id,
            claimed_at_ms=self._clock.now_ms(),
        )
        detail = f"{name}: {note}" if note else name
        record = self._audit.act_of(principal, Action.MATCH_CLAIMED, target=row.id, detail=detail)
        await self._db.write([match_claims.claim(given), record])
        _log.info("match claimed", extra={"server_id": row.id, "actor": principal.actor})

    @unavailable_on_outage
    async def release(self, principal: Principal, server_id: str) -> None:
        """End the claim on a match of the caller's organization, whichever person has it. No effect without a claim."""
        row = await self._own(principal, server_id)
        record = self._audit.act_of(principal, Action.CLAIM_RELEASED, target=row.id)
        try:
            await self._db.write([match_claims.release(row.org_id, row.id), record])
        except NothingChangedError:
            return
        _log.info("claim released", extra={"server_id": row.id, "actor": principal.actor})

    async def _own(self, principal: Principal, server_id: str) -> ServerSummary:
        if not principal.may_act:
            raise ForbiddenError("This requires permission to act on matches.")
        found = await servers.summary(self._db, server_id) if read_server_id(server_id) else None
        return require_own(principal, found, "match")
