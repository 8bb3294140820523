"""Define and read the settings of each kind of fleet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from matchpod.settings import rules
from matchpod.settings.file_table import FileTable, Values, quoted
from matchpod.settings.secret import Secret
from matchpod.settings.table import setting, table_of

EVERY_ADDRESS = "0.0.0.0"
"""The address on which a server listens on all addresses of its machine. A port on it conflicts with the same port on
any address."""

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
"""Default command of a process fleet. The program reads its RCON password from its environment."""

CFG_PLACEHOLDER = "{cfg}"
GAME_PLACEHOLDER = "{game}"
TV_PLACEHOLDER = "{tv_port}"

AGONES_MATCHES = 500
"""Number of matches per Agones fleet for which connections are reserved."""


class ProcessFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="process"):
    """A fleet of server processes on this machine, one process per port."""

    ports: tuple[int, ...] = setting(
        rules.port_range(),
        "The first and last port of the servers; the number of ports limits the number of concurrent matches.",
        is_required=True,
    )
    command: tuple[str, ...] = setting(
        rules.command(),
        "The program started for each match and its arguments; no shell is involved. An argument that is empty "
        "after its placeholders are replaced is dropped together with the option before it.",
        fallback="the simulator",
    )
    host: str = setting(rules.ip_address(), "The address that servers listen on.", default="127.0.0.1")
    public_ip: str = setting(
        rules.ip_address(), "The address that players connect to. Required if `host` is `0.0.0.0`.", fallback="`host`"
    )
    environment: Mapping[str, str] = setting(
        rules.variables(), "Additional environment variables for servers.", fallback="none", unset={}
    )
    working_dir: Path | None = setting(
        rules.path(), "The working directory of servers.", fallback="the working directory of the service"
    )
    install_dir: Path | None = setting(
        rules.path(),
        "A shared, read-only installation of the game. Each server runs in a folder of its own, `{game}`, with links "
        "to the installation. The folder is removed when the server has ended.",
        fallback="none: all servers write into the same folder",
    )
    instances_dir: Path | None = setting(
        rules.path(),
        "The folder in which the folders of servers are created. The user of the servers must be able to write to it. "
        "Required with `install_dir`.",
        fallback="none",
    )
    addons: tuple[str, ...] = setting(
        rules.addons(), "Addons that `install_dir` must have; without them no server starts.", fallback="none", unset=()
    )
    steamclient: Path | None = setting(
        rules.path(),
        "`steamclient.so` of SteamCMD, for servers with a folder of their own.",
        fallback="`~/.steam/sdk64/steamclient.so`, else below `steamcmd/linux64` in `install_dir` or next to it",
    )
    tv_ports: tuple[int, ...] = setting(
        rules.port_range(),
        "The first and last port of GOTV, one per server; `{tv_port}` is the port of a server.",
        fallback="none",
        unset=(),
    )
    user: str | None = setting(
        rules.user(),
        "The user that servers run as. The service must be root to start them as another user.",
        fallback="the user of the service",
    )
    cfg_dir: Path | None = setting(
        rules.path(),
        "The game's folder for `.cfg` files. For each server, a file with its secrets is written there, which "
        "only the user of the server can read; `{cfg}` is the name of the file.",
        fallback="none",
    )
    steam_tokens: tuple[Secret, ...] = setting(
        rules.steam_tokens(),
        "Game server login tokens (GSLT), one per port, for the file in `cfg_dir`.",
        fallback="none",
        is_secret=True,
        unset=(),
    )
    memory_mb: int | None = setting(
        rules.whole_number(16, 1_048_576), "The address space limit of a server, in MiB.", fallback="no limit"
    )

    @property
    def capacity(self) -> int:
        """Maximum number of matches that run at the same time."""
        return len(self.ports)

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory_mb is None else self.memory_mb * 1024 * 1024


class StaticServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A game server that the service does not start."""

    address: str = setting(rules.address(), "The address of the game and of its console.", is_required=True)
    rcon_password: Secret = setting(
        rules.password(), "The RCON password of the server.", is_required=True, is_secret=True
    )


class StaticFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="static"):
    """A fleet of servers that are already running. Each server is used for one match after another."""

    servers: tuple[StaticServerSettings, ...]

    @property
    def capacity(self) -> int:
        """Maximum number of matches that run at the same time."""
        return len(self.servers)


class AgonesFleetSettings(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="agones"):
    """A fleet that Agones manages in a Kubernetes cluster."""

    fleet: str = setting(
        rules.kubernetes_name(), "The name of the Agones `Fleet` whose servers are used.", is_required=True
    )
    secret_file: Path = setting(
        rules.path(),
        "The file with the secret of the fleet, from which the first RCON password of each server is derived. "
        "The servers mount the same secret.",
        is_required=True,
    )
    previous_secret_file: Path | None = setting(
        rules.path(),
        "The file with the previous secret of the fleet, which servers may still have while the secret is being "
        "replaced. The file may be missing or empty, so this setting can always stay set.",
        fallback="none",
    )
    kubeconfig: Path | None = setting(
        rules.path(),
        "The file that says how to reach the cluster.",
        fallback="the service account of the pod that the service runs in",
    )
    context: str | None = setting(
        rules.text(), "The context in `kubeconfig`.", fallback="the current context of `kubeconfig`"
    )
    namespace: str | None = setting(
        rules.kubernetes_name(),
        "The namespace of the fleet.",
        fallback="the namespace of the context or of the pod, else `default`",
    )
    selector: Mapping[str, str] = setting(
        rules.labels(), "Labels that a server must have besides the label of its fleet.", fallback="none", unset={}
    )
    owner: str | None = setting(
        rules.kubernetes_name(),
        "The owner label of servers; servers with another owner are never touched. Set it only to continue with the "
        "servers of an installation whose database was replaced. Two installations must never have the same owner.",
        fallback="the id of the installation, which is created with its database",
    )
    address_types: tuple[str, ...] = setting(
        rules.address_types(),
        "The types of node addresses that players may connect to; the first type that a node has is used.",
        default="ExternalIP, ExternalDNS, InternalIP",
    )
    console_address_types: tuple[str, ...] = setting(
        rules.address_types(),
        "The same for RCON. Use `PodIP` if the service runs in the same cluster, so that a network policy can "
        "allow only the service.",
        fallback="`address_types`",
        unset=(),
    )
    port_name: str = setting(
        rules.text(), "The name of the port in the `Fleet`; a server without it uses its first port.", default="game"
    )
    pending_s: int | None = setting(
        rules.whole_number(0, 86_400),
        "How long a match waits for a server of this fleet, in seconds.",
        fallback="`MATCHPOD_PENDING_S`",
    )

    @property
    def capacity(self) -> int:
        """Number of matches for which connections are reserved, because the fleet may grow at any time."""
        return AGONES_MATCHES

    def shares_servers(self, other: FleetSettings) -> bool:
        """True if both fleets may use the same server: same Fleet and cluster, and no common label has two values."""
        if not isinstance(other, AgonesFleetSettings):
            return False
        if any(self.selector[label] != other.selector[label] for label in self.selector.keys() & other.selector.keys()):
            return False
        return all(getattr(self, key) == getattr(other, key) for key in ("fleet", "namespace", "kubeconfig", "context"))


PROCESS_FLEET = table_of(ProcessFleetSettings)
STATIC_SERVER = table_of(StaticServerSettings)
AGONES_FLEET = table_of(AgonesFleetSettings)

FleetSettings = ProcessFleetSettings | StaticFleetSettings | AgonesFleetSettings


