"""Load the settings from environment, file and defaults (in this order of precedence), and collect all faults.

The code has no side effects: the environment is passed as a mapping, and the file is read through a function. Messages
contain no secrets.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import msgspec

from matchpod.core.requests.text_rules import nearest, printable
from matchpod.settings.file_table import FileTable, Values, quoted, read_setting, unknown
from matchpod.settings.fleets import (
    AGONES_FLEET,
    PROCESS_FLEET,
    STATIC_SERVER,
    AgonesFleetSettings,
    addresses,
    read_fleet,
)
from matchpod.settings.table import PREFIX
from matchpod.settings.values import CONFIG_FILE, DEFAULT_REGION, REGION, SERVICE, RegionSettings, Settings


class SettingsError(Exception):
    """The settings are invalid; `faults` has one sentence per problem."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


def load_settings(environment: Mapping[str, str], read_file: Callable[[Path], bytes | None]) -> Settings:
    """Load all settings. SettingsError with all faults. `read_file` returns None if the file does not exist."""
    faults: list[str] = []
    from_environment = _read_environment(environment, faults)
    file, parsed = _find_file(msgspec.convert(from_environment, Settings), read_file, faults)
    in_file = FileTable(f" in {file}" if file else "", faults)
    keys = [setting for setting in SERVICE if setting.in_file]
    from_file = in_file.read(keys, parsed, ignored=("regions",))
    regions = _read_regions(in_file, parsed.get("regions", [DEFAULT_REGION]))
    settings = msgspec.convert({**from_file, **from_environment, "config": file, "regions": regions}, Settings)
    for (name, port), (other, used) in combinations(_ports_of(settings), 2):
        if port and port == used:
            faults.append(f"{name} is {port}, as is {other}; it must be another port.")
    if settings.upload_port is None:
        recorded = [region.code for region in settings.regions if region.record_demos]
        faults += [f"record_demos of {code} has no effect without upload_port." for code in recorded]
    if faults:
        raise SettingsError(faults)
    return settings


def _ports_of(settings: Settings) -> list[tuple[str, int | None]]:
    return [("upload_port", settings.upload_port), ("ops_port", settings.ops_port), ("port", settings.port)]


def has_secrets(content: bytes) -> bool:
    """True if the settings file, which must be valid, contains a secret, even one that the environment overrides."""
    tables = (SERVICE, PROCESS_FLEET, STATIC_SERVER, AGONES_FLEET)
    secret = {setting.key for table in tables for setting in table if setting.is_secret}
    return not secret.isdisjoint(_keys(tomllib.loads(content.decode())))


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _read_environment(environment: Mapping[str, str], faults: list[str]) -> Values:
    known = {setting.variable: setting for setting in SERVICE}
    values: Values = {}
    # An empty variable counts as not set, as is usual in compose files and systemd units.
    for name, value in sorted((name, value) for name, value in environment.items() if name.startswith(PREFIX)):
        setting = known.get(name)
        if setting is None:
            # Compare without the prefix: with it, all names would be similar.
            similar = nearest(name.removeprefix(PREFIX), (other.removeprefix(PREFIX) for other in known))
            faults.append(unknown(printable(name), "setting", similar and PREFIX + similar))
        elif value:
            read_setting(setting, value, name, faults, into=values)
    return values


def _find_file(
    given: Settings, read_file: Callable[[Path], bytes | None], faults: list[str]
) -> tuple[Path | None, dict[str, object]]:
    path = given.config or given.data_dir / CONFIG_FILE
    content = read_file(path)
    if content is None:
        if given.config is not None:
            faults.append(f"{PREFIX}CONFIG is {quoted(str(path))}; it must be a file that exists.")
        return None, {}
    try:
        return path, tomllib.loads(content.decode())
    except UnicodeDecodeError as exc:
        faults.append(f"The file {path} is not UTF-8 text (byte {exc.start}).")
    except (ValueError, RecursionError) as exc:  # also raised for numbers too long, and tables nested too deeply
        faults.append(f"The file {path} is not TOML: {exc}.")
    return path, {}


def _read_regions(table: FileTable, raw: object) -> list[RegionSettings]:
    """Return all valid regions; append faults for invalid regions and for conflicts between regions."""
    if not raw or not isinstance(raw, list) or not all(isinstance(region, dict) for region in raw):
        table.faults.append(f"regions{table.where} must be one or more tables that begin with [[regions]].")
        return []
    read = [_read_region(table, region, f"regions[{number}].") for number, region in enumerate(raw, start=1)]
    regions = [region for region in read if region is not None]
    for code in _repeated(region.code for region in regions):
        table.faults.append(f"regions{table.where} has the code {code} more than once; codes must be unique.")
    if shared := _repeated(addresses([region.fleet for region in regions])):
        found = shared[0] if len(shared) == 1 else f"{shared[0]} and {len(shared) - 1} more addresses"
        table.faults.append(f"regions{table.where} use {found} more than once; each must belong to one server.")
    for region, other in combinations(regions, 2):
        if isinstance(region.fleet, AgonesFleetSettings) and region.fleet.shares_servers(other.fleet):
            problem = f"use the Fleet {region.fleet.fleet} more than once: {region.code} and {other.code}"
            table.faults.append(f"regions{table.where} {problem}; each must belong to one region.")
    return regions


def _read_region(table: FileTable, raw: Mapping[str, object], inside: str) -> RegionSettings | None:
    before = len(table.faults)
    values = table.read(REGION, raw, inside=inside, ignored=("fleet",))
    fleet = raw.get("fleet")
    values["fleet"] = read_fleet(table, fleet if isinstance(fleet, dict) else {}, f"{inside}fleet.")
    if len(table.faults) > before:
        return None
    is_simulated = isinstance(fleet, dict) and fleet.get("kind") == "process" and "command" not in fleet
    values.setdefault("name", values["code"])
    values.setdefault("location", values["name"])
    values.setdefault("allows_simulator", is_simulated)
    return msgspec.convert(values, RegionSettings)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
