"""What do the words after `simulate` ask for? A CS2 command line with a few words of our own. No I/O.

`-name value` and `+name value` are the game's: of the `-` ones we take what matters and ignore the rest, the `+` ones
are console commands. `--name value` is ours, and a mistake there is a LaunchError that says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

import msgspec

from matchpod.simulator.options import ServerOptions
from matchpod.simulator.scenarios import DESCRIPTIONS, Scenario
from matchpod.simulator.sim_settings import sim_fault

MAX_FARM = 2000
"""Servers in one process: each takes a socket and some hundred KB, and one core moves about 500 at 30x."""

MAX_PORT = 65535

HELP = """\
usage: matchpod simulate [options] [the command line of a CS2 server]

Runs a server that looks like CS2 from outside: RCON, log posts, the match plugin, made-up players.

  -port N            RCON port (27015); 0: any free one
  -ip ADDRESS        address to listen on (127.0.0.1)
  -maxplayers N      seats
  +map NAME          first map (de_dust2)
  +rcon_password X   without one nobody gets in
  +game_type N +game_mode N
  +name value        any console command, run at the start
  -name [value]      other options of the game are accepted and ignored

  --speed N          simulated seconds in a real one (1)
  --seed N           what chance is made of (1)
  --scenario NAME    what happens (full_match); see --list
  --players IDS      who will come: SteamID64s or account numbers with commas between them
  --farm N           so many servers in this process, on ports N, N+1, …, with seeds of their own
  --no-mirror        RCON does not mirror empty packets
  --list             list the scenarios
  --quiet            say nothing on standard error
  --help             this text

Exit codes: 0 ended as told, 1 a port is in use, 2 a word makes no sense, 139 the server crashed (server_crash).
"""

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_.,:*+-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_OPTION = re.compile(r"[+-](?![0-9.])")


class LaunchError(ValueError):
    """A word that makes no sense; the message is for whoever typed it."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    servers: tuple[ServerOptions, ...] = ()
    is_quiet: bool = False
    wants_help: bool = False
    wants_list: bool = False


class _Words:
    """What the words said so far."""

    def __init__(self) -> None:
        self.set: dict[str, str | int | float] = {}
        self.commands: list[str] = []
        self.seed = 1
        self.farm = 1
        self.flags: set[str] = set()


def read_words(words: Sequence[str]) -> Launch:
    """What a command line asks for; LaunchError at the first word that makes no sense."""
    for word in words:
        if not _is_text(word):
            raise LaunchError(f"`{word}` is no text in UTF-8")
    said = _Words()
    at = 0
    while at < len(words):
        word = words[at]
        if not _OPTION.match(word):
            raise LaunchError(f"`{word}` belongs to no option: options begin with -, + or --")
        after = at + 1
        while after < len(words) and not _OPTION.match(words[after]):
            after += 1
        _read_option(said, word, list(words[at + 1 : after]))
        at = after
    return Launch(
        servers=_servers(said),
        is_quiet="--quiet" in said.flags,
        wants_help="--help" in said.flags,
        wants_list="--list" in said.flags,
    )


def scenario_list() -> str:
    """The scenarios and what they are, a line each."""
    width = max(map(len, DESCRIPTIONS))
    return "".join(f"{scenario:{width}}  {meaning}\n" for scenario, meaning in DESCRIPTIONS.items())


def _read_option(said: _Words, word: str, values: list[str]) -> None:
    if word.startswith("--"):
        name, is_joined, value = word.partition("=")
        _read_ours(said, name, [value, *values] if is_joined else values)
    elif word in _GAMES:
        _GAMES[word](said, _only(word, values))
    elif word.startswith("+") and word not in _IGNORED:
        said.commands.append(" ".join([word[1:], *map(_quoted, values)]))


def _read_ours(said: _Words, name: str, values: list[str]) -> None:
    if name in _FLAGS:
        if values:
            raise LaunchError(f"{name} takes no value, but `{values[0]}` follows it")
        said.flags.add(name)
    elif name in _OURS:
        _OURS[name](said, _only(name, values))
    else:
        near = get_close_matches(name, [*_FLAGS, *_OURS], n=1)
        hint = f"; did you mean {near[0]}?" if near else "; --help lists what there is"
        raise LaunchError(f"there is no option {name}{hint}")


