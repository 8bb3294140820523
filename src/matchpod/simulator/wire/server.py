"""How does one simulated server live? Its machine, moved along by real time, with its RCON port and its log posts.

Simulated time runs as many times as fast as asked, never faster. A process that was held up catches up; what it is
more than MAX_LAG_S behind is given up, so that too much work makes time slow instead of making ever more work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Protocol

import msgspec

from matchpod.simulator.agenda import TICKS_PER_S, Agenda
from matchpod.simulator.log_stream import LogStream
from matchpod.simulator.options import ServerOptions
from matchpod.simulator.outside import Fetched, Outside
from matchpod.simulator.wire.http_client import HttpClient
from matchpod.simulator.wire.log_sender import LogSender, post_interval_s, retry_interval_s
from matchpod.simulator.wire.pacer import Pacer, Wake
from matchpod.simulator.wire.rcon_server import RconConsole, RconServer

MAX_LAG_S = 2.0
"""Real time that is made up for after a standstill."""

STEP_S = 0.015
"""The shortest real time between two steps of a server: finer ones cost wake-ups and nobody could see them."""

STEPS_PER_S = 2000
"""Steps that one process makes in a second for all its servers."""

STEP_MS = 60_000
"""Simulated time that a server goes in one step at most: some 5 ms of work. One that is behind takes several steps."""

LOCKSTEP_MS = 2_000
"""The same where time waits for the log: what is played in one go and then sent. Less than any map change takes."""

TICK_MS = 1000 / TICKS_PER_S

FAREWELL_S = 1.0
"""How long a server that quits tries to send its last lines; hundreds that end together need as long again."""

MAX_REPORTS = 64
"""Plugin events of one server under way; more are lost, as they are where a plugin's threads are used up."""

_logger = logging.getLogger(__name__)


class GameMachine(RconConsole, Protocol):
    """The server itself, without sockets."""

    @property
    def agenda(self) -> Agenda:
        """Its time."""

    @property
    def stream(self) -> LogStream:
        """Its log."""

    @property
    def is_lockstep(self) -> bool:
        """True when time waits for the log to be acknowledged."""

    def boot(self) -> None:
        """Load the first map and run the commands of the command line."""


