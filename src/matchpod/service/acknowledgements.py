"""Acknowledge matches that ended without a result: they leave the wall of everyone in the organization."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from matchpod.core.errors import ForbiddenError
from matchpod.core.iso_dates import iso_time
from matchpod.ports import Clock, Database, NothingChangedError, Statement
from matchpod.service.access.audit import Action, Audit
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal
from matchpod.storage import acknowledgements
from matchpod.storage.acknowledgements import Acknowledgement

_log = logging.getLogger(__name__)


class Acknowledgements:
    """The acknowledgements of all organizations."""

    def __init__(self, *, db: Database, clock: Clock, audit: Audit) -> None:
        self._db = db
        self._clock = clock
        self._audit = audit

    @unavailable_on_outage
    async def acknowledge(self, principal: Principal, server_ids: Sequence[str]) -> int:
        """Acknowledge these matches of the caller; return how many were not acknowledged before.

        ForbiddenError if they may not act. Matches of others, open ones and unknown ids are skipped.
        """
        given = self._given(principal)
        found = await acknowledgements.still_unacknowledged(self._db, principal.org_id, server_ids)
        change = acknowledgements.acknowledge(principal.org_id, found, given)
        records = [self._audit.act_of(principal, Action.MATCH_ACKNOWLEDGED, target=server_id) for server_id in found]
        return await self._write(principal, change, *records)

    @unavailable_on_outage
    async def acknowledge_older(self, principal: Principal, before_ms: int, *, is_by_hand: bool) -> int:
        """Acknowledge all matches that ended before a time, those canceled by hand or the others; return how many."""
        given = self._given(principal)
        change = acknowledgements.acknowledge_older(principal.org_id, before_ms, is_by_hand=is_by_hand, given=given)
        what = "all canceled by hand" if is_by_hand else "all failed or canceled"
        detail = f"{what} before {iso_time(before_ms)}"
        record = self._audit.act_of(principal, Action.MATCH_ACKNOWLEDGED, detail=detail)
        return await self._write(principal, change, record)

    def _given(self, principal: Principal) -> Acknowledgement:
        if not principal.may_act:
            raise ForbiddenError("This needs the rights to act on matches.")
        # A session that was begun with a link has its own id as key.
        return Acknowledgement(acknowledged_at_ms=self._clock.now_ms(), acknowledged_by=principal.key_id)

    async def _write(self, principal: Principal, change: Statement, *records: Statement) -> int:
        try:
            changed, *_ = await self._db.write([change, *records])
        except NothingChangedError:
            return 0
        _log.info("matches acknowledged", extra={"actor": principal.actor, "count": len(changed)})
        return len(changed)
