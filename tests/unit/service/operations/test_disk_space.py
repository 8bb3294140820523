"""New matches are rejected while the disk is almost full."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from matchpod.core.errors import UnavailableError
from matchpod.service.operations.disk_space import CHECK_MS, MIB, DiskSpace
from matchpod.service.telemetry.prometheus import Registry

FOLDERS = {"data": Path("/data"), "fleets": Path("/data/fleets")}
SHORTAGE = (
    "New matches are rejected: 99 MiB are free on the disk of the fleets folder,"
    " less than MATCHPOD_MIN_FREE_DISK_MB (100)."
)


class Disk:
    """Disks with a given free space, and a clock that changes only when it is set."""

    def __init__(self, **free_mb: int) -> None:
        self.free_mb = free_mb
        self.at_ms = 1_000_000
        self.measured = 0
        self.metrics = Registry()

    def now_ms(self) -> int:
        return self.at_ms

    def free_bytes(self, folder: Path) -> int:
        self.measured += 1
        if folder.name not in self.free_mb:
            raise OSError(errno.ENOENT, "No such file or directory")
        return self.free_mb[folder.name] * MIB

    def space(self, min_free_mb: int | None = 100) -> DiskSpace:
        return DiskSpace(FOLDERS, min_free_mb=min_free_mb, free_bytes=self.free_bytes, clock=self, metrics=self.metrics)


async def test_folder_that_is_only_measured_rejects_nothing() -> None:
    disk = Disk(data=5_000, fleets=100, demos=1)
    space = DiskSpace(
        FOLDERS,
        min_free_mb=100,
        free_bytes=disk.free_bytes,
        clock=disk,
        metrics=disk.metrics,
        only_measured={"demos": Path("/demos")},
    )
    await space.require()
    assert f'matchpod_disk_free_bytes{{folder="demos"}} {MIB}' in disk.metrics.text()


async def test_new_matches_are_rejected_below_the_limit_and_accepted_above_it(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(data=5_000, fleets=100)
    space = disk.space()
    with caplog.at_level(logging.INFO):
        await space.require()
        for free_mb in (99, 0):
            disk.free_mb["fleets"], disk.at_ms = free_mb, disk.at_ms + CHECK_MS
            with pytest.raises(UnavailableError) as rejected:
                await space.require()
        disk.free_mb["fleets"], disk.at_ms = 100, disk.at_ms + CHECK_MS
        await space.require()
    assert str(rejected.value) == "The disk of the service is almost full, so it accepts no new matches. Retry later."
    assert rejected.value.retry_after_s == 60
    assert [(one.levelname, one.message) for one in caplog.records] == [
        ("WARNING", "disk almost full, new matches are rejected"),
        ("INFO", "enough disk space again, new matches are accepted"),
    ]
    assert vars(caplog.records[0])["reason"] == SHORTAGE


async def test_nothing_is_rejected_without_a_limit_but_the_free_space_is_measured() -> None:
    disk = Disk(data=0, fleets=2)
    await disk.space(None).require()
    text = disk.metrics.text()
    assert 'matchpod_disk_free_bytes{folder="data"} 0' in text
    assert f'matchpod_disk_free_bytes{{folder="fleets"}} {2 * MIB}' in text


async def test_disk_is_measured_once_in_a_few_seconds() -> None:
    disk = Disk(data=1, fleets=1)
    space = disk.space()
    await asyncio.gather(*(space.shortage() for _ in range(5)))
    disk.at_ms += CHECK_MS - 1
    assert await space.shortage()
    assert disk.measured == len(FOLDERS)
    disk.at_ms += 1
    await space.shortage()
    assert disk.measured == 2 * len(FOLDERS)


async def test_folder_whose_disk_cannot_be_measured_is_not_short_of_space(caplog: pytest.LogCaptureFixture) -> None:
    assert await Disk(data=5_000).space().shortage() is None
    assert [one.message for one in caplog.records] == ["free disk space unknown"]
