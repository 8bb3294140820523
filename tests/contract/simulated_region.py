"""A region with servers that are simulated in this process, without sockets: its fleet and its consoles.

Servers run as fast as the event loop allows. They post to the ingest that a test has registered for the URL, if any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress

from cs2_simulator.machine import Machine
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import FetchResult, Upload
from matchpod.adapters.fleets.fixed_slots import FixedSlots
from matchpod.core.errors import MatchpodError
from matchpod.core.servers.server_loss import FleetReport
from matchpod.ports import (
    ConsoleFaultError,
    ConsoleLostError,
    FleetError,
    GameServer,
    ListedServer,
    ServerLease,
    ServerOrder,
)
from matchpod.service.ingest.posts import TOKEN_HEADER, Ingest, RawHeaders, Receipt

TURN_S = 0.01
TURN_MS = 4_000
"""Game time that passes in each TURN_S: 400 times as fast, if the loop is not busy."""
SOURCE = "127.0.0.1:50000"
OPERATOR_PASSWORD = "the operator's"


class SimulatedServer:
    def __init__(self, region: SimulatedRegion, order: ServerOrder, *, start_ms: int, number: int) -> None:
        options = ServerOptions(
            map=order.map_name,
            rcon_password=order.rcon_password,
            game_type=order.game_type,
            game_mode=order.game_mode,
            players=",".join(order.players),
            port=1 + number,
        )
        self.machine = Machine(options, self, start_ms=start_ms, instance_token=f"{number:016x}")
        self.machine.boot()
        self.commands: list[str] = []
        self.command_ms = region.command_ms
        self.is_over = False
        self.is_frozen = False
        self.answers_late = False
        """While it is frozen, its console does not answer, instead of failing at once."""
        self.is_paused = False
        """Its game time stands still, but its console answers."""
        self._fetches = 0
        self._region = region
        self._requests: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self.is_over = True
        for task in (self._task, *self._requests):
            task.cancel()
        await asyncio.gather(self._task, *self._requests, return_exceptions=True)

    def describe(self) -> str:
        """Its state and its last commands, for the message of a failed test."""
        machine = self.machine
        state = f"over {self.is_over}, frozen {self.is_frozen}, busy {machine.is_busy}, fetches {self._fetches}"
        plugin, listeners = machine.execute("get5_status", ""), machine.execute("logaddress_list_http", "")
        return f"{state}, {self._task!r}, {plugin}, {listeners}, {self.commands[-20:]}"

    def execute(self, command: str) -> str:
        self.commands.append(command)
        if command.split()[0] in self._region.ignored_commands:
            return ""
        return self.machine.execute(command, SOURCE)

    def check_fault(self, command: str) -> None:
        if command.split()[0] in self._region.faulty_commands:
            self._region.faults_asked.append(command)
            raise ConsoleFaultError("an answer of 8 MiB")

    async def pass_time(self, game_ms: int) -> None:
        """Let the game go on while a command is executed."""
        await asyncio.sleep(0)
        if game_ms and not (self.is_over or self.is_frozen or self.machine.is_busy):
            self.machine.agenda.run_until(self.machine.agenda.now_ms + game_ms)
            await self._post()

    # --- environment of the machine -------------------------------------------------------------------------------

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[FetchResult], None]) -> None:
        async def request() -> None:
            ingest = self._region.ingest_at(url)
            status, file = 503, None
            with suppress(MatchpodError):
                file = await ingest.match_file(headers.get(TOKEN_HEADER)) if ingest else None
                status = 404 if file is None else 200
            self._fetches -= 1
            done(FetchResult(status, file or b""))

        self._fetches += 1
        self.machine.agenda.hold()
        self._begin(request())

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        async def report() -> None:
            ingest = self._region.ingest_at(url)
            with suppress(MatchpodError):
                if ingest and "/ingest/shots/" in url:
                    await ingest.store_shots(url.rpartition("/")[2], body)
                elif ingest:
                    await ingest.store_report(headers.get(TOKEN_HEADER), body)

        self._begin(report())

    def upload(self, url: str, headers: Mapping[str, str], upload: Upload) -> None:
        self._region.uploads.append((url, dict(headers), b"".join(upload.blocks())))

    def exit(self, *, is_crash: bool) -> None:
        self.is_over = True

    def hang(self) -> None:
        self.is_frozen = True

    def set_speed(self, speed: float) -> None:
        """Not needed: it always runs at full speed."""

    def drop_rcon_connections(self) -> None:
        """Not needed: consoles here have no connections."""

    def _begin(self, request: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _run(self) -> None:
        try:
            await self._play()
        except Exception as exc:
            self._region.faults.append(exc)
            raise

    async def _play(self) -> None:
        while not self.is_over:
            if not (self.is_frozen or self.is_paused or self._fetches or self._region.is_paused):
                agenda = self.machine.agenda
                agenda.run_until(agenda.now_ms + TURN_MS)
                await self._post()
            await asyncio.sleep(TURN_S)

    async def _post(self) -> None:
        stream = self.machine.stream
        for listener in tuple(stream.idle_listeners):
            request = stream.next_request(listener)
            if request is None:
                continue
            ingest = self._region.ingest_at(request.url)
            status = 503
            with suppress(MatchpodError):
                if ingest is not None:
                    token = request.url.rpartition("/")[2]
                    headers = [(name.lower().encode(), value.encode()) for name, value in request.headers]
                    is_stored = await _take(ingest, token, headers, request.body)
                    if not is_stored:
                        receipt = await ingest.store_log(token, headers, request.body)
                        is_stored = receipt is Receipt.STORED
                    status = 200 if is_stored else 410
                if self._region.ingest_at(request.url) is not ingest:
                    status = 503  # the process was killed before it answered
            stream.handle_response(listener, status)


async def _take(ingest: Ingest, token: str, headers: RawHeaders, body: bytes) -> bool:
    """Store a post as a connection does: without waiting, if it is a usual one."""
    if not isinstance(ingest, Ingest):  # a test stands in between
        return False
    stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def answer(is_stored: bool) -> None:
        if not stored.cancelled():  # like a connection that is closed: the server was destroyed meanwhile
            stored.set_result(is_stored)

    return ingest.take_log(token, headers, body, answer) and await stored


class SimulatedConsole:
    def __init__(self, server: SimulatedServer) -> None:
        self._server = server

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        await self._server.pass_time(self._server.command_ms)
        while self._server.is_frozen and self._server.answers_late:
            await asyncio.sleep(TURN_S)
        if self._server.is_over or self._server.is_frozen or self._server.machine.is_busy:
            raise ConsoleLostError("no answer")
        self._server.check_fault(command)
        return self._server.execute(command)

    async def run_all(self, commands: Sequence[str], *, timeout_s: float = 10.0) -> list[str]:
        return [await self.run(command, timeout_s=timeout_s) for command in commands]

    async def close(self) -> None:
        pass


class SimulatedRegion(FixedSlots):
    def __init__(self, slots: Sequence[str] | None = ("a", "b", "c"), *, start_ms: int) -> None:
        self._slots = slots
        self._start_ms = start_ms
        self._ingests: dict[str, Ingest] = {}
        self._started = 0
        self.running: dict[str, SimulatedServer] = {}
        self.faults: list[Exception] = []
        """Errors that ended a simulated game: it would look like a server that answers and posts no log."""
        self.orders: list[ServerOrder] = []
        self.releases: list[str] = []
        self.is_paused = False
        self.uploads: list[tuple[str, dict[str, str], bytes]] = []
        """The demos that servers have posted: URL, headers and content. Nothing receives them."""
        self.allocation_errors: list[Exception] = []
        """Raised by the next allocations, one each."""
        self.release_errors: list[Exception] = []
        """Raised by the next releases, one each."""
        self.console_errors: list[Exception] = []
        """Raised when the next consoles are opened, one each."""
        self.ignored_commands: set[str] = set()
        """Commands without effect."""
        self.faulty_commands: set[str] = set()
        """Commands whose answer is more than a server may send."""
        self.faults_asked: list[str] = []
        """Those that were sent."""
        self.command_ms = 0
        """Game time that each console command takes on new servers, as on a slow machine."""
        self.static_server: SimulatedServer | None = None
        """If set, the one server that all matches use, one after the other."""
        self.owners: dict[str, bool | None] = {}
        """Whether servers are this installation's own; all others are."""
        self.age_s = 3600.0
        """How old all servers are said to be."""
        self.gone_seen = asyncio.Event()
        """Set once a server was observed that is gone."""

    def add_ingest(self, base: str, ingest: Ingest) -> None:
        """Route requests to URLs that begin with `base` to this ingest."""
        self._ingests[base] = ingest

    def remove_ingest(self, base: str) -> None:
        """Let requests to these URLs fail."""
        del self._ingests[base]

    def ingest_at(self, url: str) -> Ingest | None:
        return next((ingest for base, ingest in self._ingests.items() if url.startswith(base)), None)

    def use_static_server(self, number: int = 99) -> SimulatedServer:
        """Use one server that an operator runs, instead of one per match."""
        order = ServerOrder(
            server_id="", slot="", map_name="de_dust2", game_type=0, game_mode=1, rcon_password=OPERATOR_PASSWORD
        )
        self.static_server = SimulatedServer(self, order, start_ms=self._start_ms, number=number)
        return self.static_server

    async def restart_static_server(self) -> None:
        """Kill the process of the static server and start a new one at the same address, with the same password."""
        old = self.static_server
        assert old is not None
        await old.close()
        new = self.use_static_server(number=100)
        self.running = {name: new if server is old else server for name, server in self.running.items()}

    # --- the fleet ------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> Sequence[str] | None:
        return self._slots

    @property
    def keeps_servers(self) -> bool:
        return self.static_server is not None

    async def allocate(self, order: ServerOrder) -> GameServer | None:
        self.orders.append(order)
        if self.allocation_errors:
            raise self.allocation_errors.pop(0)
        if self.static_server is not None:
            self.running[order.server_id] = self.static_server
            return self._game_server(order, OPERATOR_PASSWORD)
        if order.server_id not in self.running:
            if any(order.slot == one.slot for one in self.orders if one.server_id in self.running):
                raise FleetError("another server has this slot")
            self._start(order)
        return self._game_server(order, order.rcon_password)

    def _start(self, order: ServerOrder) -> None:
        self._started += 1
        self.running[order.server_id] = SimulatedServer(self, order, start_ms=self._start_ms, number=self._started)

    def _game_server(self, order: ServerOrder, password: str) -> GameServer:
        return GameServer(
            ip="203.0.113.7",
            port=27015,
            rcon_host=order.server_id,
            rcon_port=1,
            rcon_password=password,
            is_fresh=self.static_server is None,
        )

    async def observe(self, server_id: str, slot: str) -> FleetReport:
        server = self.running.get(server_id)
        if server is not None and server is self.static_server:
            return FleetReport.UNKNOWN
        if server is not None and not server.is_over:
            return FleetReport.ALIVE
        self.gone_seen.set()
        return FleetReport.GONE

    async def release(self, server_id: str, slot: str, lease: ServerLease | None = None) -> None:
        if self.release_errors:
            raise self.release_errors.pop(0)
        self.releases.append(server_id)
        server = self.running.pop(server_id, None)
        if server is not None and server is not self.static_server:
            await server.close()

    async def servers(self) -> Sequence[ListedServer]:
        return [
            ListedServer(server_id=server_id, is_own=self.owners.get(server_id, True), age_s=self.age_s)
            for server_id in self.running
        ]

    async def close(self) -> None:
        for server in {*self.running.values(), *([self.static_server] if self.static_server else [])}:
            await server.close()

    # --- the consoles ---------------------------------------------------------------------------------------------

    async def open(self, host: str, port: int, password: str) -> SimulatedConsole:
        if self.console_errors:
            raise self.console_errors.pop(0)
        server = self.running.get(host)
        if server is None or server.is_over or password != server.machine.rcon_password:
            raise ConsoleLostError("no such server")
        return SimulatedConsole(server)
