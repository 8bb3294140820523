"""Buffer a server's log, and build the posts to each HTTP listener. This module uses no sockets.

Lines are posted in batches of complete ticks; byte offsets start at 0 with each map load. Each listener has its own
position and at most one request in flight. Response status 200 advances the position, 205 rewinds it to the start of
the map, and 410 removes the listener. Any other status counts as no response: the same bytes are sent again, together
with newer bytes. A map load discards unsent lines. Lines are not recorded while the log is off, or while there are no
listeners (unless `records_early` is set).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from zlib import crc32

import msgspec

from cs2_protocol.log_clock import format_stamp
from cs2_protocol.log_lines.reader import Line
from cs2_simulator.agenda import TICKS_PER_S, Agenda
from cs2_simulator.kept_bytes import KeptBytes

MAX_BODY_BYTES = 250_000
"""Maximum number of bytes in a post. A single batch that is larger is still sent."""

FIRST_TICK = 71
"""Number of the tick in which the log of a map begins. In twelve real map loads it was 69 to 72."""

BATCH_LINES = 256
"""Number of lines after which completed ticks become a batch. A batch also ends when a listener is ready for a
request."""

ACKNOWLEDGED = 200
REWIND = 205
GONE = 410


class GameHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the game that is sent in the headers of a post."""

    map_name: str
    state: str = "Warmup"
    team_ct: str = "CT"
    score_ct: int = 0
    team_t: str = "T"
    score_t: int = 0
    server_address: str
    """IP address and port of the server."""
    steam_id: str
    """The server's own Steam ID, such as `[A:1:2404786178:50561]`."""
    instance_token: str
    """16 hexadecimal digits, constant for the lifetime of the process."""
    token_secret: str = ""
    """Value of `logaddress_token_secret`."""


class LogRequest(msgspec.Struct, frozen=True):
    """A log post: URL, header lines in order (each with its line end) and body."""

    url: str
    head: bytes
    body: bytes

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        lines = self.head.decode().split("\r\n")[:-1]
        return tuple((name, value) for name, _, value in (line.partition(": ") for line in lines))


class LogReceiver:
    """A listener: a URL to which the log is posted, and the listener's position in the log."""

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
        """End (exclusive) of the batches of the request in flight, or None if no request is in flight."""
        self.requested_load = 0
        self.not_before_s = 0.0
        """Earliest time of the next request. Set and read by the sender, in the time of its own clock."""