class MachineMaker(Protocol):
    """Makes the machine of a server."""

    def __call__(self, options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> GameMachine:
        """A new machine that has not booted."""


class Birth(msgspec.Struct, frozen=True):
    """What no two processes share."""

    start_ms: int
    instance_token: str


class SimulatedServer:
    """One running server: the world its machine lives in, and the console of its RCON port."""

    def __init__(
        self,
        options: ServerOptions,
        client: HttpClient,
        pacer: Pacer,
        *,
        make_machine: MachineMaker,
        birth: Birth,
        on_exit: Callable[[SimulatedServer], None],
        servers: int = 1,
    ) -> None:
        """`on_exit` is told when the server quit or crashed; `servers` is how many share the process."""
        self.options = options
        self.has_crashed = False
        self._client = client
        self._pacer = pacer
        self._make_machine = make_machine
        self._birth = birth
        self._on_exit = on_exit
        self._post_interval_s = post_interval_s(servers)
        self._post_retry_s = retry_interval_s(servers)
        self._step_s = max(STEP_S, servers / STEPS_PER_S)
        self._loop = asyncio.get_running_loop()
        self._rcon = RconServer(self, has_mirror=options.has_mirror)
        self._machine: GameMachine | None = None
        self._sender: LogSender | None = None
        self._speed = options.speed
        self._sim_ms = float(birth.start_ms)
        self._real_s = self._loop.time()
        self._next: Wake | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._reports = 0
        self._fetches = 0
        self._farewell: asyncio.Task[None] | None = None
        self._is_hung = False
        self._is_over = False

    async def bind(self) -> None:
        """Take the port; whoever connects waits until the server has booted. OSError when the port is in use."""
        port = await self._rcon.bind(self.options.ip, self.options.port)
        self.options = msgspec.structs.replace(self.options, port=port)

    def boot(self) -> None:
        """Begin to live."""
        self._machine = self._make_machine(
            self.options, self, start_ms=self._birth.start_ms, instance_token=self._birth.instance_token
        )
        self._sender = LogSender(
            self._machine.stream,
            self._client,
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
        """True when the server quit, crashed or was closed."""
        return self._is_over

    async def stop(self) -> None:
        """Quit as if told so on the console, and wait for the end. Stopping what is over changes nothing."""
        if self._farewell is None and not (self._is_hung or self._is_over):
            self.execute("quit", "")
            self._quit()
        if self._farewell is not None:
            await asyncio.wait((self._farewell,))
        self.close()
        await asyncio.sleep(0)  # transports let go of their sockets in the next turn of the loop

    def close(self, *, is_abrupt: bool = False) -> None:
        """Free everything at once; abruptly even without the answers under way. Nothing happens after it."""
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
        for request in tuple(self._requests):
            request.cancel()

    @property
    def is_busy(self) -> bool:
        """True while the console answers nobody."""
        return self._is_still or self._machine is None or self._machine.is_busy

    @property
    def rcon_password(self) -> str:
        """The password of the machine."""
        return "" if self._machine is None else self._machine.rcon_password

    def execute(self, text: str, source: str) -> str:
        """Run a console command at the present moment."""
        if self._machine is None:
            return ""
        try:
            self._run()
            return self._machine.execute(text, source)
        except Exception:
            _logger.exception("a simulated server failed")
            self.exit(is_crash=True)
            return ""
        finally:
            self._wake_at(self._loop.time())

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[Fetched], None]) -> None:
        """GET a URL; time stands still until it is answered."""
        self._move_clock()
        self._fetches += 1
        self._hold()
        self._begin(self._fetch(url, headers, done))

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        """POST a plugin event, once."""
        if self._reports < MAX_REPORTS:
            self._reports += 1
            self._begin(self._report(url, headers, body))

    def exit(self, *, is_crash: bool) -> None:
        """End the server, once what called this has returned."""
        self._loop.call_soon(self._crash if is_crash else self._quit)

    def hang(self) -> None:
        """Stop for good with all sockets open."""
        self._is_hung = True
        self._hold()
        if self._sender is not None:
            self._sender.stop()

    def set_speed(self, speed: float) -> None:
        """Run at another speed from now on."""
        self._move_clock()
        self._speed = speed
        self._wake_at(self._real_s)

    def drop_consoles(self) -> None:
        """Cut all RCON connections, after the answer being given."""
        self._loop.call_soon(self._rcon.drop_all)

    @property
    def _is_still(self) -> bool:
        """True while time stands still, and nothing but an event from outside will move it."""
        return self._is_hung or self._is_over or self._fetches > 0 or self._farewell is not None

    @property
    def _waits_for_log(self) -> bool:
        """True while time stands still until the log is acknowledged."""
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
        if self._machine is None or self._sender is None or self._is_still:
            return
        try:
            self._run()
            now_s = self._loop.time()
            next_s = self._sender.look(now_s)
        except Exception:
            _logger.exception("a simulated server failed")
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
        """Bring simulated time to the present, but not further than MAX_LAG_S beyond what should have happened."""
        now_s = self._loop.time()
        if self._machine is not None and not self._is_still and not self._waits_for_log:
            self._sim_ms += (now_s - self._real_s) * self._speed * 1000
            due_ms = self._machine.agenda.next_due_ms()
            if due_ms is not None:
                # A tick more, as a plan is due at any time of the millisecond in which its tick begins.
                self._sim_ms = min(self._sim_ms, due_ms + TICK_MS + MAX_LAG_S * self._speed * 1000)
        self._real_s = now_s

    def _run(self) -> None:
        """Let everything happen that is due, as far as one step goes; any of it may stop time."""
        self._move_clock()
        if self._machine is None or self._is_still or self._waits_for_log:
            return
        agenda = self._machine.agenda
        until_ms = int(self._sim_ms)
        due_ms = agenda.next_due_ms()
        step_ms = LOCKSTEP_MS if self._machine.is_lockstep else STEP_MS
        agenda.run_until(until_ms if due_ms is None else min(until_ms, due_ms + step_ms))

    def _begin(self, request: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _fetch(self, url: str, headers: Mapping[str, str], done: Callable[[Fetched], None]) -> None:
        fetched = await self._client.get(url, headers.items())
        self._move_clock()
        self._fetches -= 1
        try:
            done(fetched)
        except Exception:
            _logger.exception("a simulated server failed")
            self._crash()
            return
        self._wake_at(self._real_s)

    async def _report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        await self._client.post(url, headers.items(), body)
        self._reports -= 1

    def _quit(self) -> None:
        if not self._is_over and self._farewell is None:
            self._farewell = self._loop.create_task(self._say_farewell())

    async def _say_farewell(self) -> None:
        if self._machine is not None and self._sender is not None:
            agenda = self._machine.agenda
            agenda.clear()
            agenda.run_until(agenda.now_ms + 2000 // TICKS_PER_S)  # only whole ticks are sent
            await self._sender.finish(FAREWELL_S)
        if not self._is_over:
            self.close()
            self._on_exit(self)

    def _crash(self) -> None:
        if not self._is_over:
            self.has_crashed = True
            self.close(is_abrupt=True)
            self._on_exit(self)
