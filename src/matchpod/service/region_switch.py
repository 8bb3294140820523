"""Activate and deactivate regions, on behalf of operators. A running service follows at once."""

from __future__ import annotations

import logging
from collections.abc import Collection

from matchpod.ports import Database
from matchpod.service.audit import Action, Audit
from matchpod.storage import region_flags

_log = logging.getLogger(__name__)


class RegionSwitch:
    """The switches of all regions in the settings."""

    def __init__(self, *, db: Database, audit: Audit, codes: Collection[str]) -> None:
        self._db = db
        self._audit = audit
        self._codes = codes

    async def set_active(self, code: str, *, is_active: bool, actor: str) -> bool:
        """Accept or reject new matches in a region; existing ones continue. False if there is no such region."""
        if code not in self._codes:
            return False
        detail = "activated" if is_active else "deactivated"
        record = self._audit.entry(Action.REGION_CHANGED, org_id=None, actor=actor, target=code, detail=detail)
        await region_flags.set_active(self._db, code, is_active, record)
        _log.info("region switched", extra={"region": code, "is_active": is_active, "actor": actor})
        return True
