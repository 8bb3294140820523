"""Define the plugin's own variables (`matchzy_…`), and store their values."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

DEFAULTS = MappingProxyType(
    {
        "matchzy_allow_force_ready": "true",
        "matchzy_autostart_mode": "1",
        "matchzy_chat_prefix": "[{Green}MatchZy{Default}]",
        "matchzy_demo_name_format": "{TIME}_{MATCH_ID}_{MAP}_{TEAM1}_vs_{TEAM2}",
        "matchzy_demo_path": "MatchZy/",
        "matchzy_demo_recording_enabled": "true",
        "matchzy_demo_upload_header_key": "",
        "matchzy_demo_upload_header_value": "",
        "matchzy_demo_upload_url": "",
        "matchzy_everyone_is_admin": "false",
        "matchzy_hostname_format": "MatchZy | {TEAM1} vs {TEAM2}",
        "matchzy_kick_when_no_match_loaded": "false",
        "matchzy_knife_enabled_default": "true",
        "matchzy_max_tech_pauses_allowed": "2",
        "matchzy_minimum_ready_required": "2",
        "matchzy_pause_after_restore": "true",
        "matchzy_playout_enabled_default": "false",
        "matchzy_remote_backup_header_key": "",
        "matchzy_remote_backup_header_value": "",
        "matchzy_remote_backup_url": "",
        "matchzy_reset_cvars_on_series_end": "true",
        "matchzy_stop_command_available": "false",
        "matchzy_tech_pause_duration": "300",
        "matchzy_whitelist_enabled_default": "false",
    }
)
"""All variables with their default values."""


class PluginSettings:
    def __init__(self) -> None:
        self._values = dict(DEFAULTS)

    def text(self, name: str) -> str:
        return self._values[name]

    def is_on(self, name: str) -> bool:
        return self._values[name].strip().lower() in ("1", "true")

    def formatted(self, name: str, replacements: Mapping[str, str]) -> str:
        """Return the value with its placeholders, such as `{TEAM1}`, replaced."""
        value = self._values[name].strip()
        for placeholder, replacement in replacements.items():
            value = value.replace(f"{{{placeholder}}}", replacement)
        return value

    def set(self, name: str, value: str) -> None:
        self._values[name] = value
