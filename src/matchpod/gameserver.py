"""Run a game server on Kubernetes as Agones expects it: the entry point of a game server image.

It reads name and ports from the Agones SDK, starts the game, reports health while the game runs and ready when its map
is loaded, ends it on SIGTERM, and exits when the game does. As process 1 of a container it also reaps orphans.
One file, standard library only, Python 3.9 or newer: it must run in images without Matchpod and its dependencies.
After it has reported ready it does not use RCON, except for one `quit`: the service changes the password.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, BinaryIO, NamedTuple, TypeVar

PASSWORD_VARIABLE = "MATCHPOD_RCON_PASSWORD"
SECRET_VARIABLE = "MATCHPOD_FLEET_SECRET_FILE"
MIN_SECRET_BYTES = 16  # a shorter secret could be found from one password that was seen on the network
MAX_BYTES = 1024 * 1024  # of an answer of the SDK or of RCON; real ones have a few KB
HEALTH_S = 2.0  # less than half of the default period of Agones
REQUEST_S = 3.0  # limit of a request to the SDK, which answers in milliseconds
RETRY_S = 1.0
PROGRESS_S = 10.0  # interval of log lines while waiting
RCON_S = 5.0  # limit of an answer over RCON; a server that loads a map gives none
REFUSED_S = 10.0  # pause after a rejected password: CS2 bans an address after 5 of them within 30 s
MAX_REFUSED = 4  # more than one, because RCON may be open before the game has executed the file with the password
QUIT_SHARE = 0.4  # of the grace period: the time after `quit`; the rest is for SIGTERM

REPORTED = frozenset({"RequestReady", "Ready", "Reserved", "Allocated"})
"""States of a GameServer that has reported ready. Another report would free a server while a match is played on it."""

LOADED_MAP = re.compile(r"^loaded spawngroup\( *\d+\) *: *SV: *\[\d+: (\S+) \| main lump \| mapload\]", re.MULTILINE)
"""The line of `status` with the loaded map; the other spawn groups of a map end in `point_prefab`."""

_ENDING = frozenset({signal.SIGTERM, signal.SIGINT})
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_BARE = re.compile(r"[^\s\"=\\]+")
_HEADER = struct.Struct("<iii")
_T = TypeVar("_T")

HELP = f"""\
usage: matchpod gameserver [options] -- COMMAND...

Run the game server COMMAND under Agones: report its health, report ready when RCON answers and the map is loaded, end
it on SIGTERM, and exit when it does. Starts it when the Agones SDK answers, since only the SDK knows its port.

  --secret-file FILE       the secret that the fleet shares with the service (default: {SECRET_VARIABLE})
  --cfg-dir DIR            the game's folder for .cfg files: a file that sets rcon_password is written there
  --ip ADDRESS             address that the game listens on (default 0.0.0.0)
  --port-name NAME         the game's port in the GameServer (default: game, else the first one)
  --sdk-timeout SECONDS    how long to wait for the Agones SDK and the ports (default 120)
  --start-timeout SECONDS  how long the game may take until its map is loaded (default 600)
  --grace-period SECONDS   how long the game may take to end (default 25); terminationGracePeriodSeconds must be longer

In COMMAND, {{port}} is the port of the game and of RCON, {{ip}} the address to listen on, {{name}} the name of the
GameServer, and {{cfg}} the name of the file in --cfg-dir, for `+exec {{cfg}}`.
The RCON password is derived from the secret and the name of the GameServer. The game finds it in its variable
{PASSWORD_VARIABLE} and in the file in --cfg-dir. The port of the SDK is AGONES_SDK_HTTP_PORT (default 9358).

