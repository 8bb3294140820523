"""Define the settings of the service and its regions, each with its rule, default and meaning.

The name of a field is its key in the settings file. The environment variable has the same name in upper case, after
`MATCHPOD_`. Each setting is declared only once; those of fleets are declared in `fleets.py`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from matchpod.core.requests.addresses import is_loopback
from matchpod.settings import rules
from matchpod.settings.fleets import FleetSettings
from matchpod.settings.secret import Secret
from matchpod.settings.table import setting, table_of

DATABASE_FILE = "matchpod.sqlite3"
KEY_FILE = "secret.key"
CONFIG_FILE = "matchpod.toml"
DEMO_FOLDER = "demos"
DEFAULT_GRACE_S = 5

DEFAULT_REGION = {
    "code": "sandbox",
    "name": "Sandbox",
    "location": "this machine",
    "speed": 30,
    "fleet": {"kind": "process", "ports": "27100-27199"},
}
"""The region that exists if the settings file defines none, written as in the file."""


class RegionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a region and its fleet."""

    code: str = setting(rules.region_code(), "The value of `region` in requests.", is_required=True)
    name: str = setting(rules.text(), "Display name.", fallback="the code")
    location: str = setting(rules.text(), "Display name of the servers' location.", fallback="the name")
    speed: float = setting(
        rules.number(1, 1000),
        "The speed of its servers as a multiple of real time; the timeouts of a match are divided by it. Only "
        "simulated servers support more than 1.",
        default=1,
    )
    allows_simulator: bool = setting(
        rules.boolean(),
        "Whether `customCvars` may set the variables of the simulator (`sim_…`).",
        fallback="true if a process fleet has no `command`, else false",
    )
    log_url: str | None = setting(
        rules.web_url(),
        "The URL at which the game servers of this region reach the service.",
        fallback="`MATCHPOD_LOG_URL`",
    )
    upload_url: str | None = setting(
        rules.web_url(),
        "The URL at which the game servers of this region reach the upload port.",
        fallback="derived from `log_url` if set, else `MATCHPOD_UPLOAD_URL`",
    )
    record_demos: bool = setting(
        rules.boolean(),
        "Whether matches with listed players are recorded by default (`recordDemo` overrides it). "
        "Needs `MATCHPOD_UPLOAD_PORT`.",
        fallback="false",
        unset=False,
    )
    tv_delay: int = setting(
        rules.whole_number(0, 600),
        "GOTV delay of recorded matches, in seconds. Their servers are kept longer by this time.",
        default=90,
    )
    fleet: FleetSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a process. A value is None if a feature is off, or if the default depends on other settings."""

    config: Path | None = setting(
        rules.path(),
        "The settings file. If set, the file must exist.",
        fallback="matchpod.toml in the data folder, if it exists",
        in_file=False,
    )
    data_dir: Path = setting(
        rules.path(),
        "The data folder: database, key file, state of fleets. A relative path is resolved against the working "
        "directory of the service.",
        default="./var",
    )
    host: str = setting(
        rules.host(), "The address the service listens on. `0.0.0.0` listens on every interface.", default="127.0.0.1"
    )
    port: int = setting(
        rules.whole_number(0, rules.MAX_PORT), "The port the service listens on; 0 chooses any free port.", default=8080
    )
    ops_port: int | None = setting(
        rules.whole_number(0, rules.MAX_PORT),
        "A second port, on the same address, only for `/healthz`, `/readyz` and `/metrics`; 0 chooses any free "
        "port. If set, the port of the service answers `/healthz` and `/readyz`, but not `/metrics`.",
        fallback="none; the port of the service answers all of them",
    )
    upload_port: int | None = setting(
        rules.whole_number(0, rules.MAX_PORT),
        "A port, on the same address, at which game servers upload demos, served by a process of its own "
        "([demos.md](demos.md)); 0 chooses any free port.",
        fallback="none; no demos are recorded",
    )
    upload_url: str | None = setting(
        rules.web_url(),
        "The URL at which game servers reach the upload port. Not needed behind a proxy that forwards "
        "`/ingest/demos` to it ([proxies.md](proxies.md#uploads-of-demos)). A region can have a URL of its own, as "
        "`upload_url`.",
        fallback="the URL of log posts; if it has the port of the service, with the upload port instead",
    )
    demo_storage: str | None = setting(
        rules.storage_url(),
        "Where demos are stored: a folder of this machine, which only one process may use, or a bucket of an S3 "
        "service, such as `s3://bucket/folder?endpoint=https://s3.example&region=eu-1`. S3 needs the extra "
        "`matchpod[s3]`; credentials are read as by the AWS tools, such as from `AWS_ACCESS_KEY_ID`.",
        fallback="the folder demos in the data folder",
    )
    public_url: str | None = setting(
        rules.web_url(),
        "The URL at which browsers reach the console, and game servers the service, unless `MATCHPOD_LOG_URL` is set. "
        "Set it if game servers run on other machines.",
        fallback="http://HOST:PORT (127.0.0.1 when it listens on every interface)",
    )
    log_url: str | None = setting(
        rules.web_url(),
        "The URL at which game servers reach the service, to post their logs and fetch their match file. In "
        "Kubernetes, this may be the URL of a Service while browsers use an Ingress. A region can have a URL of its "
        "own, as `log_url`.",
        fallback="`MATCHPOD_PUBLIC_URL`",
    )
    database_url: Secret | None = setting(
        rules.postgres_url(),
        "A PostgreSQL database, which several processes may share. An SQLite file is used by one process only. "
        "PostgreSQL needs the extra `matchpod[postgres]`. Of several hosts (`db1:5432,db2:5432`), the first writable "
        "host is used ([failover.md](failover.md)).",
        fallback="the SQLite file matchpod.sqlite3 in the data folder",
        is_secret=True,
    )
    secret_key: Secret | None = setting(
        rules.keys(),
        "The key that encrypts stored secrets. Processes that share a database need the same key. Of several keys, "
        "the first encrypts and all decrypt, so that the key can be replaced while the service runs "
        "([secrets.md](secrets.md)).",
        fallback="the key file secret.key in the data folder, created on first use",
        is_secret=True,
    )
    first_key_file: Path | None = setting(
        rules.path(),
        "A file with the API key that the first start creates, for installations that are set up by a program. The key "
        "is `mk_live_` and 43 random letters, digits, `-` and `_`. It has no effect once there is an organization.",
        fallback="none; the first start generates a key, and shows it",
    )
    log_format: str = setting(
        rules.one_of("human", "json"),
        "The format of the service's own log: lines for people, or one JSON object per line.",
        default="human",
    )
    log_level: str = setting(
        rules.one_of("debug", "info", "warning", "error"),
        "The lowest level of messages that are logged.",
        default="info",
    )
    access_log: str = setting(
        rules.one_of("off", "on", "all"),
        "Whether requests have a line in the log, of level `info`. With `on`, requests of game servers are left out. "
        "`all` includes them, which makes each log post slower. Requests on `MATCHPOD_OPS_PORT` are never logged.",
        default="off",
    )
    console: bool = setting(
        rules.flag("on", "off"),
        "Whether the service has a console for browsers, at `/console`; `matchpod console` prints a link to log in.",
        default="on",
    )
    drive: bool = setting(
        rules.flag("on", "off"),
        "With `off`, the service is read-only: it drives no matches, sends no callbacks, deletes nothing, and answers "
        "creations, cancellations and posts of game servers with status 503. Use it for a copy of a database whose "
        "original is in use.",
        default="on",
    )
    trusted_proxies: tuple[str, ...] = setting(
        rules.networks(),
        "Addresses and networks of proxies in front of the service, such as `10.0.0.0/8`. For their connections, the "
        "client address is read from `X-Forwarded-For` or `Forwarded`, for the limits per address, failed log-ins and "
        "the audit log. The headers of other connections are ignored ([proxies.md](proxies.md)). "
        "`off` trusts no proxy.",
        default="127.0.0.0/8, ::1",
    )
    callback_private: bool | None = setting(
        rules.flag("allow", "deny"),
        "Whether callbacks may go to private, loopback and link-local addresses "
        "([callbacks.md](callbacks.md#which-receivers-are-allowed)). With `allow`, callers can reach the internal "
        "network of this machine.",
        fallback="allow if the service listens on loopback, its public URL is loopback too, and no request came "
        "through a proxy; else deny",
    )
    callback_proxy: Secret | None = setting(
        rules.proxy_url(),
        "The HTTP proxy through which callbacks reach public addresses, by CONNECT; private addresses, where they are "
        "allowed, are reached directly ([proxies.md](proxies.md#callbacks-through-a-proxy)).",
        fallback="none; callbacks are sent directly",
        is_secret=True,
    )
    pending_s: int = setting(
        rules.whole_number(0, 86_400),
        "Seconds that a match waits for a free server before it fails with `no_capacity`.",
        default=600,
    )
    silence_s: int = setting(
        rules.whole_number(10, 3_600),
        "Seconds after which the server of a running match is lost if its console does not answer and its log "
        "is silent. The time is three times as long if several servers of a host or region fell silent together.",
        default=30,
    )
    stop_grace_s: int | None = setting(
        rules.whole_number(0, 60),
        "Seconds that a stopping service still answers requests while `/readyz` fails, so that a load balancer "
        "stops sending requests. Its matches are handed over before that.",
        fallback="5 with PostgreSQL, else 0",
    )
    stall_exit_s: int = setting(
        rules.whole_number(0, 3600),
        "Seconds without any progress after which the service logs where it hangs and exits, so that it is "
        "restarted; 0 for never.",
        default=60,
    )
    raw_log_days: int = setting(
        rules.whole_number(1, 3650),
        "Days that the logs of ended matches are kept; `matchpod recompute` needs them. Results are kept forever.",
        default=30,
    )
    event_days: int = setting(
        rules.whole_number(1, 3650),
        "Days that the events of ended matches are kept. Series, maps and statistics are kept forever.",
        default=365,
    )
    demo_days: int = setting(rules.whole_number(1, 3650), "Days that demos are kept after their upload.", default=30)
    max_demo_mb: int | None = setting(
        rules.whole_number(1, 5_000, off="off"),
        "Maximum size of a demo in megabytes; a larger demo is not kept. A demo of an hour has up to 400 MB.",
        default=1_000,
    )
    max_demos_gb: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum gigabytes of demos per organization; further demos are not kept. Counted in the database.",
        default=100,
    )
    max_match_log_mb: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum megabytes of logs and plugin reports that the server of a match may store; above it, the match "
        "fails with `log_quota_exceeded`. A real match has a few megabytes. Data of replaced servers, of which a match "
        "has at most two, does not count.",
        default=256,
    )
    rate_limit: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum requests per API key and minute; further requests get status 429. Each process counts separately.",
        default="off",
    )
    max_failed_logins: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum failed log-ins per client address (with IPv6, per /64 network) and minute, with API keys or to the "
        "console; further ones get status 429. Valid keys always work. Behind a proxy that is not in "
        "`MATCHPOD_TRUSTED_PROXIES`, all requests come from the address of the proxy.",
        default=60,
    )
    max_live_matches: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum matches per organization that have not ended; further ones get status 429. Counted in the database.",
        default=1_000,
    )
    max_matches_per_process: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum matches that this process drives at a time. With PostgreSQL, other replicas drive further matches. If "
        "all replicas are at their limit, further matches wait, including the matches of a replica that died. So the "
        "limits of all replicas but one must be enough for all matches.",
        default="off",
    )
    max_creations_per_minute: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum matches that an organization may create per minute; further matches get status 429. "
        "Each process counts separately.",
        default=600,
    )
    max_streams: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum open event streams per organization; further streams get status 429. Each process counts separately.",
        default=1_000,
    )
    max_webhooks: int = setting(
        rules.whole_number(0, 100),
        "Maximum webhooks per organization; further webhooks get status 429.",
        default=10,
    )
    min_free_disk_mb: int | None = setting(
        rules.whole_number(1, 1_000_000_000, off="off"),
        "Free disk space in MiB below which new matches get status 503. It is measured on the file systems of an "
        "SQLite database and of the records and outputs of `process` fleets. Running matches continue. If demos are "
        "stored in a folder, they leave twice as much space free.",
        default=512,
    )
    max_body_bytes: int = setting(
        rules.whole_number(16_384, 67_108_864),
        "The maximum body size of an API request; a larger one gets status 413.",
        default=262_144,
    )
    max_connections: int | None = setting(
        rules.whole_number(16, 1_000_000),
        "Maximum open HTTP connections. An eighth of them is reserved for game servers, `/healthz`, `/readyz` and "
        "`/metrics`; other requests on these get status 503. Reduced if the limit on open files is too low.",
        fallback="16384, or less if the limit on open files is low",
    )
    max_connections_per_address: int | None = setting(
        rules.whole_number(1, 1_000_000, off="off"),
        "Maximum open HTTP connections per client address (with IPv6, per /64 network), without those of game servers; "
        "behind a trusted proxy, requests in progress. The default allows for hundreds of viewers who share an "
        "address, and for a backend that reads a stream per match. Must be `off` behind a proxy that is not in "
        "`MATCHPOD_TRUSTED_PROXIES`, because all requests come from its address. Loopback is not limited.",
        default=1024,
    )
    cors_origins: tuple[str, ...] = setting(
        rules.origins(),
        "Origins such as `https://cup.example` whose web pages may use the API from a browser (CORS); `*` "
        "allows all. Every page may read the list of regions.",
        fallback="none",
        unset=(),
    )
    extra_cvars: tuple[str, ...] = setting(
        rules.names(),
        "Console variables that `customCvars` may set in addition to the built-in list.",
        fallback="none",
        unset=(),
    )
    regions: tuple[RegionSettings, ...] = ()

    @property
    def database_path(self) -> Path:
        """Path of the SQLite file, which is used if `database_url` is not set."""
        return self.data_dir / DATABASE_FILE

    @property
    def key_path(self) -> Path:
        """Path of the key file, which is used if `secret_key` is not set."""
        return self.data_dir / KEY_FILE

    @property
    def fleets_path(self) -> Path:
        """Folder in which process fleets store their records and the output of their servers."""
        return self.data_dir / "fleets"

    @property
    def grace_s(self) -> int:
        """Time in seconds for which a stopping service still answers requests.

        The default is 0 with SQLite, because no other process could answer afterwards.
        """
        if self.stop_grace_s is None:
            return 0 if self.database_url is None else DEFAULT_GRACE_S
        return self.stop_grace_s

    @property
    def allows_private_callbacks(self) -> bool:
        """True if callbacks may be sent to private addresses.

        By default, this requires that other machines cannot reach the service, neither directly nor through a proxy.
        Here, the public URL shows whether there is a proxy; other code detects a proxy by its requests.
        """
        if self.callback_private is not None:
            return self.callback_private
        return is_loopback(self.host) and not self.is_behind_proxy

    @property
    def is_behind_proxy(self) -> bool:
        """True if the service listens on loopback, but the host of its public URL is not loopback."""
        return is_loopback(self.host) and not is_loopback(urlsplit(self.ingest_base()).hostname or "")

    @property
    def match_log_bytes(self) -> int | None:
        """Maximum size in bytes of the logs and plugin reports that a match may store; None for no limit."""
        return None if self.max_match_log_mb is None else self.max_match_log_mb * 1_000_000

    def ingest_base(self, bound_port: int | None = None) -> str:
        """Return the URL for browsers and game servers; `bound_port` is the actual port if 0 was configured."""
        if self.public_url is not None:
            return self.public_url
        return f"http://{_reachable(self.host)}:{self.port if bound_port is None else bound_port}"

    @property
    def log_urls(self) -> Mapping[str, str]:
        """Log URLs by region code, for regions whose game servers do not use the public URL."""
        found = {region.code: region.log_url or self.log_url for region in self.regions}
        return {code: url for code, url in found.items() if url is not None}

    @property
    def demo_storage_url(self) -> str:
        """The URL of the demo storage."""
        return self.demo_storage or (self.data_dir / DEMO_FOLDER).absolute().as_uri()

    def upload_base(self, bound_port: int | None = None) -> str | None:
        """Return the URL for demo uploads in regions that have none of their own; None if demos are not received."""
        if self.upload_port is None:
            return None
        bound = self.upload_port if bound_port is None else bound_port
        return self.upload_url or self._beside(self.log_url or self.public_url or self.ingest_base(), bound)

    @property
    def upload_urls(self) -> Mapping[str, str]:
        """URLs for demo uploads by region code, for regions that have their own."""
        found = {
            region.code: region.upload_url
            or (None if region.log_url is None else self._beside(region.log_url, self.upload_port or 0))
            for region in self.regions
        }
        return {code: url for code, url in found.items() if url is not None}

    def _beside(self, url: str, upload_port: int) -> str:
        """Return the upload URL for servers that send their log posts to this URL.

        If the URL has the port of the service, the port is replaced. Any other URL is that of a proxy, and is returned
        unchanged.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.port != self.port:
            return url
        host = parts.netloc.rpartition(":")[0]
        return parts._replace(netloc=f"{host}:{upload_port}").geturl()


SERVICE = table_of(Settings)
REGION = table_of(RegionSettings)


def _reachable(host: str) -> str:
    """Return the host for a URL. For an unspecified address, to which clients cannot connect, return loopback."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return host if address.version == 4 else f"[{host}]"