class LogStream:
    def __init__(
        self,
        agenda: Agenda,
        *,
        describe: Callable[[], GameHeaders],
        is_tick_lost: Callable[[], bool] | None = None,
        is_post_lost: Callable[[bytes], bool] | None = None,
        is_asleep: Callable[[], bool] = lambda: False,
        clock_offset_ms: int = 0,
    ) -> None:
        """`is_tick_lost` is called once per tick that has lines. If it returns True, those lines are never sent.

        `is_post_lost` is called with each post to the first listener. If it returns True, the post counts as
        acknowledged and does not arrive. While `is_asleep` returns True, nothing is sent. `clock_offset_ms` is
        added to the time stamps of the log.
        """
        self._agenda = agenda
        self._describe = describe
        self._is_tick_lost = is_tick_lost
        self._is_post_lost = is_post_lost
        self._is_asleep = is_asleep
        self._clock_offset_ms = clock_offset_ms
        self.listeners: list[LogReceiver] = []
        """The listeners in the order they were added."""
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
        """True after `log on`, False after `log off`. Initially False, as in the game."""
        return self._is_on

    @is_on.setter
    def is_on(self, is_on: bool) -> None:
        self._is_on = is_on
        self._update_recording()

    @property
    def records_early(self) -> bool:
        """True if lines are recorded even without listeners (`sv_log_http_record_before_any_listeners`)."""
        return self._records_early

    @records_early.setter
    def records_early(self, records_early: bool) -> None:
        self._records_early = records_early
        self._update_recording()

    def write(self, line: Line) -> None:
        """Log a line at the current tick."""
        if not self._is_recording:
            return
        if self._agenda.tick != self._tick:
            self._start_tick(self._agenda.tick)
        self._texts.append(f"{self._prefix}{line.text()}\n")

    def begin_map(self) -> None:
        """Start the log of a new map: discard all lines, restart byte offsets at 0 and ticks at FIRST_TICK."""
        self._begin()
        for listener in self.listeners:
            listener.next_batch = 0
            listener.acknowledged_tick = 0

    def add(self, url: str, delay_ms: int = 0) -> None:
        """Add a listener. It receives all lines recorded since the start of the current map, delayed by `delay_ms`.

        Does nothing if the URL is already a listener.
        """
        if all(listener.url != url for listener in self.listeners):
            self.listeners.append(LogReceiver(url, delay_ms))
            self._update_recording()

    def remove(self, url: str) -> bool:
        """Remove a listener. Return False if the URL is not a listener."""
        remaining = [listener for listener in self.listeners if listener.url != url]
        is_known = len(remaining) < len(self.listeners)
        self.listeners = remaining
        self._update_recording()
        return is_known

    def remove_all(self) -> None:
        self.listeners = []
        self._update_recording()

    @property
    def idle_listeners(self) -> Sequence[LogReceiver]:
        return [listener for listener in self.listeners if listener.requested_to is None]

    @property
    def is_acknowledged(self) -> bool:
        """True if the log is off, or every listener without a delay has acknowledged all lines of completed ticks."""
        self._close_ticks()
        batches = len(self._offsets) if self._is_on else 0
        return all(listener.delay_ticks or listener.next_batch >= batches for listener in self.listeners)

    def has_lines_for(self, listener: LogReceiver) -> bool:
        """True if the log is on and has lines, even of the current tick, that this listener has not acknowledged."""
        return self._is_on and (listener.next_batch < len(self._offsets) or bool(self._texts and not self._is_lost))

    def next_request(self, listener: LogReceiver) -> LogRequest | None:
        """Return the next request to a listener, or None if there is nothing to send or a request is in flight.

        Advance the agenda to the current time first, and report the outcome with `handle_response`.
        """
        if listener.requested_to is not None or not self._is_on or listener not in self.listeners or self._is_asleep():
            return None
        self._close_ticks()
        request = self._next_request(listener)
        while request is not None and self._is_lost_on_its_way(listener, request):
            self.handle_response(listener, ACKNOWLEDGED)
            request = self._next_request(listener)
        return request

    def _is_lost_on_its_way(self, listener: LogReceiver, request: LogRequest) -> bool:
        return self._is_post_lost is not None and listener is self.listeners[0] and self._is_post_lost(request.body)

    def _next_request(self, listener: LogReceiver) -> LogRequest | None:
        first = listener.next_batch
        last_tick = self._agenda.tick - listener.delay_ticks
        after = first
        while after < len(self._offsets) and self._last_ticks[after] <= last_tick and self._fits(first, after):
            after += 1
        if after == first:
            return None
        listener.requested_to = after
        listener.requested_load = self._load
        return self._request(listener, first, after)

    def handle_response(self, listener: LogReceiver, status: int | None) -> None:
        """Apply the response to a listener's request. `status` None means that no response arrived in time."""
        requested_to, listener.requested_to = listener.requested_to, None
        if requested_to is None or listener.requested_load != self._load or listener not in self.listeners:
            return
        if status == ACKNOWLEDGED:
            listener.next_batch = requested_to
            listener.acknowledged_tick = self._last_ticks[requested_to - 1] - self._tick_0
        elif status == REWIND:
            listener.next_batch = 0
        elif status == GONE:
            self.remove(listener.url)

    def _begin(self) -> None:
        self._load += 1
        self._tick_0 = self._agenda.tick - FIRST_TICK
        # Ticks of the last line, of the last line in an earlier tick, and of the first line of the batch.
        self._tick = self._last_tick = self._batch_tick = -1
        self._texts: list[str] = []
        self._open_from = 0  # index of the first line of the current tick
        self._is_lost = False
        self._end = 0
        self._kept = KeptBytes()
        # Batches are stored as columns, which need a tenth of the memory of objects: offset of the first byte, end
        # position in `_kept` (lost bytes have offsets but no position), first and last tick.
        self._offsets = array("q")
        self._positions = array("q")
        self._first_ticks = array("q")
        self._last_ticks = array("q")

    def _update_recording(self) -> None:
        is_needed = bool(self.listeners) or self._records_early
        if self._is_recording and not is_needed:
            # Discard the lines recorded for removed listeners. Ticks of the map keep counting.
            tick_0 = self._tick_0
            self._begin()
            self._tick_0 = tick_0
        self._is_recording = self._is_on and is_needed

    def _start_tick(self, tick: int) -> None:
        is_lost = self._is_tick_lost is not None and self._is_tick_lost()
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
        now_ms = self._agenda.now_ms + self._clock_offset_ms
        minute, millis = divmod(now_ms, 60_000)
        if minute != self._minute:  # date, hour and minute are cached
            self._minute = minute
            self._stamp = format_stamp(now_ms, millis=False)[:-2]
        return f"{self._stamp}{millis // 1000:02}.{millis % 1000:03}"

    def _close_ticks(self) -> None:
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
            self._offsets.append(self._end)
            self._positions.append(len(self._kept))
            self._first_ticks.append(self._batch_tick)
            self._last_ticks.append(self._last_tick if still_open else self._tick)
        self._end += len(body)
        self._texts = still_open
        self._open_from = 0
        self._batch_tick = self._tick

    def _position_of(self, batch: int) -> int:
        return self._positions[batch - 1] if batch else 0

    def _fits(self, first: int, batch: int) -> bool:
        """True if a request from batch `first` can include `batch`: no bytes between were lost, and the body fits."""
        if batch == first:
            return True
        position = self._position_of(first)
        follows = self._offsets[batch] - self._offsets[first] == self._position_of(batch) - position
        return follows and self._positions[batch] - position <= MAX_BODY_BYTES

    def _request(self, listener: LogReceiver, first: int, after: int) -> LogRequest:
        body = self._kept.read(self._position_of(first), self._position_of(after))
        begin = self._offsets[first]
        game = self._describe()
        unique = f"X-Server-Unique-Token: {_unique_token(game)}\r\n" if game.token_secret else ""
        head = (
            f"X-LogBytes-BeginOffset: {begin}\r\n"
            f"X-LogBytes-EndOffset: {begin + len(body)}\r\n"
            f"X-Tick-Start: {self._first_ticks[first] - self._tick_0}\r\n"
            f"X-Tick-End: {self._last_ticks[after - 1] - self._tick_0}\r\n"
            f"X-SteamID: {game.steam_id}\r\n"
            f"X-Server-Addr: {one_line(game.server_address)}\r\n"
            f"X-Timestamp: {self._stamp_now()}\r\n"
            f"X-Server-Instance-Token: {game.instance_token}\r\n"
            f"{unique}"
            f"X-Game-Map: {one_line(game.map_name)}\r\n"
            f"X-Game-State: {game.state}\r\n"
            f"X-Game-TeamCT: {one_line(game.team_ct)}\r\n"
            f"X-Game-ScoreCT: {game.score_ct}\r\n"
            f"X-Game-TeamT: {one_line(game.team_t)}\r\n"
            f"X-Game-ScoreT: {game.score_t}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Content-Type: text/plain\r\n"
            "Accept: text/html,*/*;q=0.9\r\n"
            "Accept-Charset: ISO-8859-1,utf-8,*;q=0.7\r\n"
            "Accept-Encoding: gzip,identity,*;q=0\r\n"
            f"Host: {one_line(_host(listener.url))}\r\n"
            "User-Agent: Valve/Steam HTTP Client 1.0 (730)\r\n"
        )
        return LogRequest(listener.url, head.encode("utf-8", "replace"), body)


def _host(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0]
    return authority.rpartition("@")[2]


def one_line(value: str) -> str:
    """Replace control characters with spaces, so that a team or map name cannot end its header line."""
    return value if value.isprintable() else "".join(char if char >= " " and char != "\x7f" else " " for char in value)


def _unique_token(game: GameHeaders) -> str:
    # The header is documented as a CRC64 of secret and address, but not how their bytes are joined. So any 16 digits
    # derived from both are sufficient.
    secret = f"{game.token_secret}{game.server_address}".encode("utf-8", "replace")
    return f"{crc32(secret):08x}{crc32(secret[::-1]):08x}"