Exit codes: 0 ended on request, 1 failure, 2 invalid arguments; otherwise that of the game, 128 + N after signal N.
"""


class FatalError(Exception):
    """The game cannot run; the message is for the operator."""


class UsageError(FatalError):
    """Invalid arguments."""


class Options(NamedTuple):
    """The options by name, with their defaults; times are in seconds."""

    secret_file: str = ""
    cfg_dir: str = ""
    ip: str = "0.0.0.0"
    port_name: str = ""
    sdk_timeout: float = 120.0
    start_timeout: float = 600.0
    grace_period: float = 25.0


class GameServer(NamedTuple):
    """What Agones says about this server."""

    name: str
    state: str
    ports: dict[str, int]


def parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Options, list[str]]:
    """Return the options and the command; raise UsageError if they are invalid."""
    values: dict[str, Any] = {"secret_file": environment.get(SECRET_VARIABLE, "")}
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            break
        name, is_joined, value = argument.partition("=")
        field = name[2:].replace("-", "_")
        if not name.startswith("--") or field not in Options._fields:
            raise UsageError(f"unknown option `{name}`; --help lists all options, and the command follows after --")
        value = value if is_joined else next(rest, "--")
        if value in ("", "--"):
            raise UsageError(f"{name} needs a value")
        is_time = isinstance(Options._field_defaults[field], float)
        if is_time and (not re.fullmatch(r"[0-9]{1,5}(\.[0-9]{1,3})?", value) or float(value) == 0):
            raise UsageError(f"{name} must be a number of seconds above 0, not `{value}`")
        values[field] = float(value) if is_time else value
    options, command = Options(**values), list(rest)
    used = {name for argument in command for name in _PLACEHOLDER.findall(argument)}
    if not command:
        raise UsageError("the command of the game server is missing; put it after --, as in: -- ./cs2 -port {port}")
    if not options.secret_file:
        raise UsageError(f"the secret of the fleet is missing; set --secret-file or {SECRET_VARIABLE} to its file")
    for name in sorted(used - {"port", "ip", "name", "cfg"}):
        raise UsageError(f"the command has the unknown placeholder {{{name}}}; --help lists all placeholders")
    if ("cfg" in used) != bool(options.cfg_dir):
        raise UsageError("--cfg-dir and the placeholder {cfg} in the command need each other")
    return options, command


def read_secret(path: str) -> bytes:
    """Read the secret of the fleet, without the line break that editors add."""
    try:
        with open(path, "rb") as file:
            secret = file.read(MAX_BYTES).strip()
    except OSError as exc:
        raise FatalError(f"the secret of the fleet cannot be read from {path}: {exc.strerror}") from exc
    if len(secret) < MIN_SECRET_BYTES:
        raise FatalError(f"the secret in {path} has {len(secret)} bytes; it needs {MIN_SECRET_BYTES} or more")
    return secret


def bootstrap_password(secret: bytes, name: str) -> str:
    """Return the first RCON password of a server; the service computes the same."""
    return base64.urlsafe_b64encode(hmac.digest(secret, name.encode(), "sha256")).rstrip(b"=").decode()


def write_cfg(folder: str, name: str, password: str) -> str:
    """Write a file that sets the password and that only this user can read; return its path."""
    path = os.path.join(folder, f"matchpod_{name}.cfg")
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        with open(path, "x", opener=lambda new, flags: os.open(new, flags, 0o600)) as file:
            file.write(f'rcon_password "{password}"\n')
    except OSError as exc:
        raise FatalError(f"the file with the RCON password cannot be written into {folder}: {exc.strerror}") from exc
    return path


def parse_gameserver(body: bytes) -> GameServer:
    """Read the answer to GET /gameserver; raise OSError if it is not usable, or not yet."""
    try:
        answer = json.loads(body)
        status = answer.get("status") or {}
        ports = {str(port["name"]): int(port["port"]) for port in status.get("ports") or ()}
        server = GameServer(str(answer["object_meta"]["name"]), str(status.get("state", "")), ports)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise OSError(f"the Agones SDK did not answer with a GameServer: {body[:200]!r}") from exc
    if not ports:
        raise OSError(f"the GameServer {server.name} has no ports; list them in its spec.ports")
    return server


def choose_port(server: GameServer, name: str) -> int:
    """Return the port with this name. Agones splits a port with the protocol TCPUDP into NAME-udp and NAME-tcp."""
    for suffix in ("-udp", "", "-tcp"):
        if f"{name or 'game'}{suffix}" in server.ports:
            return server.ports[f"{name or 'game'}{suffix}"]
    if not name:
        return next(iter(server.ports.values()))
    raise FatalError(f"the GameServer {server.name} has no port `{name}`; it has {', '.join(sorted(server.ports))}")


def expand_command(template: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return the arguments of a command with their placeholders replaced."""
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], argument) for argument in template]


def exit_code(ended: int, *, is_requested: bool) -> int:
    """Return our exit code after the game ended with this code, or with -N by signal N. 0 only if it was to end."""
    if is_requested and ended != -signal.SIGKILL:
        return 0
    return 128 - ended if ended < 0 else ended or 1


