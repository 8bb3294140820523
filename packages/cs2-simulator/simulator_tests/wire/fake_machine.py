"""A fake machine whose console commands do one thing each, for tests of the code around it."""

from __future__ import annotations

from cs2_protocol.log_lines.world_lines import ConsoleChat, LogFileClosed, ServerMessage
from cs2_simulator.agenda import Agenda, Script
from cs2_simulator.log_stream import GameHeaders, LogStream
from cs2_simulator.options import ServerOptions
from cs2_simulator.outside import FetchResult, Outside

PASSWORD = "a password"


class FakeMachine:
    def __init__(self, options: ServerOptions, outside: Outside, *, start_ms: int, instance_token: str) -> None:
        self.options = options
        self.outside = outside
        self.start_ms = start_ms
        self.instance_token = instance_token
        self.agenda = Agenda(start_ms)
        self.stream = LogStream(self.agenda, describe=self._describe)
        self.stream.is_on = True
        self.is_busy = self.is_lockstep = False
        self.rcon_password = options.rcon_password or PASSWORD
        self.beats = 0
        self.executed: list[tuple[str, str]] = []
        self.fetched: list[FetchResult] = []

    def boot(self) -> None:
        for command in self.options.commands:
            self.execute(command, "")

    def execute(self, text: str, source: str) -> str:
        self.executed.append((text, source))
        name, _, value = text.partition(" ")
        handler = getattr(self, f"do_{name}", None)
        if handler is None:
            return f"unknown {name}"
        answer = handler(value)
        assert isinstance(answer, str)
        return answer

    def do_echo(self, value: str) -> str:
        return value

    def do_big(self, value: str) -> str:
        return "x" * int(value)

    def do_time(self, _value: str) -> str:
        return str(self.agenda.now_ms - self.start_ms)

    def do_say(self, value: str) -> str:
        self.stream.write(ConsoleChat(value))
        return ""

    def do_listen(self, url: str) -> str:
        self.stream.add(url)
        return ""

    def do_map(self, _value: str) -> str:
        self.stream.begin_map()
        return ""

    def do_beat(self, value: str) -> str:
        def script() -> Script[None]:
            while True:
                self.beats += 1
                self.stream.write(ConsoleChat(f"beat {self.beats}"))
                yield int(value)

        self.agenda.start(script())
        return ""

    def do_busy(self, value: str) -> str:
        self.is_busy = True
        self.agenda.call_in(int(value), self._end_busy)
        return "busy"

    def do_fetch(self, url: str) -> str:
        self.outside.fetch(url, {"X-Key": "value"}, self._on_fetched)
        return ""

    def do_fetch_and_fail(self, url: str) -> str:
        self.outside.fetch(url, {}, lambda _fetched: self._fail())
        return ""

    def do_report(self, url: str) -> str:
        self.outside.send_report(url, {"Content-Type": "application/json; charset=utf-8"}, b"{}")
        return ""

    def do_speed(self, value: str) -> str:
        self.outside.set_speed(float(value))
        return ""

    def do_password(self, value: str) -> str:
        self.rcon_password = value
        return ""

    def do_drop(self, _value: str) -> str:
        self.outside.drop_rcon_connections()
        return "dropped"

    def do_hang(self, _value: str) -> str:
        self.agenda.call_in(0, self.outside.hang)
        return ""

    def do_crash(self, _value: str) -> str:
        self.agenda.call_in(0, lambda: self.outside.exit(is_crash=True))
        return ""

    def do_quit(self, _value: str) -> str:
        self.stream.write(ServerMessage("quit"))
        self.stream.write(LogFileClosed())
        self.outside.exit(is_crash=False)
        return ""

    def do_fail(self, _value: str) -> str:
        self._fail()
        return ""

    def do_fail_later(self, _value: str) -> str:
        self.agenda.call_in(0, self._fail)
        return ""

    def _fail(self) -> None:
        raise ZeroDivisionError("machine failed")

    def _end_busy(self) -> None:
        self.is_busy = False

    def _on_fetched(self, fetched: FetchResult) -> None:
        self.fetched.append(fetched)
        self.stream.write(ConsoleChat(f"fetched {fetched.status}"))

    def _describe(self) -> GameHeaders:
        return GameHeaders(
            map_name=self.options.map,
            server_address=f"{self.options.ip}:{self.options.port}",
            steam_id="[A:1:1:1]",
            instance_token=self.instance_token,
        )
