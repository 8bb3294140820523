"""Acknowledge matches that ended without a result. Acknowledged matches disappear from the wall of the organization."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from matchpod.core.errors import ForbiddenError, InvalidParamsError
from matchpod.core.iso_dates import iso_time
from matchpod.ports import Clock, Database, NothingChangedError, Statement
from matchpod.service.access.audit import Action, Audit
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.principals import Principal
from matchpod.storage import acknowledgements
from matchpod.storage.acknowledgements import Acknowledgement

UNDO_MS: Final = 10_000
"""Time for which an acknowledgement can be undone."""
LATE_MS: Final = 5_000
"""Additional time in which a request to undo is still accepted, because it may arrive late."""

_log = logging.getLogger(__name__)


class Acknowledged(msgspec.Struct, frozen=True):
    """The number of matches that were acknowledged, and the time of the acknowledgement, which `undo` needs."""

    count: int
    at_ms: int


class Acknowledgements:
    """Acknowledges matches for all organizations."""

    def __init__(self, *, db: Database, clock: Clock, audit: Audit) -> None:
        self._db = db
        self._clock = clock
        self._audit = audit

    @unavailable_on_outage
    async def acknowledge(self, principal: Principal, server_ids: Sequence[str]) -> Acknowledged:
        """Acknowledge matches of the caller's organization.

        Raise ForbiddenError if the caller may not act on matches. Matches of other organizations, open matches and
        unknown ids are skipped.
        """
        given = self._given(principal)
        found = await acknowledgements.still_unacknowledged(self._db, principal.org_id, server_ids)
        change = acknowledgements.acknowledge(principal.org_id, found, given)
        return await self._write(principal, Action.MATCH_ACKNOWLEDGED, change, given, targets=found)

    @unavailable_on_outage
    async def acknowledge_older(self, principal: Principal, before_ms: int) -> Acknowledged:
        """Acknowledge all matches of the caller's organization that failed before `before_ms`."""
        given = self._given(principal)
        change = acknowledgements.acknowledge_older(principal.org_id, before_ms, given)
        detail = f"all that failed before {iso_time(before_ms)}"
        return await self._write(principal, Action.MATCH_ACKNOWLEDGED, change, given, detail=detail)

    @unavailable_on_outage
    async def undo(self, principal: Principal, at_ms: int) -> int:
        """Undo the acknowledgements that the caller made at the time `at_ms`. Return their number.

        Raise InvalidParamsError if the time is too long ago.
        """
        now = self._given(principal)
        if not 0 <= now.acknowledged_at_ms - at_ms <= UNDO_MS + LATE_MS:
            raise InvalidParamsError(f"Acknowledgements can be undone for only {UNDO_MS // 1000} seconds.")
        given = replace(now, acknowledged_at_ms=at_ms)
        change = acknowledgements.withdraw(principal.org_id, given)
        detail = f"those of {iso_time(at_ms)}"
        done = await self._write(principal, Action.ACKNOWLEDGEMENT_UNDONE, change, given, detail=detail)
        return done.count

    def _given(self, principal: Principal) -> Acknowledgement:
        if not principal.may_act:
            raise ForbiddenError("This requires permission to act on matches.")
        # For a session that was begun with a link, `key_id` is the id of the session.
        return Acknowledgement(acknowledged_at_ms=self._clock.now_ms(), acknowledged_by=principal.key_id)

    async def _write(
        self,
        principal: Principal,
        action: Action,
        change: Statement,
        given: Acknowledgement,
        *,
        targets: Sequence[str] = ("",),
        detail: str = "",
    ) -> Acknowledged:
        records = [self._audit.act_of(principal, action, target=target, detail=detail) for target in targets]
        try:
            changed, *_ = await self._db.write([change, *records])
        except NothingChangedError:
            return Acknowledged(0, given.acknowledged_at_ms)
        _log.info("acknowledgements changed", extra={"actor": principal.actor, "act": action, "count": len(changed)})
        return Acknowledged(len(changed), given.acknowledged_at_ms)