def log(level: str, message: str, **fields: object) -> None:
    """Write a line to standard error, in the format of the service."""
    now_s = time.time()
    line = f"{time.strftime('%H:%M:%S', time.gmtime(now_s))}.{int(now_s % 1 * 1000):03d} {level:<5} {message}"
    texts = {name: str(value) for name, value in fields.items()}
    words = [f"{name}={text if _BARE.fullmatch(text) else json.dumps(text)}" for name, text in texts.items()]
    # Not through `sys.stderr`, whose lock a thread may hold when the process exits.
    with suppress(OSError):
        os.write(2, ("  ".join(filter(None, (line, " ".join(words)))) + "\n").encode("utf-8", "replace"))


def retry(attempt: Callable[[], _T], what: str, timeout_s: float) -> _T:
    """Call until it returns without OSError, and log the progress; raise FatalError if time is up."""
    began_s, reported_s = time.monotonic(), -PROGRESS_S
    while True:
        try:
            return attempt()
        except OSError as exc:
            waited_s = time.monotonic() - began_s
            if waited_s >= timeout_s:
                raise FatalError(f"waited {timeout_s:g} s for {what}: {exc}") from exc
            if waited_s - reported_s >= PROGRESS_S:
                reported_s = waited_s
                log("INFO", f"waiting for {what}", waited_s=round(waited_s), reason=exc)
        time.sleep(RETRY_S)


