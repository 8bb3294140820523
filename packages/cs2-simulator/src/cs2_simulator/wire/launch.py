"""Parse the arguments of `cs2-simulator`: a CS2 command line plus the simulator's own options.

Options of the game are `-name value` and `+name value`: of the `-` options, only those relevant to the simulator have
an effect; `+` options are console commands. The simulator's own options are `--name value`. Invalid arguments raise
LaunchError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

import msgspec

from cs2_simulator.options import ServerOptions
from cs2_simulator.scenarios import Scenario
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.sim_settings import sim_fault

MAX_FARM = 2000
"""Maximum number of servers per process. Each server needs a socket and several hundred KB. One core can run about 500
servers at speed 30."""

MAX_PORT = 65535

HELP = """\
usage: cs2-simulator [options] [the command line of a CS2 server]

Run a simulated CS2 server: RCON, log posts, match plugin, generated players.

  -port N            RCON port (default 27015; 0 for any free port)
  -ip ADDRESS        address to listen on (default 127.0.0.1)
  -maxplayers N      maximum number of players
  +map NAME          first map (default de_dust2)
  +rcon_password X   RCON password (default: the variable MATCHPOD_RCON_PASSWORD, which other users do not see);
                     without it, RCON rejects every client
  +game_type N +game_mode N
  +name value        any console command, run at startup
  -name [value]      other options of the game are accepted and ignored

  --speed N          simulated seconds per real second (default 1)
  --seed N           random seed, a number or a name (default 1)
  --scenario NAME    what happens (default full_match); see --list
  --fault NAME       what is wrong with how the server was set up; see --list
  --players IDS      players who join: comma-separated SteamID64s or account numbers
  --farm N           run N servers in this process, on consecutive ports and seeds
  --no-mirror        RCON does not mirror empty packets
  --list             list the scenarios, the variables that set one up, and the faults
  --quiet            print nothing on standard error
  --help             show this help

Exit codes: 0 normal end, 1 address or port not available, 2 invalid arguments, 139 the server crashed (server_crash).
"""

_LIST_END = """\
A match of the sandbox sets these in customCvars:
sim_scenario NAME   one of these scenarios
sim_seed N          play the match of this seed again; without it, the id of the server is the seed
"""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.,:*+-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_SEED_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_OPTION = re.compile(r"[+-](?![0-9.])")


class LaunchError(ValueError):
    """The arguments are invalid. The message is for the user."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed command line."""

    servers: tuple[ServerOptions, ...] = ()
    is_quiet: bool = False
    wants_help: bool = False
    wants_list: bool = False


_Value = str | int | float
_Options = dict[str, tuple[str, Callable[[str, str], _Value]]]
"""Per option name: the field that the option sets, and a function that parses its value. The function gets the name
of the option and the text of the value."""


class _ParsedOptions:
    """The options that have been parsed so far."""

    def __init__(self) -> None:
        self.values: dict[str, _Value] = {}
        """Values by field of ServerOptions, and the number of servers as `farm`."""
        self.commands: list[str] = []
        self.flags: set[str] = set()


def parse_arguments(arguments: Sequence[str], *, rcon_password: str = "") -> Launch:
    """Parse a command line, or raise LaunchError. `rcon_password` is used if the command line has none."""
    for argument in arguments:
        if not _is_text(argument):
            raise LaunchError(f"`{argument}` is not valid UTF-8")
    parsed = _ParsedOptions()
    parsed.values["rcon_password"] = rcon_password
    at = 0
    while at < len(arguments):
        option = arguments[at]
        if not _OPTION.match(option):
            raise LaunchError(f"unexpected argument `{option}`: options begin with -, + or --")
        after = at + 1
        while after < len(arguments) and not _OPTION.match(arguments[after]):
            after += 1
        _read_option(parsed, option, list(arguments[at + 1 : after]))
        at = after
    return Launch(
        servers=_servers(parsed),
        is_quiet="--quiet" in parsed.flags,
        wants_help="--help" in parsed.flags,
        wants_list="--list" in parsed.flags,
    )


def scenario_list() -> str:
    """Return a list of the scenarios and setup faults, one per line, and how to select a scenario for a match."""
    width = max(map(len, Scenario))
    scenarios = "".join(f"{scenario:{width}}  {scenario.description}\n" for scenario in Scenario)
    faults = "".join(f"{fault:{width}}  {fault.description}\n" for fault in SetupFault)
    return f"{scenarios}\n{_LIST_END}\nThe faults of a setup, for --fault:\n{faults}"


def _read_option(parsed: _ParsedOptions, option: str, values: list[str]) -> None:
    if option.startswith("--"):
        name, is_joined, value = option.partition("=")
        _read_own_option(parsed, name, [value, *values] if is_joined else values)
    elif option in _GAME_OPTIONS:
        _set(parsed, _GAME_OPTIONS, option, values)
    elif option.startswith("+") and option not in _IGNORED:
        parsed.commands.append(" ".join([option[1:], *map(_quoted, values)]))


