"""Request checks of regions, and read the reports of checks, for the API, the console and the command line.

A request is stored in the database, from where a process that drives matches reads it and runs the check.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from matchpod.core.errors import ForbiddenError, NotFoundError, RateLimitError
from matchpod.core.requests.check_query import CheckQuery
from matchpod.core.requests.text_rules import printable
from matchpod.core.servers.check_report import CheckState, ServerReport, is_healthy
from matchpod.core.views.result_shapes import IsoTime
from matchpod.ports import Clock, Database
from matchpod.service.access.audit import Action, Audit
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.identity.identifiers import ID_RANDOM_BYTES, new_check_id
from matchpod.service.identity.principals import Principal
from matchpod.service.row_views import view_of
from matchpod.storage import organizations, region_checks
from matchpod.storage.region_checks import DONE, CheckRow

PAUSE_MS: Final = 10_000
"""Minimum time between two checks of a region. A check logs in to servers, and a server may ban the service after
wrong passwords."""

_log = logging.getLogger(__name__)


class CheckProgress(StrEnum):
    """The progress of a check."""

    REQUESTED = "requested"
    RUNNING = "running"
    DONE = "done"
    INTERRUPTED = "interrupted"
    """The check does not continue, because the process that ran it has stopped, or because no service is running."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a check that are stored so far."""

    servers: tuple[ServerReport, ...] = ()
    note: str | None = None
    log_url: str = ""


class RegionCheckView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A check of a region's game servers."""

    id: Annotated[str, Meta(description="The id of the check.")]
    region: Annotated[str, Meta(description="The code of the region.")]
    state: Annotated[
        CheckProgress,
        Meta(description="`done`: the report is complete. `interrupted`: no process of the service works on it."),
    ]
    requested_at: IsoTime
    updated_at: IsoTime
    healthy: Annotated[
        bool | None,
        Meta(
            description="`false` if a server has a fault; null while the check is not done, and if no server could be "
            "checked."
        ),
    ]
    note: Annotated[str | None, Meta(description="Why not all servers were checked; null if they were.")]
    log_url: Annotated[str, Meta(description="The URL at which the servers must reach the service.")]
    servers: Annotated[
        tuple[ServerReport, ...], Meta(description="The servers that were checked so far, or are being checked.")
    ]


class RegionChecks:
    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        audit: Audit,
        codes: Collection[str],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """`wake` is called after a check was requested."""
        self._db = db
        self._clock = clock
        self._audit = audit
        self._codes = codes
        self._wake = wake

    @unavailable_on_outage
    async def request_as(self, caller: Principal, code: str, query: CheckQuery) -> RegionCheckView:
        """Request a check for an organization's owner. Allowed only if the installation has no other organization."""
        await self._require_only_organization()
        return await self.request(code, actor=caller.actor, may_allocate=query.may_allocate)

    @unavailable_on_outage
    async def read_as(self, _: Principal, code: str) -> RegionCheckView:
        await self._require_only_organization()
        found = await self.read(code)
        if found is None:
            raise NotFoundError(f"Region {code} has not been checked yet.")
        return found

    @unavailable_on_outage
    async def request(self, code: str, *, actor: str, may_allocate: bool = False) -> RegionCheckView:
        """Request a check, or return the check that is under way. RateLimitError if the last check is too recent."""
        self._require_region(code)
        now_ms = self._clock.now_ms()
        row = CheckRow(
            region=code,
            id=new_check_id(now_ms, secrets.token_bytes(ID_RANDOM_BYTES)),
            state=region_checks.REQUESTED,
            may_allocate=may_allocate,
            requested_at_ms=now_ms,
            requested_by=actor,
            updated_at_ms=now_ms,
        )
        detail = "with an allocated pod" if may_allocate else ""
        record = self._audit.entry(Action.REGION_CHECKED, org_id=None, actor=actor, target=code, detail=detail)
        if await region_checks.request(self._db, row, record, pause_ms=PAUSE_MS):
            _log.info("region check requested", extra={"region": code, "check_id": row.id, "actor": actor})
            self._wake()
            return _view(row, now_ms)
        found = await region_checks.newest(self._db, code)
        if found is None or found.state == DONE or found.is_stale(now_ms):
            raise RateLimitError(
                f"Region {code} was checked less than {PAUSE_MS // 1000} s ago.", retry_after_s=PAUSE_MS // 1000
            )
        return _view(found, now_ms)

    @unavailable_on_outage
    async def read(self, code: str) -> RegionCheckView | None:
        """Return the newest check of a region; None if it was never checked."""
        self._require_region(code)
        found = await region_checks.newest(self._db, code)
        return None if found is None else _view(found, self._clock.now_ms())

    @unavailable_on_outage
    async def read_all(self) -> dict[str, RegionCheckView]:
        """Return the newest check of each region that was ever checked."""
        now_ms = self._clock.now_ms()
        return {row.region: _view(row, now_ms) for row in await region_checks.all_newest(self._db)}

    def _require_region(self, code: str) -> None:
        if code not in self._codes:
            raise NotFoundError(f"Unknown region {printable(code)!r}. Known regions: {', '.join(self._codes)}.")

    async def _require_only_organization(self) -> None:
        if len(await organizations.list(self._db)) > 1:
            raise ForbiddenError(
                "Several organizations share this installation, so only its operators check regions: in the console, "
                "or with `matchpod regions check`."
            )


def read_report(stored: bytes | None) -> CheckReport:
    """Decode a stored report. It is empty if this version cannot decode it."""
    try:
        return msgspec.json.decode(stored or b"{}", type=CheckReport)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return CheckReport()


def _view(row: CheckRow, now_ms: int) -> RegionCheckView:
    report = read_report(row.report)
    progress = CheckProgress.INTERRUPTED if row.is_stale(now_ms) else CheckProgress(row.state)
    was_checked = any(server.state in (CheckState.OK, CheckState.FAULT) for server in report.servers)
    return view_of(
        RegionCheckView,
        row,
        report,
        state=progress,
        healthy=is_healthy(report.servers) if was_checked and row.state == DONE else None,
    )
