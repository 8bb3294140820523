"""Load settings from environment, file and defaults, in this order of precedence, and report all faults at once.

Pure: the environment is a mapping, the file is read through a function. No message contains a secret.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from matchpod.core.text_rules import nearest, printable
from matchpod.settings.table import (
    DEFAULT_REGION,
    PREFIX,
    PROCESS_FLEET,
    REGION,
    SERVICE,
    SIMULATOR_COMMAND,
    STATIC_SERVER,
    Setting,
)
from matchpod.settings.values import (
    CONFIG_FILE,
    ProcessFleetSettings,
    RegionSettings,
    Settings,
    StaticFleetSettings,
    StaticServerSettings,
)

FLEET_KINDS = ("process", "static")

EVERY_ADDRESS = "0.0.0.0"
"""Listens on all addresses of a machine, so its ports conflict with those of every other address."""

Values = dict[str, object]


class SettingsError(Exception):
    """The settings are invalid; `faults` has one sentence for each problem."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


def load_settings(
    environment: Mapping[str, str],
    read_file: Callable[[Path], bytes | None],
    *,
    python: str = sys.executable,
) -> Settings:
    """Load all settings; raise SettingsError with every fault. `read_file` returns None if the file does not exist."""
    faults: list[str] = []
    from_environment = _read_environment(environment, faults)
    defaults = {setting.key: setting.rule.read(setting.default) for setting in SERVICE if setting.default is not None}
    file, parsed = _find_file({**defaults, **from_environment}, read_file, faults)
    in_file = _Table(f" in {file}" if file else "", faults)
    keys = [setting for setting in SERVICE if setting.in_file]
    from_file = in_file.read(keys, parsed, ignored=("regions",))
    regions = in_file.regions(parsed.get("regions", [DEFAULT_REGION]), python)
    if faults:
        raise SettingsError(faults)
    unset: Values = {setting.key: None for setting in SERVICE}
    values = {**unset, "extra_cvars": (), **defaults, **from_file, **from_environment}
    return msgspec.convert({**values, "config": file, "regions": tuple(regions)}, Settings)


def _read_environment(environment: Mapping[str, str], faults: list[str]) -> Values:
    known = {setting.variable: setting for setting in SERVICE}
    values: Values = {}
    # An empty variable counts as not set, as in compose and unit files.
    for name, value in sorted((name, value) for name, value in environment.items() if name.startswith(PREFIX)):
        setting = known.get(name)
        if setting is None:
            # Compared without the prefix, which would make all names similar.
            similar = nearest(name.removeprefix(PREFIX), (other.removeprefix(PREFIX) for other in known))
            faults.append(_unknown(printable(name), "setting", similar and PREFIX + similar))
        elif value:
            _read_one(setting, value, name, faults, into=values)
    return values


def _find_file(
    values: Values, read_file: Callable[[Path], bytes | None], faults: list[str]
) -> tuple[Path | None, dict[str, object]]:
    config, folder = values.get("config"), values["data_dir"]
    path = config if isinstance(config, Path) else Path(str(folder)) / CONFIG_FILE
    content = read_file(path)
    if content is None:
        if config is not None:
            faults.append(f"{PREFIX}CONFIG is {_quoted(str(path))}; it must be a file that exists.")
        return None, {}
    try:
        return path, tomllib.loads(content.decode())
    except UnicodeDecodeError as exc:
        faults.append(f"The file {path} is not UTF-8 text (byte {exc.start}).")
    except (ValueError, RecursionError) as exc:  # besides TOML errors: numbers too long, tables nested too deeply
        faults.append(f"The file {path} is not TOML: {exc}.")
    return path, {}


