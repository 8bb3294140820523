"""Show operators the state of the installation: processes, organizations, callbacks, data and readiness."""

from __future__ import annotations

import msgspec

from matchpod.core.errors import NotFoundError
from matchpod.core.requests.callback_query import CallbackState
from matchpod.ports import Clock, Database
from matchpod.service.availability import unavailable_on_outage
from matchpod.service.operations.pruning import STREAM_DAYS, Retention
from matchpod.service.operations.readiness import Readiness
from matchpod.service.regions.switch import RegionSwitch
from matchpod.service.row_views import time_text
from matchpod.storage import installation, organizations


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds leases on matches, or this process."""

    owner: str
    matches: int
    is_this: bool
    is_alive: bool
    """False if the leases of the process have expired, because it has stopped. Other processes acquire its matches."""


class OrganizationState(msgspec.Struct, frozen=True, kw_only=True):
    """An organization with the number of its active keys and the number of its live matches."""

    id: str
    name: str
    created_at: str | None
    active_keys: int
    live_matches: int


class InstallationState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the installation, as shown to operators."""

    state: str
    faults: tuple[str, ...]
    """Why this process is not ready."""
    warnings: tuple[str, ...]
    """Problems that do not affect the readiness of this process."""
    processes: tuple[ProcessState, ...]
    organizations: tuple[OrganizationState, ...]
    callbacks_waiting: int
    callbacks_given_up: int
    stored_matches: int
    oldest_log_at: str | None
    oldest_event_at: str | None
    raw_log_days: int
    event_days: int
    stream_days: int


class Installation:
    """Reads the state of the whole installation. Other processes are listed only if they hold leases on matches."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        readiness: Readiness,
        retention: Retention,
        regions: RegionSwitch,
        owner: str,
    ) -> None:
        self._db = db
        self._clock = clock
        self._readiness = readiness
        self._retention = retention
        self._regions = regions
        self._owner = owner

    @unavailable_on_outage
    async def read(self) -> InstallationState:
        keep, stored = self._retention, await installation.stored_data(self._db)
        return InstallationState(
            state=self._readiness.state.value,
            faults=tuple(await self._readiness.check()),
            warnings=tuple(await self._readiness.warnings()),
            processes=await self._processes(),
            organizations=await self._organizations(),
            callbacks_waiting=await installation.count_callbacks(self._db, CallbackState.WAITING),
            callbacks_given_up=await installation.count_callbacks(self._db, CallbackState.GIVEN_UP),
            stored_matches=stored.matches,
            oldest_log_at=time_text(stored.oldest_log_ms),
            oldest_event_at=time_text(stored.oldest_event_ms),
            raw_log_days=keep.raw_log_days,
            event_days=keep.event_days,
            stream_days=min(STREAM_DAYS, keep.event_days),
        )

    @unavailable_on_outage
    async def switch_region(self, code: str, *, is_active: bool, actor: str) -> None:
        """Switch a region on or off for new matches; existing matches continue. NotFoundError if unknown."""
        if not await self._regions.set_active(code, is_active=is_active, actor=actor):
            raise NotFoundError("There is no region with this code.")

    async def _processes(self) -> tuple[ProcessState, ...]:
        now_ms = self._clock.now_ms()
        found = [
            ProcessState(
                owner=lease.owner,
                matches=lease.matches,
                is_this=lease.owner == self._owner,
                is_alive=lease.until_ms > now_ms or lease.owner == self._owner,
            )
            for lease in await installation.lease_counts(self._db)
        ]
        if not any(process.is_this for process in found):
            found.append(ProcessState(owner=self._owner, matches=0, is_this=True, is_alive=True))
        return tuple(sorted(found, key=lambda process: (not process.is_this, process.owner)))

    async def _organizations(self) -> tuple[OrganizationState, ...]:
        keys = await installation.active_key_counts(self._db, self._clock.now_ms())
        live = await installation.live_counts(self._db)
        return tuple(
            OrganizationState(
                id=organization.id,
                name=organization.name,
                created_at=time_text(organization.created_at_ms),
                active_keys=keys.get(organization.id, 0),
                live_matches=live.get(organization.id, 0),
            )
            for organization in await organizations.list(self._db)
        )
