"""Which log lines does a server send to whom, and what becomes of the answers? No sockets.

The rules: lines are sent by whole ticks, in batches, the bytes of a map are numbered from 0. Each listener has its own
place and one request under way. 200 moves it on, 205 back to the start of the map, 410 removes it; anything else is no
answer, and the same bytes go out again with what came since. A map load forgets what was not sent. Nothing is recorded
while nobody listens, unless told otherwise; nothing is recorded or sent while the log is off.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from zlib import crc32

import msgspec

from matchpod.cs2.log_clock import format_stamp
from matchpod.cs2.log_lines.reader import Line
from matchpod.simulator.agenda import TICKS_PER_S, Agenda
from matchpod.simulator.kept_bytes import KeptBytes

MAX_BODY_BYTES = 250_000
"""A post is not filled beyond this; one batch alone is sent whatever its size."""

FIRST_TICK = 71
"""The tick in which a map's log begins; twelve real loads had 69 to 72."""

BATCH_LINES = 256
"""Ticks are closed into a batch when they have so many lines, or when somebody is ready to take them."""

ACKNOWLEDGED = 200
REWIND = 205
GONE = 410


class GameHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """What a post says of the game besides its lines."""

    map_name: str
    state: str = "Warmup"
    team_ct: str = "CT"
    score_ct: int = 0
    team_t: str = "T"
    score_t: int = 0
    server_address: str
    """Address and port."""
    steam_id: str
    """The server's own, such as `[A:1:2404786178:50561]`."""
    instance_token: str
    """16 hexadecimal digits, the same as long as the process lives."""
    token_secret: str = ""
    """The value of logaddress_token_secret."""