class _Table:
    """Reads the tables of one file; `where` is appended to each key in a message."""

    def __init__(self, where: str, faults: list[str]) -> None:
        self._where = where
        self._faults = faults

    def read(
        self, settings: Iterable[Setting], raw: Mapping[str, object], *, inside: str = "", ignored: tuple[str, ...] = ()
    ) -> Values:
        """Return the valid values; keys in `ignored` are known but read elsewhere."""
        known = {setting.key: setting for setting in settings}
        values: Values = {}
        for name, value in raw.items():
            place = f"{inside}{printable(name)}{self._where}"
            if name in known:
                _read_one(known[name], value, place, self._faults, into=values)
            elif name not in ignored:
                self._faults.append(_unknown(place, "key", nearest(name, (*known, *ignored))))
        for setting in known.values():
            if setting.is_required and setting.key not in raw:
                place = f"{inside}{setting.key}{self._where}"
                self._faults.append(f"{place} is missing; it must be {setting.rule.allowed}.")
            elif inside and setting.default is not None:
                values.setdefault(setting.key, setting.rule.read(setting.default))
        return values

    def regions(self, raw: object, python: str) -> list[RegionSettings]:
        """Return all valid regions; also report conflicts between regions."""
        if not raw or not isinstance(raw, list) or not all(isinstance(region, dict) for region in raw):
            self._faults.append(f"regions{self._where} must be one or more tables that begin with [[regions]].")
            return []
        read = [self._region(region, f"regions[{number}].", python) for number, region in enumerate(raw, start=1)]
        regions = [region for region in read if region is not None]
        for code in _repeated(region.code for region in regions):
            self._faults.append(f"regions{self._where} has the code {code} more than once; codes must be unique.")
        if shared := _repeated(_addresses([region.fleet for region in regions])):
            found = shared[0] if len(shared) == 1 else f"{shared[0]} and {len(shared) - 1} more addresses"
            self._faults.append(f"regions{self._where} use {found} more than once; each must belong to one fleet.")
        return regions

    def _region(self, raw: Mapping[str, object], inside: str, python: str) -> RegionSettings | None:
        before = len(self._faults)
        values = self.read(REGION, raw, inside=inside, ignored=("fleet",))
        fleet = raw.get("fleet")
        values["fleet"] = self._fleet(fleet if isinstance(fleet, dict) else {}, f"{inside}fleet.", python)
        if len(self._faults) > before:
            return None
        is_simulated = isinstance(fleet, dict) and fleet.get("kind") == "process" and "command" not in fleet
        values.setdefault("name", values["code"])
        values.setdefault("location", values["name"])
        values.setdefault("allows_simulator", is_simulated)
        return msgspec.convert(values, RegionSettings)

    def _fleet(
        self, raw: Mapping[str, object], inside: str, python: str
    ) -> ProcessFleetSettings | StaticFleetSettings | None:
        kind = raw.get("kind")
        if kind == "process":
            return self._process_fleet(raw, inside, python)
        if kind == "static":
            return self._static_fleet(raw, inside)
        problem = f"is {_quoted(kind)}" if "kind" in raw else "is missing"
        self._faults.append(f"{inside}kind{self._where} {problem}; it must be {' or '.join(FLEET_KINDS)}.")
        return None

    def _process_fleet(self, raw: Mapping[str, object], inside: str, python: str) -> ProcessFleetSettings | None:
        before = len(self._faults)
        values = self.read(PROCESS_FLEET, raw, inside=inside, ignored=("kind",))
        if values.get("host") == EVERY_ADDRESS and "public_ip" not in raw:
            self._faults.append(
                f"{inside}public_ip{self._where} is missing; players cannot connect to {EVERY_ADDRESS}."
            )
        if len(self._faults) > before:
            return None
        command = msgspec.convert(values.get("command", SIMULATOR_COMMAND), tuple[str, ...])
        values["command"] = tuple(argument.replace("{python}", python) for argument in command)
        unset: Values = {"public_ip": values["host"], "environment": {}, "working_dir": None, "memory_mb": None}
        return msgspec.convert({**unset, **values, "kind": "process"}, ProcessFleetSettings)

    def _static_fleet(self, raw: Mapping[str, object], inside: str) -> StaticFleetSettings | None:
        before = len(self._faults)
        self.read((), raw, inside=inside, ignored=("kind", "servers"))
        listed = raw.get("servers")
        if not listed or not isinstance(listed, list) or not all(isinstance(server, dict) for server in listed):
            sample = '[{ address = "203.0.113.7:27015", rcon_password = "…" }]'
            self._faults.append(f"{inside}servers{self._where} must be a list like {sample}.")
            return None
        read = [
            self.read(STATIC_SERVER, server, inside=f"{inside}servers[{number}].")
            for number, server in enumerate(listed, start=1)
        ]
        if len(self._faults) > before:
            return None
        return StaticFleetSettings(servers=tuple(_static_server(values) for values in read))


def _static_server(values: Values) -> StaticServerSettings:
    host, port = msgspec.convert(values["address"], tuple[str, int])
    return msgspec.convert({"host": host, "port": port, "rcon_password": values["rcon_password"]}, StaticServerSettings)


def _read_one(setting: Setting, value: object, place: str, faults: list[str], *, into: Values) -> None:
    try:
        into[setting.key] = setting.rule.read(value)
    except ValueError:
        problem = "has an invalid value (not shown)" if setting.is_secret else f"is {_quoted(value)}"
        faults.append(f"{place} {problem}; it must be {setting.rule.allowed}.")


def _unknown(place: str, noun: str, similar: str | None) -> str:
    return f"{place} is not a known {noun}" + (f"; did you mean {similar}?" if similar else ".")


def _quoted(value: object) -> str:
    if isinstance(value, str) and "@" in value:
        return "a text that may contain a password"
    if isinstance(value, str):
        return f'"{printable(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return printable(str(value))
    # A list or table may contain a secret.
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a date or time"


def _addresses(fleets: list[ProcessFleetSettings | StaticFleetSettings]) -> list[str]:
    """Return the addresses that the servers of all fleets listen on."""
    started = [
        (fleet.host, port) for fleet in fleets if isinstance(fleet, ProcessFleetSettings) for port in fleet.ports
    ]
    everywhere = {port for host, port in started if host == EVERY_ADDRESS}
    static = [server.address for fleet in fleets if isinstance(fleet, StaticFleetSettings) for server in fleet.servers]
    return [*(f"{EVERY_ADDRESS if port in everywhere else host}:{port}" for host, port in started), *static]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
