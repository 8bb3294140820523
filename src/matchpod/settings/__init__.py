"""EVERY SETTING with its default and meaning; the only reader of the environment's names."""

from matchpod.settings.loading import SettingsError, load_settings
from matchpod.settings.values import (
    ProcessFleetSettings,
    RegionSettings,
    Secret,
    Settings,
    StaticFleetSettings,
    StaticServer,
)

__all__ = [
    "ProcessFleetSettings",
    "RegionSettings",
    "Secret",
    "Settings",
    "SettingsError",
    "StaticFleetSettings",
    "StaticServer",
    "load_settings",
]