def _only(name: str, values: list[str]) -> str:
    if not values:
        raise LaunchError(f"{name} needs a value")
    if len(values) > 1:
        raise LaunchError(f"{name} takes one value, but `{values[1]}` follows it")
    return values[0]


def _number(name: str, value: str, *, least: int, greatest: int) -> int:
    if not _NUMBER.fullmatch(value) or not least <= int(value) <= greatest:
        raise LaunchError(f"{name} must be a whole number from {least} to {greatest}, not `{value}`")
    return int(value)


def _set_number(name: str, option: str, *, least: int, greatest: int) -> Callable[[_Words, str], None]:
    def read(said: _Words, value: str) -> None:
        said.set[option] = _number(name, value, least=least, greatest=greatest)

    return read


def _set_text(option: str) -> Callable[[_Words, str], None]:
    def read(said: _Words, value: str) -> None:
        said.set[option] = value

    return read


def _read_ip(said: _Words, value: str) -> None:
    if not value:
        raise LaunchError("-ip needs an address")
    said.set["ip"] = value


def _read_speed(said: _Words, value: str) -> None:
    _check("--speed", "sim_speed", value)
    said.set["speed"] = float(value)


def _read_players(said: _Words, value: str) -> None:
    _check("--players", "sim_players", value)
    said.set["players"] = value


def _read_scenario(said: _Words, value: str) -> None:
    if value not in set(Scenario):
        near = get_close_matches(value, list(Scenario), n=3, cutoff=0.5) or list(Scenario)
        raise LaunchError(f"there is no scenario `{value}`; perhaps {', '.join(near)}; --list explains them")
    said.set["scenario"] = Scenario(value)


def _read_seed(said: _Words, value: str) -> None:
    said.seed = _number("--seed", value, least=0, greatest=10**9 - 1)


def _read_farm(said: _Words, value: str) -> None:
    said.farm = _number("--farm", value, least=1, greatest=MAX_FARM)


def _check(option: str, variable: str, value: str) -> None:
    fault = sim_fault(variable, value)
    if fault is not None:
        raise LaunchError(f"{fault.replace(variable, option)}, not `{value}`")


def _servers(said: _Words) -> tuple[ServerOptions, ...]:
    first = msgspec.convert({**said.set, "commands": tuple(said.commands)}, ServerOptions)
    if first.port and first.port + said.farm - 1 > MAX_PORT:
        raise LaunchError(f"{said.farm} servers from port {first.port} on need ports above {MAX_PORT}")
    return tuple(
        msgspec.structs.replace(
            first,
            port=first.port + index if first.port else 0,
            seed=str(said.seed + index),
            has_mirror="--no-mirror" not in said.flags,
        )
        for index in range(said.farm)
    )


def _is_text(word: str) -> bool:
    """False for bytes that Python could not decode; they stand in a word as halves of characters."""
    return not any("\ud800" <= char <= "\udfff" for char in word)


def _quoted(value: str) -> str:
    """A word as the console reads it again; it has no way to write a quote inside quotes."""
    return value if _PLAIN_WORD.fullmatch(value) else f'"{value.replace(chr(34), "")}"'


_GAMES: dict[str, Callable[[_Words, str], None]] = {
    "-port": _set_number("-port", "port", least=0, greatest=MAX_PORT),
    "-ip": _read_ip,
    "+ip": _read_ip,
    "-maxplayers": _set_number("-maxplayers", "max_players", least=1, greatest=64),
    "-maxplayers_override": _set_number("-maxplayers_override", "max_players", least=1, greatest=64),
    "+map": _set_text("map"),
    "+rcon_password": _set_text("rcon_password"),
    "+game_type": _set_number("+game_type", "game_type", least=0, greatest=9),
    "+game_mode": _set_number("+game_mode", "game_mode", least=0, greatest=9),
}

_IGNORED = ("+sv_setsteamaccount",)
"""A key to Steam; there is no Steam here."""

_FLAGS = ("--no-mirror", "--list", "--quiet", "--help")

_OURS: dict[str, Callable[[_Words, str], None]] = {
    "--speed": _read_speed,
    "--seed": _read_seed,
    "--scenario": _read_scenario,
    "--players": _read_players,
    "--farm": _read_farm,
}
