"""Reject new matches while the disk is almost full, so that running matches can still be stored completely."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from matchpod.core.errors import UnavailableError
from matchpod.ports import Clock
from matchpod.service.telemetry.metrics import DiskMetrics
from matchpod.service.telemetry.prometheus import Registry

MIB: Final = 1024 * 1024
CHECK_MS: Final = 5_000
"""Time for which a measurement is cached. In this time, a file system rarely loses more than a small part of the
required free space."""
RETRY_AFTER_S: Final = 60
"""Retry-After of the error in seconds. It is long, because an operator has to free space first."""

_log = logging.getLogger(__name__)


class DiskSpace:
    """Measures the free space of the file systems to which running matches write.

    New matches are rejected if the disk of one of the `folders` has less than `min_free_mb` MiB free. If `min_free_mb`
    is None, they are never rejected. For `only_measured` folders, there is only a metric. `free_bytes` returns the free
    space of a folder's disk.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        *,
        min_free_mb: int | None,
        free_bytes: Callable[[Path], int],
        clock: Clock,
        metrics: Registry,
        only_measured: Mapping[str, Path] | None = None,
    ) -> None:
        self._folders = folders
        self._only_measured = only_measured or {}
        self._min_free_mb = min_free_mb
        self._free_bytes = free_bytes
        self._clock = clock
        self._gauge = DiskMetrics(metrics).free_bytes
        self._measured_ms: int | None = None
        self._shortage: str | None = None

    async def require(self) -> None:
        """Raise UnavailableError if there is too little space for a new match."""
        if await self.shortage() is not None:
            raise UnavailableError(
                "The disk of the service is almost full, so it accepts no new matches. Retry later.",
                retry_after_s=RETRY_AFTER_S,
            )

    async def shortage(self) -> str | None:
        """Return why new matches are rejected, as a sentence for operators; None if there is enough space."""
        now_ms = self._clock.now_ms()
        if self._measured_ms is None or not 0 <= now_ms - self._measured_ms < CHECK_MS:
            self._measured_ms = now_ms  # set first, so that concurrent calls use the previous result
            self._report(await asyncio.to_thread(self._measure))
        return self._shortage

    def _measure(self) -> dict[str, int]:
        free: dict[str, int] = {}
        for name, folder in {**self._only_measured, **self._folders}.items():
            try:
                free[name] = self._free_bytes(folder)
            except OSError as exc:
                # Do not reject matches. If nothing can be written to the disk, the readiness check of the database
                # reports it.
                _log.warning("free disk space unknown", extra={"folder": str(folder), "error": str(exc)})
        return free

    def _report(self, free: Mapping[str, int]) -> None:
        self._gauge.replace({(name,): float(number) for name, number in free.items()})
        least = min(free.keys() & self._folders.keys(), key=lambda name: free[name], default=None)
        before, self._shortage = self._shortage, None
        if least is not None and self._min_free_mb is not None and free[least] < self._min_free_mb * MIB:
            self._shortage = (
                f"New matches are rejected: {free[least] // MIB} MiB are free on the disk of the {least} folder,"
                f" less than MATCHPOD_MIN_FREE_DISK_MB ({self._min_free_mb})."
            )
        if (before is None) != (self._shortage is None):
            if self._shortage is None:
                _log.info("enough disk space again, new matches are accepted")
            else:
                _log.warning("disk almost full, new matches are rejected", extra={"reason": self._shortage})
