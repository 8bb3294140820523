"""All settings with their defaults and meaning; the only code that reads the environment variables."""

from matchpod.settings.loading import SettingsError, load_settings
from matchpod.settings.values import (
    ProcessFleetSettings,
    RegionSettings,
    Secret,
    Settings,
    StaticFleetSettings,
    StaticServerSettings,
)

__all__ = [
    "ProcessFleetSettings",
    "RegionSettings",
    "Secret",
    "Settings",
    "SettingsError",
    "StaticFleetSettings",
    "StaticServerSettings",
    "load_settings",
]
