"""Which settings are there? One table each for the service, its regions and their fleets, with default and meaning.

Loading, error messages and docs/configuration.md are driven by these tables: a setting is added here and in
`values.py`, nowhere else.
"""

from __future__ import annotations

import msgspec

from matchpod.settings import rules
from matchpod.settings.rules import Rule

PREFIX = "MATCHPOD_"

SIMULATOR_COMMAND = (
    *("{python}", "-m", "matchpod", "simulate", "-port", "{port}", "-ip", "{ip}", "+map", "{map}"),
    *("+game_type", "{game_type}", "+game_mode", "{game_mode}", "+rcon_password", "{rcon_password}"),
    *("--players", "{players}", "--speed", "{speed}", "--quiet"),
)
"""What a process fleet runs when it names no command of its own."""

DEFAULT_REGION = {
    "code": "sandbox",
    "name": "Sandbox",
    "location": "this machine",
    "speed": 30,
    "fleet": {"kind": "process", "ports": "27100-27199"},
}
"""The only region where no file names any, written like in the file."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `default` is written as in the file; None: `otherwise` says what holds without it."""

    key: str
    rule: Rule
    meaning: str
    default: str | int | None = None
    otherwise: str = ""
    is_secret: bool = False
    is_required: bool = False
    in_file: bool = True

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return PREFIX + self.key.upper()


SERVICE = (
    Setting(
        key="config",
        rule=rules.path(),
        otherwise="matchpod.toml in the data folder, if it exists",
        meaning="The settings file. A file that is named here must exist.",
        in_file=False,
    ),
    Setting(
        key="data_dir",
        rule=rules.path(),
        default="./var",
        meaning="The data folder: database, key file, state of fleets. A relative path counts from the folder the "
        "service is started in.",
    ),
    Setting(
        key="host",
        rule=rules.host(),
        default="127.0.0.1",
        meaning="Where the service listens. `0.0.0.0` listens on every interface.",
    ),
    Setting(
        key="port",
        rule=rules.whole_number(0, rules.MAX_PORT),
        default=8080,
        meaning="The port it listens on; 0 takes any free one.",
    ),
    Setting(
        key="public_url",
        rule=rules.web_url(),
        otherwise="http://HOST:PORT (127.0.0.1 when it listens on every interface)",
        meaning="Where game servers reach the service, to post their logs and fetch their match file. Game servers on "
        "other machines need one that leads here.",
    ),
    Setting(
        key="database_url",
        rule=rules.postgres_url(),
        otherwise="the SQLite file matchpod.sqlite3 in the data folder",
        meaning="A PostgreSQL database; several processes may share it. An SQLite file belongs to one process.",
        is_secret=True,
    ),
    Setting(
        key="secret_key",
        rule=rules.key(),
        otherwise="the key file secret.key in the data folder, made on first use",
        meaning="The key that stored secrets are sealed with. Processes that share a database need the same one.",
        is_secret=True,
    ),
    Setting(
        key="log_format",
        rule=rules.one_of("human", "json"),
        default="human",
        meaning="How the service writes its own log: lines for people or a JSON object a line.",
    ),
    Setting(
        key="log_level",
        rule=rules.one_of("debug", "info", "warning", "error"),
        default="info",
        meaning="The least important messages that are still written.",
    ),
    Setting(
        key="callback_private",
        rule=rules.flag("allow", "deny"),
        default="allow",
        meaning="Whether callbacks may go to private, loopback and link-local addresses. Deny it where callers may not "
        "reach what this machine can reach.",
    ),
    Setting(
        key="pending_s",
        rule=rules.whole_number(0, 86_400),
        default=600,
        meaning="How many seconds a match waits for a free server before it fails with `no_capacity`.",
    ),
    Setting(
        key="raw_log_days",
        rule=rules.whole_number(1, 3650),
        default=30,
        meaning="How many days the logs of ended matches are kept, from which `matchpod recompute` reads them again. "
        "Results are kept forever.",
    ),
    Setting(
        key="event_days",
        rule=rules.whole_number(1, 3650),
        default=365,
        meaning="How many days the events of ended matches are kept. Series, maps and statistics are kept forever.",
    ),
    Setting(
        key="rate_limit",
        rule=rules.whole_number(1, 1_000_000, off="off"),
        default="off",
        meaning="How many requests a minute one API key may make before it is answered 429. "
        "Each process counts for itself.",
    ),
    Setting(
        key="max_body_bytes",
        rule=rules.whole_number(16_384, 67_108_864),
        default=262_144,
        meaning="The largest body of an API request; a larger one is answered 413.",
    ),
    Setting(
        key="extra_cvars",
        rule=rules.names(),
        otherwise="none",
        meaning="Console variables that `customCvars` may set besides the built-in list.",
    ),
)

REGION = (
    Setting(key="code", rule=rules.region_code(), is_required=True, meaning="What callers write as `region`."),
    Setting(key="name", rule=rules.text(), otherwise="the code", meaning="Its name for people."),
    Setting(key="location", rule=rules.text(), otherwise="the name", meaning="Where its servers stand, for people."),
    Setting(
        key="speed",
        rule=rules.number(1, 1000),
        default=1,
        meaning="How many times as fast as real its servers run; the waits of a match are divided by it. Only "
        "simulated servers run faster than 1.",
    ),
    Setting(
        key="allows_simulator",
        rule=rules.truth(),
        otherwise="true when the fleet names no command of its own, else false",
        meaning="Whether `customCvars` may set the variables of the simulator (`sim_…`).",
    ),
)

PROCESS_FLEET = (
    Setting(
        key="ports",
        rule=rules.port_range(),
        is_required=True,
        meaning="The ports of the servers, first and last; their number is the number of matches at a time.",
    ),
    Setting(
        key="command",
        rule=rules.command(),
        otherwise="the simulator",
        meaning="What is started for each match, word by word, without a shell. A word that is empty once its "
        "placeholders are filled in is dropped together with the option before it.",
    ),
    Setting(key="host", rule=rules.ip_address(), default="127.0.0.1", meaning="The address servers listen on."),
    Setting(
        key="public_ip",
        rule=rules.ip_address(),
        otherwise="`host`",
        meaning="The address players connect to. Must be given when `host` is `0.0.0.0`.",
    ),
    Setting(
        key="environment",
        rule=rules.variables(),
        otherwise="none",
        meaning="Variables a server is started with, besides the usual ones.",
    ),
    Setting(
        key="working_dir",
        rule=rules.path(),
        otherwise="the folder the service is started in",
        meaning="The folder a server is started in.",
    ),
    Setting(
        key="memory_mb",
        rule=rules.whole_number(16, 1_048_576),
        otherwise="no limit",
        meaning="How much memory one server may take, in MiB.",
    ),
)

STATIC_SERVER = (
    Setting(key="address", rule=rules.address(), is_required=True, meaning="Where it is, for players and its console."),
    Setting(
        key="rcon_password", rule=rules.password(), is_required=True, is_secret=True, meaning="Its console password."
    ),
)
