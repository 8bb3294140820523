"""Reload the settings at SIGHUP, and replace the server lists of static fleets.

Changes of all other settings take effect at the next start.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from matchpod.adapters.fleets.static import StaticFleet, StaticServer
from matchpod.app.log_urls import unreachable_log_urls
from matchpod.service.regions.regions import Regions
from matchpod.settings import RegionSettings, Settings, SettingsError, StaticFleetSettings

_log = logging.getLogger(__name__)


class ServerLists:
    """Reloads the server lists of the static fleets in this process."""

    def __init__(
        self,
        settings: Settings,
        regions: Regions,
        *,
        load: Callable[[], Settings],
        base: str,
    ) -> None:
        """`load` reads the settings or raises SettingsError. `base` is the default URL to which servers send logs."""
        self._settings = settings
        self._regions = regions
        self._load = load
        self._base = base

    @contextmanager
    def following(self) -> Iterator[None]:
        """Reload the lists at each SIGHUP, until the `with` block ends."""
        loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGHUP)
        loop.add_signal_handler(signal.SIGHUP, self.read_again)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, before)

    def read_again(self) -> None:
        """Reload the settings and replace the lists. If the settings are invalid, log the faults and change nothing."""
        try:
            found = self._load()
            faults: Sequence[str] = unreachable_log_urls(found, self._base)
        except SettingsError as exc:
            faults = exc.faults
        if faults:
            for fault in faults:
                _log.error("settings not reloaded", extra={"error": fault})
            return
        new = {region.code: region.fleet for region in found.regions}
        for region in self._settings.regions:
            fleet, listed = self._fleet_of(region), new.get(region.code)
            if fleet is not None and isinstance(listed, StaticFleetSettings):
                self._replace(region.code, fleet, static_servers(listed))
        if _without_lists(found) != _without_lists(self._settings):
            _log.warning("other settings have changed too: they take effect at the next start")

    def _fleet_of(self, region: RegionSettings) -> StaticFleet | None:
        known = self._regions.get(region.code)
        return known.fleet if known is not None and isinstance(known.fleet, StaticFleet) else None

    def _replace(self, code: str, fleet: StaticFleet, servers: list[StaticServer]) -> None:
        before = set(fleet.slots)
        fleet.replace_servers(servers)
        after = set(fleet.slots)
        about = {"region": code, "servers": len(after), "added": sorted(after - before)}
        _log.info("server list reloaded", extra={**about, "removed": sorted(before - after)})


def static_servers(fleet: StaticFleetSettings) -> list[StaticServer]:
    return [StaticServer(server.address, server.rcon_password.reveal()) for server in fleet.servers]


def _without_lists(settings: Settings) -> Settings:
    regions = tuple(
        replace(region, fleet=replace(region.fleet, servers=()))
        if isinstance(region.fleet, StaticFleetSettings)
        else region
        for region in settings.regions
    )
    return replace(settings, regions=regions)
