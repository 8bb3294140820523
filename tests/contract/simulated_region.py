"""A region whose servers are simulated in this very process, without sockets: a fleet, its consoles, and their log.

Servers live as fast as the loop lets them. They post to whoever listens at the address they were told: a test says
who that is, and whether anybody is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress

from matchpod.core.errors import MatchpodError
from matchpod.ports import ConsoleLostError, FleetError, GameServer, ServerOrder
from matchpod.service.ingest import TOKEN_HEADER, Ingest
from matchpod.simulator.machine import Machine
from matchpod.simulator.options import ServerOptions
from matchpod.simulator.outside import Fetched

TURN_S = 0.005
TURN_MS = 2_000
"""So much of a server's time passes in a turn of ours: four hundred times as fast, if the loop is not busy."""
SOURCE = "127.0.0.1:50000"
OPERATORS_PASSWORD = "the operator's"


class SimulatedServer:
    """One machine and the world it lives in."""

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
        self.said: list[str] = []
        self.command_ms = region.command_ms
        self.is_over = False
        self.is_frozen = False
        self.is_paused = False
        """Its time stands still; its console answers."""
        self._fetches = 0
        self._region = region
        self._requests: set[asyncio.Task[None]] = set()
        self._task = asyncio.create_task(self._live())

    async def close(self) -> None:
        self.is_over = True
        for task in (self._task, *self._requests):
            task.cancel()
        await asyncio.gather(self._task, *self._requests, return_exceptions=True)

    def execute(self, command: str) -> str:
        self.said.append(command)
        if command.split()[0] in self._region.ignored:
            return ""
        return self.machine.execute(command, SOURCE)

    async def work(self, game_ms: int) -> None:
        """Take time for a command: the game goes on meanwhile."""
        await asyncio.sleep(0)
        if game_ms and not (self.is_over or self.is_frozen or self.machine.is_busy):
            self.machine.agenda.run_until(self.machine.agenda.now_ms + game_ms)
            await self._post()

    # --- what the machine asks of the world -----------------------------------------------------------------------

    def fetch(self, url: str, headers: Mapping[str, str], done: Callable[[Fetched], None]) -> None:
        async def ask() -> None:
            ingest = self._region.listener(url)
            file = await ingest.match_file(headers.get(TOKEN_HEADER)) if ingest else None
            self._fetches -= 1
            done(Fetched(404 if file is None else 200, file or b""))

        self._fetches += 1
        self.machine.agenda.hold()
        self._begin(ask())

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        async def report() -> None:
            ingest = self._region.listener(url)
            with suppress(MatchpodError):
                if ingest:
                    await ingest.take_report(headers.get(TOKEN_HEADER), body)

        self._begin(report())

    def exit(self, *, is_crash: bool) -> None:
        self.is_over = True

    def hang(self) -> None:
        self.is_frozen = True

    def set_speed(self, speed: float) -> None:
        """It is as fast as it can be."""

    def drop_consoles(self) -> None:
        """Consoles here are no connections."""

    def _begin(self, request: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(request)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _live(self) -> None:
        while not self.is_over:
            if not (self.is_frozen or self.is_paused or self._fetches or self._region.is_still):
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
            ingest = self._region.listener(request.url)
            status = 503
            with suppress(MatchpodError):
                if ingest is not None:
                    token = request.url.rpartition("/")[2]
                    status = await ingest.take_log(token, dict(request.headers), request.body)
            stream.answered(listener, status)


class SimulatedConsole:
    """A console of a simulated server."""

    def __init__(self, server: SimulatedServer) -> None:
        self._server = server

    async def run(self, command: str, *, timeout_s: float = 10.0) -> str:
        await self._server.work(self._server.command_ms)
        if self._server.is_over or self._server.is_frozen or self._server.machine.is_busy:
            raise ConsoleLostError("no answer")
        return self._server.execute(command)

    async def close(self) -> None:
        pass


class SimulatedRegion:
    """A fleet and the consoles of its servers."""

    def __init__(self, slots: Sequence[str] = ("a", "b", "c"), *, start_ms: int) -> None:
        self._slots = slots
        self._start_ms = start_ms
        self._listeners: dict[str, Ingest] = {}
        self._started = 0
        self.running: dict[str, SimulatedServer] = {}
        self.orders: list[ServerOrder] = []
        self.releases: list[str] = []
        self.is_still = False
        self.failing: list[Exception] = []
        """What the next allocations fail with."""
        self.stuck: list[Exception] = []
        """What the next releases fail with."""
        self.deaf: list[Exception] = []
        """What the next consoles fail with."""
        self.ignored: set[str] = set()
        """Commands that do nothing."""
        self.command_ms = 0
        """How much of the game passes while a new server works on a console command: as on a slow machine."""
        self.lent: SimulatedServer | None = None
        """The one server that all matches get, one after the other."""

    def listen(self, base: str, ingest: Ingest) -> None:
        """Whoever posts to an address that begins so reaches this process."""
        self._listeners[base] = ingest

    def hang_up(self, base: str) -> None:
        """Nobody listens there any more."""
        del self._listeners[base]

    def listener(self, url: str) -> Ingest | None:
        return next((ingest for base, ingest in self._listeners.items() if url.startswith(base)), None)

    def lend(self) -> SimulatedServer:
        """Have one server, which somebody else runs, instead of one a match."""
        order = ServerOrder(
            server_id="", slot="", map_name="de_dust2", game_type=0, game_mode=1, rcon_password=OPERATORS_PASSWORD
        )
        self.lent = SimulatedServer(self, order, start_ms=self._start_ms, number=99)
        return self.lent

    # --- the fleet ------------------------------------------------------------------------------------------------

    @property
    def slots(self) -> Sequence[str]:
        return self._slots

    async def allocate(self, order: ServerOrder) -> GameServer:
        self.orders.append(order)
        if self.failing:
            raise self.failing.pop(0)
        if self.lent is not None:
            self.running[order.server_id] = self.lent
            return self._found(order, OPERATORS_PASSWORD)
        if order.server_id not in self.running:
            if any(order.slot == one.slot for one in self.orders if one.server_id in self.running):
                raise FleetError("another server has this place")
            self._started += 1
            self.running[order.server_id] = SimulatedServer(self, order, start_ms=self._start_ms, number=self._started)
        return self._found(order, order.rcon_password)

    def _found(self, order: ServerOrder, password: str) -> GameServer:
        return GameServer(
            ip="203.0.113.7",
            port=27015,
            rcon_host=order.server_id,
            rcon_port=1,
            rcon_password=password,
            is_fresh=self.lent is None,
        )

    async def is_alive(self, server_id: str, slot: str) -> bool:
        server = self.running.get(server_id)
        return server is not None and not server.is_over

    async def release(self, server_id: str, slot: str) -> None:
        if self.stuck:
            raise self.stuck.pop(0)
        self.releases.append(server_id)
        server = self.running.pop(server_id, None)
        if server is not None and server is not self.lent:
            await server.close()

    async def servers(self) -> Sequence[str]:
        return tuple(self.running)

    async def close(self) -> None:
        for server in {*self.running.values(), *([self.lent] if self.lent else [])}:
            await server.close()

    # --- the consoles ---------------------------------------------------------------------------------------------

    async def open(self, host: str, port: int, password: str) -> SimulatedConsole:
        if self.deaf:
            raise self.deaf.pop(0)
        server = self.running.get(host)
        if server is None or server.is_over or password != server.machine.rcon_password:
            raise ConsoleLostError("nobody is there")
        return SimulatedConsole(server)
