"""Switch regions on and off, and confirm the release of withheld servers. Running processes apply the change."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

from matchpod.ports import Database
from matchpod.service.access.audit import Action, Audit
from matchpod.storage import region_flags, withheld_servers
from matchpod.storage.withheld_servers import WithheldServer

MAX_NAMED: Final = 20
"""Maximum number of servers that are named in the audit entry of a confirmed sweep. Usually there are only a few."""

_log = logging.getLogger(__name__)


class RegionSwitch:
    def __init__(self, *, db: Database, audit: Audit, codes: Collection[str]) -> None:
        self._db = db
        self._audit = audit
        self._codes = codes

    async def set_active(self, code: str, *, is_active: bool, actor: str) -> bool:
        """Switch a region on or off for new matches; existing matches continue. False if there is no such region."""
        if code not in self._codes:
            return False
        detail = "activated" if is_active else "deactivated"
        record = self._audit.entry(Action.REGION_CHANGED, org_id=None, actor=actor, target=code, detail=detail)
        await region_flags.set_active(self._db, code, is_active, record)
        _log.info("region switched", extra={"region": code, "is_active": is_active, "actor": actor})
        return True

    async def withheld(self, code: str) -> list[WithheldServer] | None:
        """Return a region's servers that sweeps do not release without confirmation; None for an unknown region."""
        if code not in self._codes:
            return None
        return (await withheld_servers.withheld_servers(self._db)).get(code, [])

    async def confirm_sweep(self, code: str, *, actor: str) -> list[WithheldServer] | None:
        """Let the next sweep release the servers that are withheld now. Return them; None for an unknown region."""
        found = await self.withheld(code)
        if found:
            more = f" and {len(found) - MAX_NAMED} others" if len(found) > MAX_NAMED else ""
            detail = ", ".join(server.server_id for server in found[:MAX_NAMED]) + more
            record = self._audit.entry(Action.SWEEP_CONFIRMED, org_id=None, actor=actor, target=code, detail=detail)
            await self._db.write([*(withheld_servers.confirm(code, server.server_id) for server in found), record])
            _log.info("sweep confirmed", extra={"region": code, "count": len(found), "actor": actor})
        return found
