"""Run one simulated server in real time, with its RCON port and log posts.

Simulated time runs at the configured speed, never faster. After a delay the server catches up by at most MAX_LAG_S, so
that overload slows down simulated time instead of accumulating work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Protocol

import msgspec

from cs2_simulator.agenda import TICKS_PER_S, Agenda
from cs2_simulator.log_stream import LogStream
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import FetchResult, Outside, Upload
from cs2_simulator.setup_faults import SetupFault
from cs2_simulator.wire.http_client import HttpClient
from cs2_simulator.wire.log_sender import LogSender, LossyClient, PostClient, post_interval_s, retry_interval_s
from cs2_simulator.wire.pacer import Pacer, Wakeup
from cs2_simulator.wire.query_port import QueryPort
from cs2_simulator.wire.rcon_server import RconServer, ServedConsole

MAX_LAG_S = 2.0
"""Maximum seconds of real time by which a server catches up after a delay."""

STEP_S = 0.015
"""Minimum seconds of real time between two steps of a server. Shorter steps would need more wake-ups without a visible
difference."""

STEPS_PER_S = 2000
"""Maximum number of steps per second of one process, for all its servers together."""

STEP_MS = 60_000
"""Maximum simulated milliseconds of one step, which is about 5 ms of work. A server that is behind runs several
steps."""

LOCKSTEP_MS = 2_000
"""Maximum simulated milliseconds of one step if the clock waits for the log. It is shorter than any map change."""

TICK_MS = 1000 / TICKS_PER_S

FLUSH_TIMEOUT_S = 1.0
"""Seconds for which a server that quits tries to send its last lines. Hundreds of servers that quit together take
twice this time."""

MAX_REPORTS = 64
"""Maximum number of plugin events in flight per server. Further events are lost, as when a real plugin runs out of
threads."""

SLOW_S = 0.8
"""Seconds that the console takes to answer if the setup fault is `console_slow`."""

POST_TIMEOUT_S = 10.0
"""Seconds after which a log post fails if the setup fault is `log_unreachable`."""

_logger = logging.getLogger(__name__)


class GameMachine(ServedConsole, Protocol):
    """A simulated server without sockets, as this module uses it."""

    @property
    def agenda(self) -> Agenda:
        """The clock of the server."""

    @property
    def stream(self) -> LogStream:
        """The log of the server."""

    @property
    def is_lockstep(self) -> bool:
        """True if the clock waits until the log is acknowledged."""

    def boot(self) -> None:
        """Load the first map and run the console commands of the command line."""


class MachineFactory(Protocol):
    """Creates the machine of a server."""

    def __call__(self, options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> GameMachine:
        """Return a new machine that has not been booted."""


class SimulatedServer:
    """One running server. It implements `Outside` for its machine, and the console for its RCON port."""

    def __init__(
        self,
        options: ServerOptions,
        client: HttpClient,
        pacer: Pacer,
        *,
        make_machine: MachineFactory,
        start_ms: int,
        instance_token: str,
        on_exit: Callable[[SimulatedServer], None],
        servers: int = 1,
    ) -> None:
        """`on_exit` is called when the server has quit or crashed.

        `servers` is the number of servers in the process.
        """
        self.options = options
        self.has_crashed = False
        self._client = client
        self._pacer = pacer
        self._make_machine = make_machine
        self._start_ms = start_ms
        self._instance_token = instance_token
        self._on_exit = on_exit
        self._post_interval_s = post_interval_s(servers)
        self._post_retry_s = retry_interval_s(servers)
        self._step_s = max(STEP_S, servers / STEPS_PER_S)
        self._loop = asyncio.get_running_loop()
        delay_s = SLOW_S if options.setup_fault is SetupFault.CONSOLE_SLOW else 0.0
        self._rcon = RconServer(self, has_mirror=options.has_mirror, delay_s=delay_s)
        self._other_port: asyncio.Server | asyncio.DatagramTransport | None = None
        self._machine: GameMachine | None = None
        self._sender: LogSender | None = None
        self._speed = options.speed
        self._sim_ms = float(start_ms)
        self._real_s = self._loop.time()
        self._next: Wakeup | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._pending_reports = 0
        self._pending_fetches = 0
        self._shutdown: asyncio.Task[None] | None = None
        self._is_hung = False
        self._is_over = False

    async def bind(self) -> None:
        """Bind the port. Clients have to wait until the server has booted. Raise OSError if the port is in use."""
        port = await self._bind()
        self.options = msgspec.structs.replace(self.options, port=port)

    def boot(self) -> None:
        """Create and boot the machine, and start the clock."""
        self._machine = self._make_machine(
            self.options, self, start_ms=self._start_ms, instance_token=self._instance_token
        )
        self._sender = LogSender(
            self._machine.stream,
            self._log_client,
            wake_at=self._wake_at,
            is_lockstep=lambda: self._machine is not None and self._machine.is_lockstep,
            interval_s=self._post_interval_s,
            retry_s=self._post_retry_s,
        )
        self._real_s = self._loop.time()
        self._machine.boot()
        self._wake_at(self._real_s)

    @property
    def is_over(self) -> bool:
        return self._is_over

    async def stop(self) -> None:
        """Quit as by the console command, and wait until the server has ended. Does nothing if it has already ended."""
        if self._shutdown is None and not (self._is_hung or self._is_over):
            self.execute("quit", "")
            self._quit()
        if self._shutdown is not None:
            await asyncio.wait((self._shutdown,))
        self.close()
        await asyncio.sleep(0)  # a transport closes its socket in the next iteration of the event loop

    def close(self, *, is_abrupt: bool = False) -> None:
        """Free all resources immediately.

        If `is_abrupt`, discard pending RCON answers. The server does nothing afterwards.
        """
        if self._is_over:
            return
        self._is_over = True
        if self._next is not None:
            self._next.cancel()
        if self._machine is not None:
            self._machine.agenda.clear()
        if self._sender is not None:
            self._sender.stop()
        self._rcon.close(is_abrupt=is_abrupt)
        if self._other_port is not None:
            self._other_port.close()
        for request in tuple(self._requests):
            request.cancel()

    @property
    def is_busy(self) -> bool:
        return self._is_clock_stopped or self._machine is None or self._machine.is_busy

    @property
    def rcon_password(self) -> str:
        return "" if self._machine is None else self._machine.rcon_password

    def execute(self, text: str, source: str) -> str:
        """Advance the clock to the current time and run a console command."""
        if self._machine is None:
            return ""
        try:
            self._run()
            return self._machine.execute(text, source)
        except Exception:
            _logger.exception("simulated server failed")
            self.exit(is_crash=True)
            return ""
        finally:
            self._wake_at(self._loop.time())

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        """GET a URL. The clock is stopped until the response arrives."""
        self._move_clock()
        self._pending_fetches += 1
        self._hold()
        self._start_request(self._fetch(url, headers, done))

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """POST a plugin event once, without a retry."""
        if self._pending_reports < MAX_REPORTS:
            self._pending_reports += 1
            self._start_request(self._report(url, headers, body))

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        """POST a file once, without a retry. The game continues during the upload, which is paced in real time."""
        self._start_request(self._upload(url, headers, upload))

    def exit(self, *, is_crash: bool) -> None:
        """End the server as soon as the caller has returned."""
        self._loop.call_soon(self._crash if is_crash else self._quit)

    def hang(self) -> None:
        """Stop responding forever with all sockets open."""
        self._is_hung = True
        self._hold()
        if self._sender is not None:
            self._sender.stop()

    def set_speed(self, speed: float) -> None:
        """Change the speed of the clock from now on."""
        self._move_clock()
        self._speed = speed
        self._wake_at(self._real_s)

    def drop_rcon_connections(self) -> None:
        """Close all RCON connections after the current answer."""
        self._loop.call_soon(self._rcon.drop_all)

    @property
    def _log_client(self) -> PostClient:
        lost_after_s = {SetupFault.LOG_REFUSED: 0.0, SetupFault.LOG_UNREACHABLE: POST_TIMEOUT_S}
        fault = self.options.setup_fault
        return self._client if fault not in lost_after_s else LossyClient(lost_after_s[fault])

    async def _bind(self) -> int:
        ip, port = self.options.ip, self.options.port
        if self.options.setup_fault is SetupFault.RCON_OFF:
            queries, _ = await self._loop.create_datagram_endpoint(lambda: QueryPort(self.options), (ip, port))
            self._other_port = queries
            return int(queries.get_extra_info("sockname")[1])
        if self.options.setup_fault is SetupFault.CONSOLE_SILENT:
            self._other_port = await self._loop.create_server(asyncio.Protocol, ip, port)
            return int(self._other_port.sockets[0].getsockname()[1])
        return await self._rcon.bind(ip, port)

    @property
    def _is_clock_stopped(self) -> bool:
        """True while the clock is stopped and only an external event can resume it."""
        return self._is_hung or self._is_over or self._pending_fetches > 0 or self._shutdown is not None

    @property
    def _waits_for_log(self) -> bool:
        """True while the clock waits until the log is acknowledged."""
        machine = self._machine
        return machine is not None and machine.is_lockstep and not machine.stream.is_acknowledged

    def _wake_at(self, at_s: float) -> None:
        if self._is_over or self._is_hung:
            return
        if self._next is not None:
            if self._next.at_s <= at_s:
                return
            self._next.cancel()
        self._next = self._pacer.wake_at(at_s, self._step)

    def _step(self) -> None:
        self._next = None
        if self._machine is None or self._sender is None or self._is_clock_stopped:
            return
        try:
            self._run()
            now_s = self._loop.time()
            next_s = self._sender.send_due(now_s)
        except Exception:
            _logger.exception("simulated server failed")
            self._crash()
            return
        self._rcon.resume()
        agenda = self._machine.agenda
        due_ms = None if self._waits_for_log else agenda.next_due_ms()
        if due_ms is not None and self._speed > 0:
            due_s = self._real_s + (due_ms - self._sim_ms) / self._speed / 1000
            next_s = due_s if next_s is None else min(due_s, next_s)
        if next_s is not None:
            is_behind = agenda.now_ms + TICK_MS < int(self._sim_ms)
            self._wake_at(now_s if is_behind else max(next_s, now_s + self._step_s))

    def _hold(self) -> None:
        if self._machine is not None:
            self._machine.agenda.hold()

    def _move_clock(self) -> None:
        """Advance simulated time to the current time, at most MAX_LAG_S beyond the time when the next task is due."""
        now_s = self._loop.time()
        if self._machine is not None and not self._is_clock_stopped and not self._waits_for_log:
            self._sim_ms += (now_s - self._real_s) * self._speed * 1000
            due_ms = self._machine.agenda.next_due_ms()
            if due_ms is not None:
                # Add a tick, because `due_ms` is rounded down to a millisecond.
                self._sim_ms = min(self._sim_ms, due_ms + TICK_MS + MAX_LAG_S * self._speed * 1000)
        self._real_s = now_s

    def _run(self) -> None:
        """Run the due tasks of at most one step of simulated time. Any task may stop the clock."""
        self._move_clock()
        if self._machine is None or self._is_clock_stopped or self._waits_for_log:
            return
        agenda = self._machine.agenda
        until_ms = int(self._sim_ms)
        due_ms = agenda.next_due_ms()
        step_ms = LOCKSTEP_MS if self._machine.is_lockstep else STEP_MS
        agenda.run_until(until_ms if due_ms is None else min(until_ms, due_ms + step_ms))

    def _start_request(self, request: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        fetched = await self._client.get(url, headers.items())
        self._move_clock()
        self._pending_fetches -= 1
        try:
            done(fetched)
        except Exception:
            _logger.exception("simulated server failed")
            self._crash()
            return
        self._wake_at(self._real_s)

    async def _report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        await self._client.post(url, headers.items(), body)
        self._pending_reports -= 1

    async def _upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        await self._client.upload(url, headers.items(), upload)

    def _quit(self) -> None:
        if not self._is_over and self._shutdown is None:
            self._shutdown = self._loop.create_task(self._flush_and_close())

    async def _flush_and_close(self) -> None:
        if self._machine is not None and self._sender is not None:
            agenda = self._machine.agenda
            agenda.clear()
            agenda.run_until(agenda.now_ms + 2000 // TICKS_PER_S)  # only completed ticks are sent
            await self._sender.finish(FLUSH_TIMEOUT_S)
        if not self._is_over:
            self.close()
            self._on_exit(self)

    def _crash(self) -> None:
        if not self._is_over:
            self.has_crashed = True
            self.close(is_abrupt=True)
            self._on_exit(self)