def _read_own_option(parsed: _ParsedOptions, name: str, values: list[str]) -> None:
    if name in _FLAGS:
        if values:
            raise LaunchError(f"{name} takes no value, but `{values[0]}` follows it")
        parsed.flags.add(name)
    elif name in _OWN_OPTIONS:
        _set(parsed, _OWN_OPTIONS, name, values)
    else:
        similar = get_close_matches(name, [*_FLAGS, *_OWN_OPTIONS], n=1)
        hint = f"did you mean {similar[0]}?" if similar else "--help lists all options"
        raise LaunchError(f"unknown option {name}; {hint}")


def _set(parsed: _ParsedOptions, options: _Options, name: str, values: list[str]) -> None:
    if not values:
        raise LaunchError(f"{name} needs a value")
    if len(values) > 1:
        raise LaunchError(f"{name} takes one value, but `{values[1]}` follows it")
    field, parse = options[name]
    parsed.values[field] = parse(name, values[0])


def _number(minimum: int, maximum: int) -> Callable[[str, str], int]:
    def parse(name: str, value: str) -> int:
        if not _NUMBER.fullmatch(value) or not minimum <= int(value) <= maximum:
            raise LaunchError(f"{name} must be a whole number from {minimum} to {maximum}, not `{value}`")
        return int(value)

    return parse


def _seed(_name: str, value: str) -> str:
    if not _NUMBER.fullmatch(value) and not _SEED_NAME.fullmatch(value):
        raise LaunchError(f"--seed must be a whole number from 0 to {10**9 - 1} or a name, not `{value}`")
    return value


def _text(_name: str, value: str) -> str:
    return value


def _address(_name: str, value: str) -> str:
    if not value:
        raise LaunchError("-ip needs an address")
    return value


def _sim_value(name: str, value: str) -> str:
    """Validate the value of an option that sets a `sim_` variable."""
    variable = f"sim_{name[2:]}"
    fault = sim_fault(variable, value)
    if fault is not None:
        raise LaunchError(f"{fault.replace(variable, name)}, not `{value}`")
    return value


def _one_of(kind: type[Scenario | SetupFault], what: str) -> Callable[[str, str], str]:
    known = [str(member) for member in kind]

    def parse(_name: str, value: str) -> str:
        if value not in known:
            similar = get_close_matches(value, known, n=3, cutoff=0.5) or known
            raise LaunchError(f"unknown {what} `{value}`; did you mean {', '.join(similar)}? --list describes them")
        return value

    return parse


def _servers(parsed: _ParsedOptions) -> tuple[ServerOptions, ...]:
    values = parsed.values
    farm, seed = int(values.pop("farm", 1)), str(values.pop("seed", "1"))
    if farm > 1 and not seed.isdecimal():
        raise LaunchError(f"--farm needs a number as --seed, because seeds are consecutive, not `{seed}`")
    first = msgspec.convert({**values, "commands": parsed.commands}, ServerOptions)
    if first.port and first.port + farm - 1 > MAX_PORT:
        raise LaunchError(f"{farm} servers starting at port {first.port} would need ports above {MAX_PORT}")
    return tuple(
        msgspec.structs.replace(
            first,
            port=first.port + index if first.port else 0,
            seed=str(int(seed) + index) if seed.isdecimal() else seed,
            has_mirror="--no-mirror" not in parsed.flags,
        )
        for index in range(farm)
    )


def _is_text(argument: str) -> bool:
    """False if the argument has bytes that are not UTF-8. Python decodes such bytes as lone surrogates."""
    return not any("\ud800" <= char <= "\udfff" for char in argument)


def _quoted(value: str) -> str:
    """Quote a value for the console. Quotes inside the value are removed, because the console cannot escape them."""
    return value if _PLAIN_WORD.fullmatch(value) else f'"{value.replace(chr(34), "")}"'


_GAME_OPTIONS: _Options = {
    "-port": ("port", _number(0, MAX_PORT)),
    "-ip": ("ip", _address),
    "+ip": ("ip", _address),
    "-maxplayers": ("max_players", _number(1, 64)),
    "-maxplayers_override": ("max_players", _number(1, 64)),
    "+map": ("map", _text),
    "+rcon_password": ("rcon_password", _text),
    "+game_type": ("game_type", _number(0, 9)),
    "+game_mode": ("game_mode", _number(0, 9)),
}

_IGNORED = ("+sv_setsteamaccount",)
"""Commands that are ignored: the simulator does not need a Steam login token."""

_FLAGS = ("--no-mirror", "--list", "--quiet", "--help")

_OWN_OPTIONS: _Options = {
    "--speed": ("speed", lambda name, value: float(_sim_value(name, value))),
    "--seed": ("seed", _seed),
    "--scenario": ("scenario", _one_of(Scenario, "scenario")),
    "--fault": ("setup_fault", _one_of(SetupFault, "fault")),
    "--players": ("players", _sim_value),
    "--farm": ("farm", _number(1, MAX_FARM)),
}
