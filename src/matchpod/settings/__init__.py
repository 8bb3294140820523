"""Define and load all settings. No other code reads `MATCHPOD_` variables."""

from matchpod.settings.fleets import (
    AgonesFleetSettings,
    FleetSettings,
    ProcessFleetSettings,
    StaticFleetSettings,
    StaticServerSettings,
)
from matchpod.settings.loading import SettingsError, has_secrets, load_settings
from matchpod.settings.secret import Secret
from matchpod.settings.values import RegionSettings, Settings

__all__ = [
    "AgonesFleetSettings",
    "FleetSettings",
    "ProcessFleetSettings",
    "RegionSettings",
    "Secret",
    "Settings",
    "SettingsError",
    "StaticFleetSettings",
    "StaticServerSettings",
    "has_secrets",
    "load_settings",
]
