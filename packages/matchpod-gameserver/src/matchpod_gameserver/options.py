"""Parse and validate the arguments of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from .log import FORMATS, FatalError

PASSWORD_VARIABLE = "MATCHPOD_RCON_PASSWORD"
SECRET_VARIABLE = "MATCHPOD_FLEET_SECRET_FILE"
LOG_FORMAT_VARIABLE = "MATCHPOD_LOG_FORMAT"
DERIVE = "derive-password"
RUN_INSTANCE = "run-instance"
REMOVE_INSTANCES = "remove-instances"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh]?)")
_OBJECT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_FILE_NAME = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9_.-]{0,251})?")
_UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600}

HELP = f"""\
usage: matchpod-gameserver [options] -- COMMAND...
       matchpod-gameserver {DERIVE} --name NAME --out FILE [--secret-file FILE]
       matchpod-gameserver {RUN_INSTANCE} --install-dir DIR --instances-dir DIR --owner ID --name NAME -- COMMAND...
       matchpod-gameserver {REMOVE_INSTANCES} --instances-dir DIR --owner ID [--name NAME]

Run the game server COMMAND under Agones: report its health, report ready when RCON answers and the map is loaded, end
it on SIGTERM, and exit when it does. Starts it when the Agones SDK answers, since only the SDK knows its port.

  --password-file FILE     the RCON password, as {DERIVE} has written it: the game cannot read the secret
  --secret-file FILE       or the secret that the fleet shares with the service (default: {SECRET_VARIABLE})
  --install-dir DIR        a shared, read-only installation of the game (with the folder `game`): the server runs in a
                           folder of its own with links to it, {{game}}, which is removed when it has ended
  --instances-dir DIR      where that folder is made; needed with --install-dir
  --addons NAMES           addons without which a server must not start, separated by commas: metamod,MatchZy
  --steamclient FILE       steamclient.so of SteamCMD (default: ~/.steam/sdk64/steamclient.so, else steamcmd/linux64
                           in --install-dir or next to it)
  --cfg-dir DIR            the game's folder for .cfg files: a file that sets rcon_password is written there (default
                           with --install-dir: its own)
  --ip ADDRESS             address that the game listens on (default 0.0.0.0)
  --port-name NAME         the game's port in the GameServer (default: game, else the first one)
  --sdk-timeout TIME       how long to wait for the Agones SDK and the ports (default 120)
  --start-timeout TIME     how long the game may take until its map is loaded (default 600)
  --grace-period TIME      how long the game may take to end (default 25); terminationGracePeriodSeconds must be longer
  --max-life TIME          how long a match may take, from its allocation; then the game is ended (default: no limit)
  --idle-exit TIME         how long a match may have no player and no console connection; then the game is ended,
                           because the service that would release it must be gone (default: no limit)
  --log-format FORMAT      of the log of this program: human or json (default: {LOG_FORMAT_VARIABLE}, else human)

A TIME is a number of seconds, or has a unit: 90s, 30m, 12h. Servers without a match are left to Agones.
In COMMAND, {{port}} is the port of the game and of RCON, {{ip}} the address to listen on, {{name}} the name of the
GameServer, {{cfg}} the name of the file in --cfg-dir, for `+exec {{cfg}}`, and {{game}} the server's own folder `game`.
The RCON password is derived from the secret and the name of the GameServer. The game finds it in its variable
{PASSWORD_VARIABLE} and in the file in --cfg-dir. The port of the SDK is AGONES_SDK_HTTP_PORT (default 9358).

{DERIVE} derives the password and writes it into a file, in an init container that alone mounts the secret.

  --name NAME              the name of the GameServer, which is that of its pod
  --out FILE               the file for the password, in a volume that the game's container mounts too

{RUN_INSTANCE} makes the folder of a server, without Agones, and executes COMMAND, in which {{game}} is replaced. A
process fleet of the service starts its servers with it. {REMOVE_INSTANCES} removes the folders that no server uses, as
after a crash of the machine; folders of other owners are left alone.

  --owner ID               the owner of the folders, whose names begin with it
  --name NAME              the server
  --cfg NAME               a file with this name is written into the game's folder for .cfg files, from standard input
  --report-fd NUMBER       a file descriptor on which a failure is reported, as errno and a sentence; COMMAND closes it

