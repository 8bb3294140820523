"""Hold the loaded settings as frozen values, complete and validated.

A field name is the key in the file and, in upper case after `MATCHPOD_`, the name of the environment variable.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from matchpod.core.requests.addresses import is_loopback
from matchpod.settings.fleets import FleetSettings
from matchpod.settings.secret import Secret

DATABASE_FILE = "matchpod.sqlite3"
KEY_FILE = "secret.key"
CONFIG_FILE = "matchpod.toml"
DEFAULT_GRACE_S = 5


class RegionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A region and its fleet."""

    code: str
    name: str
    location: str
    speed: float
    allows_simulator: bool
    fleet: FleetSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of one process. A value is None if a feature is off or its default depends on other settings."""

    config: Path | None
    data_dir: Path
    host: str
    port: int
    ops_port: int | None
    public_url: str | None
    database_url: Secret | None
    secret_key: Secret | None
    first_key_file: Path | None
    log_format: str
    log_level: str
    console: bool
    drive: bool
    callback_private: bool | None
    pending_s: int
    silence_s: int
    stop_grace_s: int | None
    stall_exit_s: int
    raw_log_days: int
    event_days: int
    max_match_log_mb: int | None
    rate_limit: int | None
    max_failed_logins: int | None
    max_live_matches: int | None
    max_matches_per_process: int | None
    max_creations_per_minute: int | None
    max_streams: int | None
    min_free_disk_mb: int | None
    max_body_bytes: int
    max_connections: int | None
    max_connections_per_address: int | None
    cors_origins: tuple[str, ...]
    extra_cvars: tuple[str, ...]
    regions: tuple[RegionSettings, ...]

    @property
    def database_path(self) -> Path:
        """The SQLite file, used if there is no `database_url`."""
        return self.data_dir / DATABASE_FILE

    @property
    def key_path(self) -> Path:
        """The key file, used if there is no `secret_key`."""
        return self.data_dir / KEY_FILE

    @property
    def fleets_path(self) -> Path:
        """The folder with the records and outputs of process fleets."""
        return self.data_dir / "fleets"

    @property
    def grace_s(self) -> int:
        """Seconds that a stopping service still answers; without a shared database no other process could answer."""
        if self.stop_grace_s is None:
            return 0 if self.database_url is None else DEFAULT_GRACE_S
        return self.stop_grace_s

    @property
    def allows_private_callbacks(self) -> bool:
        """True if callbacks may go to private addresses; by default only if no other machine can call us.

        A proxy in front lets others call a service that listens on loopback: the public URL shows it, or else requests.
        """
        if self.callback_private is not None:
            return self.callback_private
        return is_loopback(self.host) and not self.is_behind_proxy

    @property
    def is_behind_proxy(self) -> bool:
        """True if the service listens on loopback, but is called by a URL of another host."""
        return is_loopback(self.host) and not is_loopback(urlsplit(self.ingest_base()).hostname or "")

    @property
    def match_log_bytes(self) -> int | None:
        """Bytes that one match may store; None if there is no limit."""
        return None if self.max_match_log_mb is None else self.max_match_log_mb * 1_000_000

    def ingest_base(self, bound_port: int | None = None) -> str:
        """Return the URL at which game servers and browsers reach this process; `bound_port` replaces a port of 0."""
        if self.public_url is not None:
            return self.public_url
        return f"http://{_reachable(self.host)}:{self.port if bound_port is None else bound_port}"


def _reachable(host: str) -> str:
    """Return an address to connect to: clients cannot connect to the unspecified address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"
