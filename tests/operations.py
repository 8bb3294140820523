"""Disk space and readiness of a process for tests that are about something else: there is space, and no region."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matchpod.ports import Clock, Database
from matchpod.service.operations.disk_space import DiskSpace
from matchpod.service.operations.readiness import Readiness
from matchpod.service.regions.regions import Region, Regions
from matchpod.service.telemetry.prometheus import Registry


def free_disk(clock: Clock) -> DiskSpace:
    """Return a disk with enough space for any match."""
    return DiskSpace(
        {"data": Path("/")}, min_free_mb=None, free_bytes=lambda _: 10**12, clock=clock, metrics=Registry()
    )


def new_readiness(db: Database, clock: Clock, regions: Sequence[Region] = ()) -> Readiness:
    """Return the readiness of a process that starts."""
    return Readiness(db=db, clock=clock, disk=free_disk(clock), regions=Regions(regions, db))
