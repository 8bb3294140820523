"""Define the settings of the service and its regions with default and meaning; those of fleets are in `fleets.py`.

Loading, error messages and docs/configuration.md are driven by these tables: a setting is added here and in
`values.py`, nowhere else.
"""

from __future__ import annotations

import msgspec

from matchpod.settings import rules
from matchpod.settings.rules import Rule

PREFIX = "MATCHPOD_"

DEFAULT_REGION = {
    "code": "sandbox",
    "name": "Sandbox",
    "location": "this machine",
    "speed": 30,
    "fleet": {"kind": "process", "ports": "27100-27199"},
}
"""The only region if the file defines none, written as in the file."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `default` is written as in the file; if it is None, `fallback` describes what applies instead."""

    key: str
    rule: Rule
    meaning: str
    default: str | int | None = None
    fallback: str = ""
    is_secret: bool = False
    is_required: bool = False
    in_file: bool = True

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return PREFIX + self.key.upper()


SERVICE = (
    Setting(
        key="config",
        rule=rules.path(),
        fallback="matchpod.toml in the data folder, if it exists",
        meaning="The settings file. If set, the file must exist.",
        in_file=False,
    ),
    Setting(
        key="data_dir",
        rule=rules.path(),
        default="./var",
        meaning="The data folder: database, key file, state of fleets. A relative path is resolved against the working "
        "directory of the service.",
    ),
    Setting(
        key="host",
        rule=rules.host(),
        default="127.0.0.1",
        meaning="The address the service listens on. `0.0.0.0` listens on every interface.",
    ),
    Setting(
        key="port",
        rule=rules.whole_number(0, rules.MAX_PORT),
        default=8080,
        meaning="The port the service listens on; 0 chooses any free port.",
    ),
    Setting(
        key="ops_port",
        rule=rules.whole_number(0, rules.MAX_PORT),
        fallback="none: the port of the service answers all of them",
        meaning="A second port, on the same address, for `/healthz`, `/readyz` and `/metrics` only; 0 chooses any free "
        "port. The port of the service then answers `/healthz` and `/readyz`, but no longer `/metrics`.",
    ),
    Setting(
        key="public_url",
        rule=rules.web_url(),
        fallback="http://HOST:PORT (127.0.0.1 when it listens on every interface)",
        meaning="The URL at which game servers reach the service, to post their logs and fetch their match file, and "
        "browsers its console. Set it if game servers run on other machines.",
    ),
    Setting(
        key="database_url",
        rule=rules.postgres_url(),
        fallback="the SQLite file matchpod.sqlite3 in the data folder",
        meaning="A PostgreSQL database, which several processes may share. An SQLite file is used by one process only. "
        "PostgreSQL needs the extra `matchpod[postgres]`. Of several hosts (`db1:5432,db2:5432`), the first one that "
        "can be written to is used ([failover.md](failover.md)).",
        is_secret=True,
    ),
    Setting(
        key="secret_key",
        rule=rules.keys(),
        fallback="the key file secret.key in the data folder, created on first use",
        meaning="The key that encrypts stored secrets. Processes that share a database need the same key. Of several, "
        "the first encrypts and all decrypt, so that the key can be replaced while the service runs "
        "([secrets.md](secrets.md)).",
        is_secret=True,
    ),
    Setting(
        key="first_key_file",
        rule=rules.path(),
        fallback="none: the first start makes a key, and shows it",
        meaning="A file with the API key that the first start creates, for installations that are set up by a program: "
        "`mk_live_` and 43 random letters, digits, `-` and `_`. It has no effect once there is an organization.",
    ),
    Setting(
        key="log_format",
        rule=rules.one_of("human", "json"),
        default="human",
        meaning="The format of the service's own log: lines for people, or one JSON object per line.",
    ),
    Setting(
        key="log_level",
        rule=rules.one_of("debug", "info", "warning", "error"),
        default="info",
        meaning="The lowest level of messages that are logged.",
    ),
    Setting(
        key="console",
        rule=rules.flag("on", "off"),
        default="on",
        meaning="Whether the service has a console for browsers, at `/console`; `matchpod console` prints a link to "
        "log in.",
    ),
    Setting(
        key="drive",
        rule=rules.flag("on", "off"),
        default="on",
        meaning="With `off` the service serves reads only: it drives no matches, sends no callbacks, deletes nothing, "
        "and answers creations, cancellations and posts of game servers with status 503. For a copy of a database "
        "whose original is in use.",
    ),
    Setting(
        key="callback_private",
        rule=rules.flag("allow", "deny"),
        fallback="allow if the service listens on loopback, its public URL is loopback too, and no request came "
        "through a proxy; else deny",
        meaning="Whether callbacks may go to private, loopback and link-local addresses "
        "([callbacks.md](callbacks.md#which-receivers-are-allowed)). With `allow`, callers can reach the internal "
        "network of this machine.",
    ),
    Setting(
        key="pending_s",
        rule=rules.whole_number(0, 86_400),
        default=600,
        meaning="Seconds that a match waits for a free server before it fails with `no_capacity`.",
    ),
    Setting(
        key="silence_s",
        rule=rules.whole_number(10, 3_600),
        default=30,
        meaning="Seconds without a log post or an answer of the console after which the server of a running match is "
        "lost; three times as many if several servers of a host or region fell silent together.",
    ),
    Setting(
        key="stop_grace_s",
        rule=rules.whole_number(0, 60),
        fallback="5 with PostgreSQL, else 0",
        meaning="Seconds that a stopping service still answers requests while `/readyz` fails, so that a load balancer "
        "stops sending them. Its matches are handed over before.",
    ),
    Setting(
        key="stall_exit_s",
        rule=rules.whole_number(0, 3600),
        default=60,
        meaning="Seconds without any progress after which the service logs where it hangs and ends itself, to be "
        "started again; 0: never.",
    ),
    Setting(
        key="raw_log_days",
        rule=rules.whole_number(1, 3650),
        default=30,
        meaning="Days that the logs of ended matches are kept; `matchpod recompute` needs them. "
        "Results are kept forever.",
    ),
    Setting(
        key="event_days",
        rule=rules.whole_number(1, 3650),
        default=365,
        meaning="Days that the events of ended matches are kept. Series, maps and statistics are kept forever.",
    ),
    Setting(
        key="max_match_log_mb",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=256,
        meaning="Megabytes of log and plugin reports that the server of a match may store; with more the match fails "
        "with `log_quota_exceeded`. A real match has a few megabytes. What a server sent that was replaced does not "
        "count; there are at most two of them.",
    ),
    Setting(
        key="rate_limit",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default="off",
        meaning="Requests per minute that one API key may make before it gets status 429. "
        "Each process counts separately.",
    ),
    Setting(
        key="max_failed_logins",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=60,
        meaning="Failed log-ins per client address (with IPv6, per /64 network) and minute, with API keys or to the "
        "console; further ones get status 429. Valid keys always work. Behind a proxy on another machine all requests "
        "come from its address: set it to `off`, and let the proxy limit them. For connections from this machine, the "
        "last address in `X-Forwarded-For` counts.",
    ),
    Setting(
        key="max_live_matches",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=1_000,
        meaning="Matches of one organization that have not ended; another one gets status 429. "
        "Counted in the database.",
    ),
    Setting(
        key="max_matches_per_process",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default="off",
        meaning="Matches that this process drives at a time. With PostgreSQL another replica that has room drives "
        "further ones; if none has, they wait, including those of a replica that died. So the limit of all replicas "
        "but one must be enough for all matches.",
    ),
    Setting(
        key="max_creations_per_minute",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=600,
        meaning="Matches that one organization may create per minute before it gets status 429. "
        "Each process counts separately.",
    ),
    Setting(
        key="max_streams",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=1_000,
        meaning="Event streams that one organization may have open; another one gets status 429. "
        "Each process counts separately.",
    ),
    Setting(
        key="min_free_disk_mb",
        rule=rules.whole_number(1, 1_000_000_000, off="off"),
        default=512,
        meaning="Free disk space in MiB below which new matches get status 503, on the file system of an SQLite "
        "database and of the records and outputs of `process` fleets. Running matches continue.",
    ),
    Setting(
        key="max_body_bytes",
        rule=rules.whole_number(16_384, 67_108_864),
        default=262_144,
        meaning="The maximum body size of an API request; a larger one gets status 413.",
    ),
    Setting(
        key="max_connections",
        rule=rules.whole_number(16, 1_000_000),
        fallback="16384, or less if the limit on open files is low",
        meaning="Open HTTP connections. An eighth of them is reserved for game servers, `/healthz`, `/readyz` and "
        "`/metrics`; other requests get status 503 then. Reduced if the limit on open files is too low for it.",
    ),
    Setting(
        key="max_connections_per_address",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default=1024,
        meaning="Open HTTP connections per client address (with IPv6, per /64 network), without those of game servers. "
        "The default allows for hundreds of viewers who share an address, and for a backend that reads a stream per "
        "match. Must be `off` behind a proxy: all requests come from its address. Loopback is not limited.",
    ),
    Setting(
        key="cors_origins",
        rule=rules.origins(),
        fallback="none",
        meaning="Origins such as `https://cup.example` whose web pages may use the API from a browser (CORS); `*` "
        "allows all. The list of regions can be read by every page.",
    ),
    Setting(
        key="extra_cvars",
        rule=rules.names(),
        fallback="none",
        meaning="Console variables that `customCvars` may set in addition to the built-in list.",
    ),
)

REGION = (
    Setting(key="code", rule=rules.region_code(), is_required=True, meaning="The value of `region` in requests."),
    Setting(key="name", rule=rules.text(), fallback="the code", meaning="Display name."),
    Setting(key="location", rule=rules.text(), fallback="the name", meaning="Display name of the servers' location."),
    Setting(
        key="speed",
        rule=rules.number(1, 1000),
        default=1,
        meaning="How much faster than real time its servers run; the timeouts of a match are divided by it. Only "
        "simulated servers support more than 1.",
    ),
    Setting(
        key="allows_simulator",
        rule=rules.boolean(),
        fallback="true if a process fleet has no `command`, else false",
        meaning="Whether `customCvars` may set the variables of the simulator (`sim_…`).",
    ),
)
