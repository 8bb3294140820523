"""Run the game as a child process, and report its state to Agones.

This program calls `/health` of the Agones SDK while the game runs, and `/ready` when the map is loaded. It ends the
game on SIGTERM, or when the match takes too long or was abandoned, and exits when the game exits. Because it may be
process 1 of a container, it reaps orphaned processes as well.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from .log import RETRY_S, FatalError, log, retry
from .options import PASSWORD_VARIABLE, Options
from .rcon import LOADED_MAP, ask
from .sdk import ALLOCATED, REPORTED, REQUEST_S, read_gameserver, request_sdk
from .usage import LOOK_S, Traffic, Usage

HEALTH_S = 2.0  # interval of health reports: less than half of the default health period of Agones
RCON_S = 5.0  # timeout for an answer over RCON; a server does not answer while it loads a map
REFUSED_S = 10.0  # pause after a rejected password: CS2 bans an address after 5 of them within 30 s
MAX_REFUSED = 4  # more than 1, because RCON may be open before the game has executed the .cfg file with the password
QUIT_SHARE = 0.4  # share of the grace period to wait after `quit`; SIGTERM gets the rest

ENDING = frozenset({signal.SIGTERM, signal.SIGINT})

_T = TypeVar("_T")


class Timing(NamedTuple):
    """Intervals, pauses and timeouts in seconds."""

    health_s: float = HEALTH_S
    retry_s: float = RETRY_S
    refused_s: float = REFUSED_S
    look_s: float = LOOK_S
    request_s: float = REQUEST_S
    rcon_s: float = RCON_S


TIMING = Timing()


def exit_code(ended: int, *, is_requested: bool) -> int:
    """Return our exit code from the exit code of the game (-N: ended by signal N).

    It is 0 only if the end was requested and the game was not ended by SIGKILL.
    """
    if is_requested and ended != -signal.SIGKILL:
        return 0
    return 128 - ended if ended < 0 else ended or 1


class GameProcess:
    """Runs the game as a child process, and tracks its state."""

    def __init__(self, options: Options, address: tuple[str, int], password: str, timing: Timing) -> None:
        self._options, self._address, self._password, self._timing = options, address, password, timing
        self._refused = 0
        self._is_authenticated = self._has_failed = self._has_reported = False

    def begin_health(self) -> None:
        """Start to report health to Agones in a thread, until this program ends."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # the main thread must get these signals
        threading.Thread(target=self._report_health, daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self, command: list[str], variables: Mapping[str, str]) -> int:
        """Run the game, with `variables` added to its environment, until it ends; return our exit code."""
        # Blocked signals are pending until `sigtimedwait` returns them. Threads inherit the blocked signals; the game
        # does not.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *ENDING})
        environment = {**os.environ, **variables, PASSWORD_VARIABLE: self._password}
        defaults: dict[str, Any] = {"setsigmask": (), "setsigdef": (signal.SIGPIPE, signal.SIGXFSZ)}
        files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        try:
            pid = os.posix_spawnp(command[0], command, environment, file_actions=files, setpgroup=0, **defaults)
        except OSError as exc:
            raise FatalError(f"the program `{command[0]}` cannot be started: {exc.strerror}") from exc
        log("INFO", "game server started", pid=pid, port=self._address[1])
        watches = [self._watch_usage] if self._options.max_life or self._options.idle_exit else []
        for task in (self._report_ready, *watches):
            threading.Thread(target=task, daemon=True).start()
        ended = self._wait(pid, float("inf"), ENDING)
        is_requested = ended is None
        ended = self._end(pid) if ended is None else ended
        code = 1 if self._has_failed else exit_code(ended, is_requested=is_requested)
        log("ERROR" if code else "INFO", "game server ended", exit_code=ended)
        return code

    def _wait(self, pid: int, until_s: float, interrupts: frozenset[int] = frozenset()) -> int | None:
        """Reap children until the game has ended, and return its exit code; None after an interrupt or the timeout."""
        while True:
            reaped, status = os.waitpid(-1, os.WNOHANG)
            if reaped == pid:
                return os.waitstatus_to_exitcode(status)
            left_s = until_s - time.monotonic()
            received = None if reaped else signal.sigtimedwait({signal.SIGCHLD, *ENDING}, max(0, min(left_s, 3600)))
            if left_s <= 0 or (received and received.si_signo in interrupts):
                return None

    def _end(self, pid: int) -> int:
        """End the game with `quit`, then SIGTERM, then SIGKILL; return its exit code."""
        grace_s, began_s, ended = self._options.grace_period, time.monotonic(), None
        log("INFO", "ending game server", grace_s=grace_s)
        if self._is_authenticated:
            # The service has usually changed the password by now. A single failed attempt does not cause a ban.
            with suppress(OSError):
                ask(self._address, self._password, "quit", min(self._timing.rcon_s, grace_s / 5))
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
            self._retry(lambda: self._post("/health"), "the Agones SDK", float("inf"))
            time.sleep(self._timing.health_s)

    def _report_ready(self) -> None:
        try:
            map_name = self._retry(self._find_map, "the game server", self._options.start_timeout)
            self._retry(self._post_ready, "the Agones SDK", self._options.start_timeout)
            log("INFO", "game server ready", map=map_name)
        except FatalError as exc:
            self._fail(str(exc))

    def _watch_usage(self) -> None:
        """End the game if its match takes too long or was abandoned.

        If the state cannot be read, the last state is assumed.
        """
        timing, options = self._timing, self._options
        limits = Usage(options.max_life, options.idle_exit, timing.look_s)
        traffic = Traffic(self._address[1])
        is_allocated, reason = False, None
        while reason is None:
            time.sleep(timing.look_s)
            with suppress(OSError):
                is_allocated = read_gameserver(timing.request_s).state == ALLOCATED
            now_s = time.monotonic()
            reason = limits.observe(now_s, is_allocated=is_allocated, is_used=traffic.is_used(now_s))
        self._fail(reason)

    def _fail(self, reason: str) -> None:
        """End the game and exit with a failure, so that Agones replaces the server."""
        log("ERROR", reason)
        self._has_failed = True
        os.kill(os.getpid(), signal.SIGTERM)  # the main thread waits for this signal and ends the game

    def _find_map(self) -> str:
        try:
            found = LOADED_MAP.search(ask(self._address, self._password, "status", self._timing.rcon_s))
        except PermissionError as exc:
            self._refused += 1
            if self._refused == MAX_REFUSED:
                raise FatalError(f"{exc}; does another .cfg file of the game set rcon_password?") from exc
            time.sleep(self._timing.refused_s)
            raise
        self._is_authenticated = True
        if found is None:
            raise OSError("no map is loaded yet")
        return found[1]

    def _post_ready(self) -> None:
        # The last report may have arrived although the request seemed to fail.
        if self._has_reported and read_gameserver(self._timing.request_s).state in REPORTED:
            return
        self._has_reported = True
        self._post("/ready")

    def _post(self, path: str) -> bytes:
        return request_sdk("POST", path, self._timing.request_s)

    def _retry(self, attempt: Callable[[], _T], what: str, timeout_s: float) -> _T:
        return retry(attempt, what, timeout_s, self._timing.retry_s)