Exit codes: 0 ended on request, 1 failure, 2 invalid arguments; otherwise that of the game, 128 + N after signal N.
"""


class UsageError(FatalError):
    """The arguments of the command line are invalid."""


class Options(NamedTuple):
    """The options of the main command, by name, with their defaults. Times are in seconds; 0 means no limit."""

    password_file: str = ""
    secret_file: str = ""
    install_dir: str = ""
    instances_dir: str = ""
    addons: str = ""
    steamclient: str = ""
    cfg_dir: str = ""
    ip: str = "0.0.0.0"
    port_name: str = ""
    sdk_timeout: float = 120.0
    start_timeout: float = 600.0
    grace_period: float = 25.0
    max_life: float = 0.0
    idle_exit: float = 0.0
    log_format: str = ""


class DeriveOptions(NamedTuple):
    """The options of `derive-password`."""

    secret_file: str = ""
    name: str = ""
    out: str = ""
    log_format: str = ""


class InstanceOptions(NamedTuple):
    """The options of `run-instance` and `remove-instances`."""

    install_dir: str = ""
    instances_dir: str = ""
    owner: str = ""
    name: str = ""
    addons: str = ""
    steamclient: str = ""
    cfg: str = ""
    report_fd: str = ""
    log_format: str = ""


_AnyOptions = TypeVar("_AnyOptions", Options, DeriveOptions, InstanceOptions)
_WithSecret = TypeVar("_WithSecret", Options, DeriveOptions)


def parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Options, list[str]]:
    """Return the options and the game's command; raise UsageError if they are invalid."""
    rest = iter(arguments)
    options, command = _with_log_format(_parse(Options, rest), environment), list(rest)
    used = {name for argument in command for name in _PLACEHOLDER.findall(argument)}
    if not command:
        raise UsageError("the command of the game server is missing; put it after --, as in: -- ./cs2 -port {port}")
    if options.password_file and options.secret_file:
        raise UsageError("--password-file and --secret-file cannot be used together")
    if not options.password_file:
        options = _with_secret(options, environment)
    for name in sorted(used - {"port", "ip", "name", "cfg", "game"}):
        raise UsageError(f"the command has the unknown placeholder {{{name}}}; --help lists all placeholders")
    has_cfg = bool(options.cfg_dir or (options.install_dir and "cfg" in used))
    if ("cfg" in used) != has_cfg:
        raise UsageError("--cfg-dir and the placeholder {cfg} in the command must be used together")
    if len({bool(options.install_dir), bool(options.instances_dir), "game" in used}) > 1:
        raise UsageError(
            "--install-dir, --instances-dir and the placeholder {game} in the command must be used together"
        )
    return options, command


def parse_instance_arguments(
    name: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[InstanceOptions, list[str]]:
    """Return options and command of `run-instance` or `remove-instances`; raise UsageError if they are invalid."""
    rest = iter(arguments)
    options, command = _with_log_format(_parse(InstanceOptions, rest), environment), list(rest)
    required = {"instances_dir", "owner"}
    if name == RUN_INSTANCE:
        required |= {"install_dir", "name"}
    for field in sorted(required):
        if not getattr(options, field):
            raise UsageError(f"--{field.replace('_', '-')} is missing; --help lists all options")
    if (name == RUN_INSTANCE) != bool(command):
        raise UsageError("the command of the game server follows after -- with run-instance, and only there")
    if not re.fullmatch(r"[0-9]{0,6}", options.report_fd):
        raise UsageError(f"--report-fd must be the number of a file descriptor, not `{options.report_fd}`")
    for field in ("owner", "name", "cfg"):
        if not _FILE_NAME.fullmatch(getattr(options, field)):
            raise UsageError(f"--{field} may only contain letters, digits, dots, dashes and underscores")
    return options, command


def parse_derive_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> DeriveOptions:
    """Return the options of `derive-password`; raise UsageError if they are invalid."""
    options = _with_log_format(_parse(DeriveOptions, iter(arguments)), environment)
    options = _with_secret(options, environment)
    for name in ("name", "out"):
        if not getattr(options, name):
            raise UsageError(f"--{name} is missing; --help lists all options")
    if not _OBJECT_NAME.fullmatch(options.name):  # Kubernetes leaves $(NAME) as it is if the variable is missing
        raise UsageError(f"--name must be the name of a GameServer, not `{options.name}`")
    return options


def expand_command(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments of the game's command with their placeholders replaced."""
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], argument) for argument in template]


def _parse(kind: type[_AnyOptions], rest: Iterator[str]) -> _AnyOptions:
    """Parse the options up to `--`, and return them. The arguments after `--` remain in `rest`."""
    values: dict[str, Any] = {}
    for argument in rest:
        if argument == "--":
            break
        name, is_joined, value = argument.partition("=")
        field = name[2:].replace("-", "_")
        if not name.startswith("--") or field not in kind._fields:
            raise UsageError(f"unknown option `{name}`; --help lists all options, and the command follows after --")
        value = value if is_joined else next(rest, "--")
        if value in ("", "--"):
            raise UsageError(f"{name} needs a value")
        is_time = isinstance(kind._field_defaults[field], float)
        values[field] = _seconds(name, value) if is_time else value
    return kind(**values)


def _seconds(name: str, text: str) -> float:
    found = _TIME.fullmatch(text)
    if found is None or float(found[1]) == 0:
        raise UsageError(f"{name} must be a time above 0 such as 90, 30m or 12h, not `{text}`")
    return float(found[1]) * _UNITS_S[found[2]]


def _with_log_format(options: _AnyOptions, environment: Mapping[str, str]) -> _AnyOptions:
    name = "--log-format" if options.log_format else LOG_FORMAT_VARIABLE
    log_format = options.log_format or environment.get(LOG_FORMAT_VARIABLE) or FORMATS[0]
    if log_format not in FORMATS:
        raise UsageError(f"{name} must be {' or '.join(FORMATS)}, not `{log_format}`")
    return options._replace(log_format=log_format)


def _with_secret(options: _WithSecret, environment: Mapping[str, str]) -> _WithSecret:
    if not options.secret_file and not environment.get(SECRET_VARIABLE):
        others = "--password-file, " if "password_file" in options._fields else ""
        raise UsageError(f"the secret of the fleet is missing; set {others}--secret-file or {SECRET_VARIABLE}")
    return options._replace(secret_file=options.secret_file or environment[SECRET_VARIABLE])
