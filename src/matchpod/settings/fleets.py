"""Define and read the settings of fleets: for each kind of fleet its values, its table and its reader."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from matchpod.settings import rules
from matchpod.settings.file_table import FileTable, Values, quoted
from matchpod.settings.secret import Secret
from matchpod.settings.table import Setting

EVERY_ADDRESS = "0.0.0.0"
"""A server with this host listens on all addresses of a machine, so its port conflicts with the same port on any."""

SIMULATOR_COMMAND = (
    *("{python}", "-m", "matchpod", "simulate", "-port", "{port}", "-ip", "{ip}", "+map", "{map}"),
    *(
        "+game_type",
        "{game_type}",
        "+game_mode",
        "{game_mode}",
        "--players",
        "{players}",
        "--speed",
        "{speed}",
        "--seed",
        "{server_id}",
        "--quiet",
    ),
)
"""The command of a process fleet that does not define its own. It finds its RCON password in its environment."""

CFG_PLACEHOLDER = "{cfg}"

AGONES_MATCHES = 500
"""Connections are reserved for this many matches on a fleet of Agones."""

PROCESS_FLEET = (
    Setting(
        key="ports",
        rule=rules.port_range(),
        is_required=True,
        meaning="The first and last port of the servers; the number of ports limits the number of concurrent matches.",
    ),
    Setting(
        key="command",
        rule=rules.command(),
        fallback="the simulator",
        meaning="The program started for each match and its arguments; no shell is involved. An argument that is empty "
        "after its placeholders are replaced is dropped together with the option before it.",
    ),
    Setting(key="host", rule=rules.ip_address(), default="127.0.0.1", meaning="The address that servers listen on."),
    Setting(
        key="public_ip",
        rule=rules.ip_address(),
        fallback="`host`",
        meaning="The address that players connect to. Required if `host` is `0.0.0.0`.",
    ),
    Setting(
        key="environment",
        rule=rules.variables(),
        fallback="none",
        meaning="Additional environment variables for servers.",
    ),
    Setting(
        key="working_dir",
        rule=rules.path(),
        fallback="the working directory of the service",
        meaning="The working directory of servers.",
    ),
    Setting(
        key="user",
        rule=rules.user(),
        fallback="the user of the service",
        meaning="The user that servers run as. The service must be root to start them as another user.",
    ),
    Setting(
        key="cfg_dir",
        rule=rules.path(),
        fallback="none",
        meaning="The game's folder for `.cfg` files. For each server a file with its secrets is written there, which "
        "only its user can read; `{cfg}` is its name.",
    ),
    Setting(
        key="steam_tokens",
        rule=rules.steam_tokens(),
        fallback="none",
        is_secret=True,
        meaning="Game server login tokens (GSLT), one per port, for the file in `cfg_dir`.",
    ),
    Setting(
        key="memory_mb",
        rule=rules.whole_number(16, 1_048_576),
        fallback="no limit",
        meaning="The limit of the address space of one server, in MiB.",
    ),
)

STATIC_SERVER = (
    Setting(key="address", rule=rules.address(), is_required=True, meaning="The address of its game and its console."),
    Setting(key="rcon_password", rule=rules.password(), is_required=True, is_secret=True, meaning="Its RCON password."),
)


AGONES_FLEET = (
    Setting(
        key="fleet",
        rule=rules.kubernetes_name(),
        is_required=True,
        meaning="The name of the Agones `Fleet` whose servers are used.",
    ),
    Setting(
        key="secret_file",
        rule=rules.path(),
        is_required=True,
        meaning="The file with the secret of the fleet, from which the first RCON password of each server is derived. "
        "The servers mount the same secret.",
    ),
    Setting(
        key="previous_secret_file",
        rule=rules.path(),
        fallback="none",
        meaning="The file with the secret that servers may still have while it is being replaced. It may be missing or "
        "empty, so it can stay set at all times.",
    ),
    Setting(
        key="kubeconfig",
        rule=rules.path(),
        fallback="the service account of the pod that the service runs in",
        meaning="The file that says how to reach the cluster.",
    ),
    Setting(
        key="context",
        rule=rules.text(),
        fallback="the current context of `kubeconfig`",
        meaning="The context in `kubeconfig`.",
    ),
    Setting(
        key="namespace",
        rule=rules.kubernetes_name(),
        fallback="the namespace of the context or of the pod, else `default`",
        meaning="The namespace of the fleet.",
    ),
    Setting(
        key="selector",
        rule=rules.labels(),
        fallback="none",
        meaning="Labels that a server must have besides that of its fleet.",
    ),
    Setting(
        key="owner",
        rule=rules.kubernetes_name(),
        fallback="the id of the installation, which is made with its database",
        meaning="The owner that servers are labelled with; servers with another one are never touched. Set it only to "
        "go on with the servers of an installation whose database was replaced. Never set the same one twice.",
    ),
    Setting(
        key="address_types",
        rule=rules.address_types(),
        default="ExternalIP, ExternalDNS, InternalIP",
        meaning="Which address of a node players connect to: the first of these that it has.",
    ),
    Setting(
        key="console_address_types",
        rule=rules.address_types(),
        fallback="`address_types`",
        meaning="The same for RCON. Use `PodIP` if the service runs in the same cluster, so that a network policy can "
        "admit it and nothing else.",
    ),
    Setting(
        key="port_name",
        rule=rules.text(),
        default="game",
        meaning="The name of the port in the `Fleet`; a server without it uses its first port.",
    ),
    Setting(
        key="pending_s",
        rule=rules.whole_number(0, 86_400),
        fallback="`MATCHPOD_PENDING_S`",
        meaning="How long a match waits for a server of this fleet, in seconds.",
    ),
)


class ProcessFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="process"):
    """A fleet of local processes, one per port."""

    command: tuple[str, ...]
    ports: tuple[int, ...]
    host: str
    public_ip: str
    environment: Mapping[str, str]
    working_dir: Path | None
    memory_mb: int | None
    user: str | None = None
    cfg_dir: Path | None = None
    steam_tokens: tuple[Secret, ...] = ()

    @property
    def capacity(self) -> int:
        """The number of matches it can run at once."""
        return len(self.ports)

    @property
    def memory_bytes(self) -> int | None:
        """The memory limit in bytes."""
        return None if self.memory_mb is None else self.memory_mb * 1024 * 1024


class StaticServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A server that is not started by this service."""

    host: str
    port: int
    rcon_password: Secret

    @property
    def address(self) -> str:
        """Host and port as one text."""
        return f"{self.host}:{self.port}"


class StaticFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="static"):
    """A fleet of servers that are already running; each is used by one match after another."""

    servers: tuple[StaticServerSettings, ...]

    @property
    def capacity(self) -> int:
        """The number of matches it can run at once."""
        return len(self.servers)


class AgonesFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="agones"):
    """A fleet on Kubernetes, which Agones manages."""

    fleet: str
    secret_file: Path
    previous_secret_file: Path | None
    kubeconfig: Path | None
    context: str | None
    namespace: str | None
    selector: Mapping[str, str]
    owner: str | None
    address_types: tuple[str, ...]
    console_address_types: tuple[str, ...]
    port_name: str
    pending_s: int | None

    @property
    def capacity(self) -> int:
        """The number of matches for which connections are reserved: the fleet may grow at any time."""
        return AGONES_MATCHES


FleetSettings = ProcessFleetSettings | StaticFleetSettings | AgonesFleetSettings


def read_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> FleetSettings | None:
    """Read the settings of a fleet; return None after a fault."""
    kind = raw.get("kind")
    reader = READERS.get(kind) if isinstance(kind, str) else None
    if reader is not None:
        return reader(table, raw, inside)
    problem = f"is {quoted(kind)}" if "kind" in raw else "is missing"
    table.faults.append(f"{inside}kind{table.where} {problem}; it must be {_one_of(READERS)}.")
    return None