class LogRequest(msgspec.Struct, frozen=True):
    """A post to make: where, its header lines in their order, each with its line end, and its body."""

    url: str
    head: bytes
    body: bytes

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Names and values of the header lines."""
        lines = self.head.decode().split("\r\n")[:-1]
        return tuple((name, value) for name, _, value in (line.partition(": ") for line in lines))


class ListenerState(msgspec.Struct, frozen=True):
    """A listener as the console lists it."""

    url: str
    has_pending_request: bool
    acknowledged_tick: int


class Listener:
    """One address that gets the log."""

    __slots__ = (
        "acknowledged_tick",
        "delay_ticks",
        "next_batch",
        "not_before_s",
        "requested_load",
        "requested_to",
        "url",
    )

    def __init__(self, url: str, delay_ms: int) -> None:
        self.url = url
        self.delay_ticks = -(-delay_ms * TICKS_PER_S // 1000)
        self.next_batch = 0
        self.acknowledged_tick = 0
        self.requested_to: int | None = None
        """The batch after the last one of the request under way; None: none is."""
        self.requested_load = 0
        self.not_before_s = 0.0
        """A note of whoever sends: when the next request may be made, by a clock of its own."""


class LogStream:
    """The log of one server."""

    def __init__(
        self,
        agenda: Agenda,
        *,
        describe: Callable[[], GameHeaders],
        is_losing: Callable[[], bool] | None = None,
    ) -> None:
        """`is_losing` is asked once for each tick that has lines: True loses them on their way out."""
        self._agenda = agenda
        self._describe = describe
        self._is_losing = is_losing
        self._listeners: list[Listener] = []
        self._is_on = False
        self._records_early = False
        self._is_recording = False
        self._load = 0
        self._prefix = ""
        self._stamp = ""
        self._minute = -1
        self._begin()

    @property
    def is_on(self) -> bool:
        """`log on`, `log off`: off at first, as in the game."""
        return self._is_on

    @is_on.setter
    def is_on(self, is_on: bool) -> None:
        self._is_on = is_on
        self._choose_recording()

    @property
    def records_early(self) -> bool:
        """Record before anybody listens (sv_log_http_record_before_any_listeners)."""
        return self._records_early

    @records_early.setter
    def records_early(self, records_early: bool) -> None:
        self._records_early = records_early
        self._choose_recording()

    def write(self, line: Line) -> None:
        """Log a line at the present tick."""
        if not self._is_recording:
            return
        if self._agenda.tick != self._tick:
            self._turn_to(self._agenda.tick)
        self._texts.append(f"{self._prefix}{line.text()}\n")

    def begin_map(self) -> None:
        """A map load begins: what was not sent of the map before is lost, bytes and ticks count from 0 again."""
        self._begin()
        for listener in self._listeners:
            listener.next_batch = 0
            listener.acknowledged_tick = 0

    def add(self, url: str, delay_ms: int = 0) -> None:
        """Send the log there, so much later than it happens, from the start of the map as far as it was recorded.

        A URL that is already listening stays as it is.
        """
        if all(listener.url != url for listener in self._listeners):
            self._listeners.append(Listener(url, delay_ms))
            self._choose_recording()

    def remove(self, url: str) -> bool:
        """Send the log there no more; False when it never was."""
        kept = [listener for listener in self._listeners if listener.url != url]
        is_known = len(kept) < len(self._listeners)
        self._listeners = kept
        self._choose_recording()
        return is_known

    def remove_all(self) -> None:
        """Send the log nowhere."""
        self._listeners = []
        self._choose_recording()

    def list(self) -> Sequence[ListenerState]:
        """Who gets the log, in the order they came."""
        return [
            ListenerState(listener.url, listener.requested_to is not None, listener.acknowledged_tick)
            for listener in self._listeners
        ]

    @property
    def idle_listeners(self) -> Sequence[Listener]:
        """Those without a request under way."""
        return [listener for listener in self._listeners if listener.requested_to is None]

    @property
    def is_acknowledged(self) -> bool:
        """True when every listener acknowledged all lines of the ticks that are over; delayed listeners aside."""
        self._close_ticks()
        batches = len(self._begins) if self._is_on else 0
        return all(listener.delay_ticks or listener.next_batch >= batches for listener in self._listeners)

    def has_lines_for(self, listener: Listener) -> bool:
        """True when a listener is to get lines it did not acknowledge yet, whether their tick is over or not."""
        return self._is_on and (listener.next_batch < len(self._begins) or bool(self._texts and not self._is_lost))

    def next_request(self, listener: Listener) -> LogRequest | None:
        """What to send a listener now; None when there is nothing or a request is under way.

        Its outcome is to be told by `answered`. Time is the agenda's: move it to the present before.
        """
        if listener.requested_to is not None or not self._is_on or listener not in self._listeners:
            return None
        self._close_ticks()
        first = listener.next_batch
        last_tick = self._agenda.tick - listener.delay_ticks
        after = first
        while after < len(self._begins) and self._last_ticks[after] <= last_tick and self._fits(first, after):
            after += 1
        if after == first:
            return None
        listener.requested_to = after
        listener.requested_load = self._load
        return self._request(listener, first, after)

    def answered(self, listener: Listener, status: int | None) -> None:
        """Take the answer to a listener's request; None: there was none, or not in time."""
        requested_to, listener.requested_to = listener.requested_to, None
        if requested_to is None or listener.requested_load != self._load or listener not in self._listeners:
            return
        if status == ACKNOWLEDGED:
            listener.next_batch = requested_to
            listener.acknowledged_tick = self._last_ticks[requested_to - 1] - self._tick_0
        elif status == REWIND:
            listener.next_batch = 0
        elif status == GONE:
            self.remove(listener.url)

    def _begin(self) -> None:
        """Forget all lines; byte 0 and the first tick are here."""
        self._load += 1
        self._tick_0 = self._agenda.tick - FIRST_TICK
        # Of the last line, of the one before, of the first one of the batch.
        self._tick = self._last_tick = self._batch_tick = -1
        self._texts: list[str] = []
        self._open_from = 0  # where the lines of the present tick begin
        self._is_lost = False
        self._end = 0
        self._kept = KeptBytes()
        # Batches, as columns, which take a tenth of the memory of objects: the number of the first byte, the place
        # after the last one in `_kept` (lost bytes have numbers but no place), the first and the last tick.
        self._begins = array("q")
        self._places = array("q")
        self._first_ticks = array("q")
        self._last_ticks = array("q")

    def _choose_recording(self) -> None:
        was_recording = self._is_recording
        has_reader = bool(self._listeners) or self._records_early
        self._is_recording = self._is_on and has_reader
        if was_recording and not has_reader:
            self._begin_unheard()

    def _begin_unheard(self) -> None:
        """Forget what was recorded for listeners that are gone; the ticks of the map go on."""
        tick_0 = self._tick_0
        self._begin()
        self._tick_0 = tick_0

    def _turn_to(self, tick: int) -> None:
        """The first line of a tick is about to be written."""
        is_lost = self._is_losing is not None and self._is_losing()
        if len(self._texts) >= BATCH_LINES or is_lost != self._is_lost:
            self._open_from = len(self._texts)
            self._close_batch()
            self._is_lost = is_lost
        if not self._texts:
            self._batch_tick = tick
        self._open_from = len(self._texts)
        self._last_tick, self._tick = self._tick, tick
        self._prefix = f"{self._stamp_now()} - "

    def _stamp_now(self) -> str:
        now_ms = self._agenda.now_ms
        minute, millis = divmod(now_ms, 60_000)
        if minute != self._minute:  # most of a stamp is that of a moment ago
            self._minute = minute
            self._stamp = format_stamp(now_ms, millis=False)[:-2]
        return f"{self._stamp}{millis // 1000:02}.{millis % 1000:03}"

    def _close_ticks(self) -> None:
        """Make a batch of the lines whose tick is over."""
        if self._tick != self._agenda.tick:
            self._open_from = len(self._texts)
        self._close_batch()

    def _close_batch(self) -> None:
        if not self._open_from:
            return
        still_open = self._texts[self._open_from :]
        body = "".join(self._texts[: self._open_from]).encode("utf-8", "replace")
        if not self._is_lost:
            self._kept.append(body)
            self._begins.append(self._end)
            self._places.append(len(self._kept))
            self._first_ticks.append(self._batch_tick)
            self._last_ticks.append(self._last_tick if still_open else self._tick)
        self._end += len(body)
        self._texts = still_open
        self._open_from = 0
        self._batch_tick = self._tick

    def _place_of(self, batch: int) -> int:
        return self._places[batch - 1] if batch else 0

    def _fits(self, first: int, batch: int) -> bool:
        """True when a batch can follow in the request that begins with another: no lost bytes between, not too long."""
        if batch == first:
            return True
        place = self._place_of(first)
        follows = self._begins[batch] - self._begins[first] == self._place_of(batch) - place
        return follows and self._places[batch] - place <= MAX_BODY_BYTES

    def _request(self, listener: Listener, first: int, after: int) -> LogRequest:
        body = self._kept.read(self._place_of(first), self._place_of(after))
        begin = self._begins[first]
        game = self._describe()
        unique = f"X-Server-Unique-Token: {_unique_token(game)}\r\n" if game.token_secret else ""
        head = (
            f"X-LogBytes-BeginOffset: {begin}\r\n"
            f"X-LogBytes-EndOffset: {begin + len(body)}\r\n"
            f"X-Tick-Start: {self._first_ticks[first] - self._tick_0}\r\n"
            f"X-Tick-End: {self._last_ticks[after - 1] - self._tick_0}\r\n"
            f"X-SteamID: {game.steam_id}\r\n"
            f"X-Server-Addr: {_one_line(game.server_address)}\r\n"
            f"X-Timestamp: {self._stamp_now()}\r\n"
            f"X-Server-Instance-Token: {game.instance_token}\r\n"
            f"{unique}"
            f"X-Game-Map: {_one_line(game.map_name)}\r\n"
            f"X-Game-State: {game.state}\r\n"
            f"X-Game-TeamCT: {_one_line(game.team_ct)}\r\n"
            f"X-Game-ScoreCT: {game.score_ct}\r\n"
            f"X-Game-TeamT: {_one_line(game.team_t)}\r\n"
            f"X-Game-ScoreT: {game.score_t}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Content-Type: text/plain\r\n"
            "Accept: text/html,*/*;q=0.9\r\n"
            "Accept-Charset: ISO-8859-1,utf-8,*;q=0.7\r\n"
            "Accept-Encoding: gzip,identity,*;q=0\r\n"
            f"Host: {_one_line(_host(listener.url))}\r\n"
            "User-Agent: Valve/Steam HTTP Client 1.0 (730)\r\n"
        )
        return LogRequest(listener.url, head.encode("utf-8", "replace"), body)


def _host(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    return authority.rpartition("@")[2]


def _one_line(value: str) -> str:
    """A value that cannot end its header line: names of teams and maps are anybody's."""
    return value if value.isprintable() else "".join(char if char >= " " and char != "\x7f" else " " for char in value)


def _unique_token(game: GameHeaders) -> str:
    # Receivers take it for a CRC64 of secret and address; of which bytes exactly is not known, so any 16 digits do.
    secret = f"{game.token_secret}{game.server_address}".encode("utf-8", "replace")
    return f"{crc32(secret):08x}{crc32(secret[::-1]):08x}"