def read_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> FleetSettings | None:
    """Read the settings of a fleet; return None if there was a fault."""
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
    """Return the addresses of the servers of all fleets. An address that occurs twice is a conflict."""
    started = [
        (fleet.host, port)
        for fleet in fleets
        if isinstance(fleet, ProcessFleetSettings)
        for port in (*fleet.ports, *fleet.tv_ports)
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
        checks = (_cfg_faults, _instance_faults, _tv_faults)
        table.faults += [f"{inside}{fault}" for check in checks for fault in check(values, command, table.where)]
    if len(table.faults) > before:
        return None
    values["command"] = tuple(argument.replace("{python}", sys.executable) for argument in command)
    fleet = msgspec.convert({**values, "kind": "process"}, ProcessFleetSettings)
    return fleet if "public_ip" in values else msgspec.structs.replace(fleet, public_ip=fleet.host)


def _cfg_faults(values: Values, command: tuple[str, ...], where: str) -> Iterator[str]:
    """Yield the faults of `cfg_dir`, `steam_tokens` and the placeholder for the file with a server's secrets."""
    uses_cfg = _uses(CFG_PLACEHOLDER, command)
    if uses_cfg and "cfg_dir" not in values and "install_dir" not in values:
        yield f"cfg_dir{where} is missing; the command has the placeholder {CFG_PLACEHOLDER}."
    for key in ("cfg_dir", "steam_tokens"):
        if key in values and not uses_cfg:
            yield f"{key}{where} has no effect; the command must contain the placeholder {CFG_PLACEHOLDER}."
    tokens, ports = values.get("steam_tokens"), values.get("ports")
    if isinstance(tokens, tuple) and isinstance(ports, tuple) and len(tokens) != len(ports):
        yield f"steam_tokens{where} has {len(tokens)} tokens for {len(ports)} ports; every port needs its own."


def _instance_faults(values: Values, command: tuple[str, ...], where: str) -> Iterator[str]:
    """Yield the faults of `install_dir`, and of what requires it or has no effect with it."""
    uses_game = _uses(GAME_PLACEHOLDER, command)
    if "install_dir" not in values:
        if uses_game:
            yield f"install_dir{where} is missing; the command has the placeholder {GAME_PLACEHOLDER}."
        for key in ("instances_dir", "addons", "steamclient"):
            if key in values:
                yield f"{key}{where} has no effect without install_dir."
        return
    if "instances_dir" not in values:
        yield f"instances_dir{where} is missing; it must be the folder in which the folders of servers are created."
    if not uses_game:
        yield f"install_dir{where} has no effect; the command must contain the placeholder {GAME_PLACEHOLDER}."
    for key in ("cfg_dir", "working_dir"):
        if key in values:
            yield f"{key}{where} has no effect with install_dir, because every server has a folder of its own."


def _tv_faults(values: Values, command: tuple[str, ...], where: str) -> Iterator[str]:
    """Yield the faults of `tv_ports`: it needs the placeholder {tv_port} in the command, and a port per server."""
    if _uses(TV_PLACEHOLDER, command) != ("tv_ports" in values):
        yield f"tv_ports{where} and the placeholder {TV_PLACEHOLDER} in the command need each other."
    tv_ports, ports = values.get("tv_ports"), values.get("ports")
    if isinstance(tv_ports, tuple) and isinstance(ports, tuple) and len(tv_ports) != len(ports):
        yield f"tv_ports{where} has {len(tv_ports)} ports for {len(ports)} servers; every server needs its own."


def _uses(placeholder: str, command: tuple[str, ...]) -> bool:
    return any(placeholder in argument for argument in command)


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
    return msgspec.convert({"servers": read, "kind": "static"}, StaticFleetSettings)


def _read_agones_fleet(table: FileTable, raw: Mapping[str, object], inside: str) -> AgonesFleetSettings | None:
    before = len(table.faults)
    values = table.read(AGONES_FLEET, raw, inside=inside, ignored=("kind",))
    if "context" in values and "kubeconfig" not in raw:
        table.faults.append(f"{inside}context{table.where} has no effect without kubeconfig.")
    if len(table.faults) > before:
        return None
    return msgspec.convert({**values, "kind": "agones"}, AgonesFleetSettings)


READERS: Mapping[str, Callable[[FileTable, Mapping[str, object], str], FleetSettings | None]] = {
    "process": _read_process_fleet,
    "static": _read_static_fleet,
    "agones": _read_agones_fleet,
}
"""Functions that read the settings of a fleet, by kind of fleet."""