def request_sdk(method: str, path: str) -> bytes:
    """Send a request to the Agones SDK of this pod and return the body of the answer; raise OSError if that fails."""
    address = f"127.0.0.1:{os.environ.get('AGONES_SDK_HTTP_PORT', '9358')}"
    try:
        with closing(http.client.HTTPConnection(address, timeout=REQUEST_S)) as connection:
            connection.request(method, path, "{}" if method == "POST" else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            body = response.read(MAX_BYTES)
    except (OSError, http.client.HTTPException) as exc:
        raise OSError(f"{method} {path} at {address} failed: {str(exc) or type(exc).__name__}") from exc
    if response.status != 200:
        raise OSError(f"{method} {path} at {address} was answered {response.status}")
    return body


def read_gameserver() -> GameServer:
    """Ask the SDK about this server; raise OSError if that fails."""
    return parse_gameserver(request_sdk("GET", "/gameserver"))


def ask(address: tuple[str, int], password: str, command: str, timeout_s: float) -> str:
    """Run a console command and return its output; raise OSError if that fails, PermissionError for the password."""
    with socket.create_connection(address, timeout_s) as connection, connection.makefile("rb") as stream:
        connection.sendall(_packet(1, 3, password))
        while (answer := _read_packet(stream))[1] != 2:
            pass
        if answer[0] == -1:
            raise PermissionError("RCON rejected the password")
        connection.sendall(_packet(2, 2, command) + _packet(3, 0, ""))
        parts = []
        # The output ends with the mirrored empty packet; without one, when the game closes or stops sending.
        with suppress(OSError):
            while (answer := _read_packet(stream))[0] != 3:
                parts.append(answer[2])
        return b"".join(parts).decode("utf-8", "replace")


def _packet(number: int, kind: int, body: str) -> bytes:
    return _HEADER.pack(len(body.encode()) + 10, number, kind) + body.encode() + b"\0\0"


def _read_packet(stream: BinaryIO) -> tuple[int, int, bytes]:
    head = stream.read(_HEADER.size)
    if len(head) < _HEADER.size:
        raise OSError("the game closed the connection")
    size, number, kind = _HEADER.unpack(head)
    if not 10 <= size <= MAX_BYTES:
        raise OSError("the port does not speak RCON")
    return number, kind, stream.read(size - 8)[:-2]


class Game:
    """The game and what is known about it."""

    def __init__(self, options: Options, address: tuple[str, int], password: str) -> None:
        self._options, self._address, self._password = options, address, password
        self._refused = 0
        self._is_authenticated = self._has_failed = self._has_reported = False

    def run(self, command: list[str]) -> int:
        """Run the game to its end; return our exit code."""
        # Blocked signals wait until `sigtimedwait` returns them; threads inherit this, the game does not.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_ENDING})
        environment = {**os.environ, PASSWORD_VARIABLE: self._password}
        defaults: dict[str, Any] = {"setsigmask": (), "setsigdef": (signal.SIGPIPE, signal.SIGXFSZ)}
        files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        try:
            pid = os.posix_spawnp(command[0], command, environment, file_actions=files, setpgroup=0, **defaults)
        except OSError as exc:
            raise FatalError(f"the program `{command[0]}` cannot be started: {exc.strerror}") from exc
        log("INFO", "game server started", pid=pid, port=self._address[1])
        for report in (self._report_health, self._report_ready):
            threading.Thread(target=report, daemon=True).start()
        ended = self._wait(pid, float("inf"), _ENDING)
        is_requested = ended is None
        ended = self._end(pid) if ended is None else ended
        code = 1 if self._has_failed else exit_code(ended, is_requested=is_requested)
        log("ERROR" if code else "INFO", "game server ended", exit_code=ended)
        return code

    def _wait(self, pid: int, until_s: float, interrupts: frozenset[int] = frozenset()) -> int | None:
        """Reap all children until the game ends, and return its exit code; None if interrupted or if time is up."""
        while True:
            reaped, status = os.waitpid(-1, os.WNOHANG)
            if reaped == pid:
                return os.waitstatus_to_exitcode(status)
            left_s = until_s - time.monotonic()
            received = None if reaped else signal.sigtimedwait({signal.SIGCHLD, *_ENDING}, max(0, min(left_s, 3600)))
            if left_s <= 0 or (received and received.si_signo in interrupts):
                return None

    def _end(self, pid: int) -> int:
        """End the game with `quit`, then SIGTERM, then SIGKILL; return its exit code."""
        grace_s, began_s, ended = self._options.grace_period, time.monotonic(), None
        log("INFO", "ending game server", grace_s=grace_s)
        if self._is_authenticated:
            # The service has usually changed the password since: a single attempt does not lead to a ban.
            with suppress(OSError):
                ask(self._address, self._password, "quit", min(RCON_S, grace_s / 5))
                ended = self._wait(pid, began_s + grace_s * QUIT_SHARE)
        for number, until_s in ((signal.SIGTERM, began_s + grace_s), (signal.SIGKILL, float("inf"))):
            if ended is None:
                log("INFO", "signal sent to game server", signal=number.name)
                os.killpg(pid, number)
                ended = self._wait(pid, until_s)
        assert ended is not None
        return ended

    def _report_health(self) -> None:
        while True:
            retry(lambda: request_sdk("POST", "/health"), "the Agones SDK", float("inf"))
            time.sleep(HEALTH_S)

    def _report_ready(self) -> None:
        try:
            map_name = retry(self._find_map, "the game server", self._options.start_timeout)
            retry(self._post_ready, "the Agones SDK", self._options.start_timeout)
            log("INFO", "game server ready", map=map_name)
        except FatalError as exc:
            log("ERROR", str(exc))
            self._has_failed = True
            os.kill(os.getpid(), signal.SIGTERM)  # the main thread waits for it

    def _find_map(self) -> str:
        try:
            found = LOADED_MAP.search(ask(self._address, self._password, "status", RCON_S))
        except PermissionError as exc:
            self._refused += 1
            if self._refused == MAX_REFUSED:
                raise FatalError(f"{exc}; does another .cfg file of the game set rcon_password?") from exc
            time.sleep(REFUSED_S)
            raise
        self._is_authenticated = True
        if found is None:
            raise OSError("no map is loaded yet")
        return found[1]

    def _post_ready(self) -> None:
        # A report that seems to have failed may have arrived.
        if self._has_reported and read_gameserver().state in REPORTED:
            return
        self._has_reported = True
        request_sdk("POST", "/ready")


def main(arguments: Sequence[str]) -> int:
    """Run the command with the arguments after `gameserver`; return the exit code."""
    if arguments[:1] == ["--help"]:
        os.write(1, HELP.encode())
        return 0
    for number in _ENDING:
        signal.signal(number, lambda *_: sys.exit(0))
    cfg = ""
    try:
        options, template = parse_arguments(arguments, os.environ)
        secret = read_secret(options.secret_file)
        server = retry(read_gameserver, "the Agones SDK", options.sdk_timeout)
        port, password = choose_port(server, options.port_name), bootstrap_password(secret, server.name)
        if options.cfg_dir:
            cfg = write_cfg(options.cfg_dir, server.name, password)
        values = {"port": str(port), "ip": options.ip, "name": server.name, "cfg": os.path.basename(cfg)}
        address = ({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(options.ip, options.ip), port)
        return Game(options, address, password).run(expand_command(template, values))
    except FatalError as exc:
        log("ERROR", str(exc))
        return 2 if isinstance(exc, UsageError) else 1
    finally:
        with suppress(OSError):
            os.unlink(cfg)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