def _one_of(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


def addresses(fleets: list[FleetSettings]) -> list[str]:
    """Return the addresses of the servers of all fleets; two equal ones are a conflict."""
    started = [
        (fleet.host, port) for fleet in fleets if isinstance(fleet, ProcessFleetSettings) for port in fleet.ports
    ]
    everywhere = {port for host, port in started if host == EVERY_ADDRESS}
    static = [server.address for fleet in fleets if isinstance(fleet, StaticFleetSettings) for server in fleet.servers]
    return [*(f"{EVERY_ADDRESS if port in everywhere else host}:{port}" for host, port in started), *static]


def _read_process_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> ProcessFleetSettings | None:
    before = len(table.faults)
    values = table.read(PROCESS_FLEET, raw, inside=inside, ignored=("kind",))
    if values.get("host") == EVERY_ADDRESS and "public_ip" not in raw:
        table.faults.append(f"{inside}public_ip{table.where} is missing; players cannot connect to {EVERY_ADDRESS}.")
    command = msgspec.convert(values.get("command", SIMULATOR_COMMAND), tuple[str, ...])
    if "command" in values or "command" not in raw:
        table.faults += [f"{inside}{fault}" for fault in _cfg_faults(values, command, table.where)]
    if len(table.faults) > before:
        return None
    values["command"] = tuple(argument.replace("{python}", sys.executable) for argument in command)
    unset: Values = {"public_ip": values["host"], "environment": {}, "working_dir": None, "memory_mb": None}
    return msgspec.convert({**unset, **values, "kind": "process"}, ProcessFleetSettings)


def _cfg_faults(values: Values, command: tuple[str, ...], where: str) -> Iterator[str]:
    """Check that the file with the secrets of a server is both written and executed."""
    uses_cfg = any(CFG_PLACEHOLDER in argument for argument in command)
    if uses_cfg and "cfg_dir" not in values:
        yield f"cfg_dir{where} is missing; the command has the placeholder {CFG_PLACEHOLDER}."
    for key in ("cfg_dir", "steam_tokens"):
        if key in values and not uses_cfg:
            yield f"{key}{where} has no effect; the command must contain the placeholder {CFG_PLACEHOLDER}."
    tokens, ports = values.get("steam_tokens"), values.get("ports")
    if isinstance(tokens, tuple) and isinstance(ports, tuple) and len(tokens) != len(ports):
        yield f"steam_tokens{where} has {len(tokens)} tokens for {len(ports)} ports; every port needs its own."


def _read_static_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> StaticFleetSettings | None:
    before = len(table.faults)
    table.read((), raw, inside=inside, ignored=("kind", "servers"))
    listed = raw.get("servers")
    if not listed or not isinstance(listed, list) or not all(isinstance(server, dict) for server in listed):
        sample = '[{ address = "203.0.113.7:27015", rcon_password = "…" }]'
        table.faults.append(f"{inside}servers{table.where} must be a list like {sample}.")
        return None
    read = [
        table.read(STATIC_SERVER, server, inside=f"{inside}servers[{number}].")
        for number, server in enumerate(listed, start=1)
    ]
    if len(table.faults) > before:
        return None
    return StaticFleetSettings(servers=tuple(_static_server(values) for values in read))


def _read_agones_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> AgonesFleetSettings | None:
    before = len(table.faults)
    values = table.read(AGONES_FLEET, raw, inside=inside, ignored=("kind",))
    if "context" in values and "kubeconfig" not in raw:
        table.faults.append(f"{inside}context{table.where} has no effect without kubeconfig.")
    if len(table.faults) > before:
        return None
    unset: Values = dict.fromkeys(("previous_secret_file", "kubeconfig", "context", "namespace", "owner", "pending_s"))
    unset |= {"selector": {}, "console_address_types": ()}
    return msgspec.convert({**unset, **values, "kind": "agones"}, AgonesFleetSettings)


def _static_server(values: Values) -> StaticServerSettings:
    host, port = msgspec.convert(values["address"], tuple[str, int])
    return msgspec.convert({"host": host, "port": port, "rcon_password": values["rcon_password"]}, StaticServerSettings)


READERS: Mapping[str, Callable[[FileTable, Mapping[str, object], str], FleetSettings | None]] = {
    "process": _read_process_fleet,
    "static": _read_static_fleet,
    "agones": _read_agones_fleet,
}
"""The reader of each kind of fleet."""
