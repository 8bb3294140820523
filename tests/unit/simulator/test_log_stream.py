"""What a server sends of its log, to whom, and what it makes of the answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchpod.cs2.log_batches import Gap, LogCursor, Notice, read_post
from matchpod.cs2.log_clock import parse_stamp
from matchpod.cs2.log_lines.reader import LineReader
from matchpod.cs2.log_lines.world_lines import ConsoleChat, WorldTriggered
from matchpod.simulator.agenda import TICKS_PER_S, Agenda
from matchpod.simulator.log_stream import (
    BATCH_LINES,
    FIRST_TICK,
    MAX_BODY_BYTES,
    GameHeaders,
    Listener,
    LogRequest,
    LogStream,
)
from tests.effort import examples

START_MS = parse_stamp("07/17/2026 - 18:14:24.000") or 0
URL = "http://127.0.0.1:9090/log"
OTHER_URL = "http://127.0.0.1:9091/other?x=1"
TICK_MS = 16


def headers_of_the_game() -> GameHeaders:
    return GameHeaders(
        map_name="de_dust2",
        server_address="203.0.113.1:27015",
        steam_id="[A:1:2404786178:50561]",
        instance_token="7be6ded70c65df71",
    )


class Server:
    """A stream with its clock, and short words for what the tests do with it."""

    def __init__(self, *urls: str, is_losing: Callable[[], bool] | None = None) -> None:
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=headers_of_the_game, is_losing=is_losing)
        self.stream.is_on = True
        for url in urls:
            self.stream.add(url)

    def say(self, *texts: str) -> None:
        """Log texts, each in a tick of its own that is over afterwards."""
        for text in texts:
            self.stream.write(ConsoleChat(text))
            self.pass_tick()

    def pass_tick(self, ticks: int = 1) -> None:
        self.agenda.run_until(START_MS - (-(self.agenda.tick + ticks) * 1000 // TICKS_PER_S))

    def listener(self, url: str = URL) -> Listener:
        return next(listener for listener in self.stream.idle_listeners if listener.url == url)

    def request(self, url: str = URL) -> LogRequest | None:
        return self.stream.next_request(self.listener(url))

    def post(self, status: int | None = 200, url: str = URL) -> tuple[int, int, list[str]]:
        """Make one request and answer it: its offsets and the texts in it."""
        listener = self.listener(url)
        request = self.stream.next_request(listener)
        assert request is not None
        self.stream.answered(listener, status)
        return summary(request)


def summary(request: LogRequest) -> tuple[int, int, list[str]]:
    post = read_post(dict(request.headers), request.body, received_ms=0)
    assert post.begin is not None
    assert post.end is not None
    assert post.end - post.begin == len(request.body)
    return post.begin, post.end, texts_in(request.body)


def ticks_of(request: LogRequest) -> tuple[int, int]:
    """The first and the last tick of a request, counted from the start of the map's log."""
    headers = dict(request.headers)
    return int(headers["X-Tick-Start"]) - FIRST_TICK, int(headers["X-Tick-End"]) - FIRST_TICK


def texts_in(body: bytes) -> list[str]:
    reader = LineReader()
    lines = [reader.read(raw)[1] for raw in body.split(b"\n")[:-1]]
    return [line.said for line in lines if isinstance(line, ConsoleChat)]


def test_headers_are_those_of_a_real_post_in_their_order(corpus: Path) -> None:
    transcript = (corpus / "cs2-http-posts.txt").read_text(encoding="utf-8")
    real = next(line for line in transcript.splitlines() if line.startswith("HEADERS: "))
    names = [part.partition("=")[0] for part in real.removeprefix("HEADERS: ").split("; ")]
    server = Server(URL)
    server.say("hello")
    request = server.request()
    assert request is not None
    assert [name for name, _ in request.headers] == names


def test_header_values_are_those_of_a_real_post(corpus: Path) -> None:
    transcript = (corpus / "cs2-http-posts.txt").read_text(encoding="utf-8")
    real = next(line for line in transcript.splitlines() if line.startswith("HEADERS: "))
    server = Server(URL)
    server.say("hello")
    request = server.request()
    assert request is not None
    told = {"X-LogBytes-EndOffset", "X-Tick-Start", "X-Tick-End", "X-Timestamp", "X-Game-Map", "Content-Length"}
    assert [f"{name}={value}" for name, value in request.headers if name not in told] == [
        part for part in real.removeprefix("HEADERS: ").split("; ") if part.partition("=")[0] not in told
    ]


def test_the_log_of_a_map_begins_in_the_tick_of_real_loads(corpus: Path) -> None:
    posts = (corpus / "cs2-http-posts.txt").read_text(errors="replace")
    loads = re.findall(r"BeginOffset=0; .*? X-Tick-Start=(\d+);.*\nBODY:\n.*\[META\]", posts)
    assert loads
    assert min(map(int, loads)) <= FIRST_TICK <= max(map(int, loads))
    server = Server(URL)
    server.pass_tick(1000)
    server.stream.begin_map()
    server.say("one")
    request = server.request()
    assert request is not None
    assert dict(request.headers)["X-Tick-Start"] == str(FIRST_TICK)


def test_lines_bear_the_time_of_their_tick_in_milliseconds() -> None:
    server = Server(URL)
    server.pass_tick(16)
    server.stream.write(WorldTriggered("Round_Start"))
    server.pass_tick()
    request = server.request()
    assert request is not None
    assert request.body == b'07/17/2026 - 18:14:24.250 - World triggered "Round_Start"\n'
    assert dict(request.headers)["X-Timestamp"] == "07/17/2026 - 18:14:24.265"
    assert ticks_of(request)[0] == 16


def test_a_tick_that_is_not_over_waits() -> None:
    server = Server(URL)
    server.stream.write(ConsoleChat("one"))
    assert server.request() is None
    assert server.stream.has_lines_for(server.listener())
    server.stream.write(ConsoleChat("two"))
    server.pass_tick()
    assert server.post()[2] == ["one", "two"]


def test_ticks_that_are_over_go_out_without_the_one_that_is_not() -> None:
    server = Server(URL)
    server.say("one", "two")
    server.stream.write(ConsoleChat("three"))
    request = server.request()
    assert request is not None
    assert summary(request)[2] == ["one", "two"]
    assert ticks_of(request) == (0, 1)
    server.stream.answered(server.stream._listeners[0], 200)
    server.pass_tick()
    request = server.request()
    assert request is not None
    assert ticks_of(request) == (2, 2)


def test_acknowledged_lines_are_not_sent_again_and_offsets_go_on() -> None:
    server = Server(URL)
    server.say("one")
    first = server.post()
    server.say("two")
    second = server.post()
    assert first[0] == 0
    assert second[0] == first[1]
    assert second[2] == ["two"]
    assert not server.stream.has_lines_for(server.listener())
    assert server.request() is None


@pytest.mark.parametrize("status", [None, 201, 204, 301, 400, 500, 503])
def test_without_200_the_same_bytes_go_out_again_with_the_newer_ones(status: int | None) -> None:
    server = Server(URL)
    server.say("one")
    first = server.post(status)
    server.say("two")
    second = server.post()
    assert (first[0], second[0]) == (0, 0)
    assert second[1] > first[1]
    assert second[2] == ["one", "two"]


def test_205_sends_the_map_from_its_start() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.say("two")
    server.post(205)
    server.say("three")
    assert server.post()[2] == ["one", "two", "three"]


def test_410_removes_the_listener() -> None:
    server = Server(URL, OTHER_URL)
    server.say("one")
    server.post(410)
    assert [state.url for state in server.stream.list()] == [OTHER_URL]


def test_one_request_is_under_way_at_a_time() -> None:
    server = Server(URL)
    server.say("one")
    listener = server.listener()
    assert server.stream.next_request(listener) is not None
    server.say("two")
    assert server.stream.next_request(listener) is None
    assert server.stream.idle_listeners == []


def test_listeners_are_listed_as_they_stand() -> None:
    server = Server(URL, OTHER_URL)
    server.pass_tick(5)
    server.say("one")
    server.post()
    server.request(OTHER_URL)
    states = [(state.url, state.has_pending_request, state.acknowledged_tick) for state in server.stream.list()]
    assert states == [(URL, False, FIRST_TICK + 5), (OTHER_URL, True, 0)]


def test_adding_a_listener_twice_changes_nothing() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.stream.add(URL)
    assert len(server.stream.list()) == 1
    assert server.request() is None


def test_a_later_listener_gets_the_whole_map() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.stream.add(OTHER_URL)
    server.say("two")
    assert server.post(url=OTHER_URL)[2] == ["one", "two"]
    assert server.post()[2] == ["two"]


def test_nothing_is_recorded_before_anybody_listens() -> None:
    server = Server()
    server.say("one")
    server.stream.add(URL)
    server.say("two")
    assert server.post()[2] == ["two"]


def test_nothing_is_lost_before_anybody_listens_when_told_so() -> None:
    server = Server()
    server.stream.records_early = True
    assert server.stream.records_early
    server.say("one")
    server.stream.add(URL)
    server.say("two")
    assert server.post()[2] == ["one", "two"]


def test_nothing_is_recorded_while_the_log_is_off() -> None:
    server = Server(URL)
    server.say("one")
    server.stream.is_on = False
    assert not server.stream.is_on
    server.say("two")
    server.stream.is_on = True
    server.say("three")
    assert server.post()[2] == ["one", "three"]


def test_nothing_is_sent_while_the_log_is_off() -> None:
    server = Server(URL)
    server.say("one")
    server.stream.is_on = False
    listener = server.listener()
    assert not server.stream.has_lines_for(listener)
    assert server.request() is None
    server.stream.is_on = True
    assert server.stream.has_lines_for(listener)
    assert server.post()[2] == ["one"]


def test_bytes_begin_again_after_the_last_listener_left() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    assert server.stream.remove(URL)
    server.say("two")
    server.stream.add(URL)
    server.say("three")
    assert server.post()[0] == 0
    assert server.request() is None


def test_ticks_go_on_after_the_last_listener_left() -> None:
    server = Server(URL)
    server.say("one")
    server.stream.remove_all()
    server.stream.add(URL)
    server.say("two")
    request = server.request()
    assert request is not None
    assert ticks_of(request) == (1, 1)


def test_removing_who_does_not_listen_is_told() -> None:
    assert not Server(URL).stream.remove(OTHER_URL)


def test_an_answer_for_a_removed_listener_changes_nothing() -> None:
    server = Server(URL, OTHER_URL)
    server.say("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.remove(URL)
    server.stream.answered(listener, 200)
    server.stream.answered(listener, 200)
    assert server.stream.next_request(listener) is None
    assert [state.url for state in server.stream.list()] == [OTHER_URL]


def test_a_map_load_begins_anew_and_loses_the_rest() -> None:
    server = Server(URL)
    server.say("one")
    server.post()
    server.say("two")
    server.stream.begin_map()
    server.pass_tick(3)
    server.say("three")
    listener = server.listener()
    request = server.stream.next_request(listener)
    assert request is not None
    assert summary(request)[0] == 0
    assert summary(request)[2] == ["three"]
    assert ticks_of(request) == (3, 3)


@pytest.mark.parametrize("status", [200, 205, 410, None])
def test_an_answer_to_a_request_of_the_map_before_changes_nothing(status: int | None) -> None:
    server = Server(URL)
    server.say("one")
    listener = server.listener()
    server.stream.next_request(listener)
    server.stream.begin_map()
    server.say("two")
    assert server.stream.next_request(listener) is None
    server.stream.answered(listener, status)
    assert server.post()[2] == ["two"]


def test_a_delayed_listener_gets_lines_later() -> None:
    server = Server()
    server.stream.add(URL, delay_ms=1000)
    server.say("one")
    assert server.request() is None
    server.pass_tick(62)
    assert server.request() is None
    server.pass_tick()
    assert server.post()[2] == ["one"]


def test_posts_are_not_filled_beyond_their_limit() -> None:
    server = Server(URL)
    server.say(*(f"{number:0200}" for number in range(3000)))
    texts: list[str] = []
    while server.stream.has_lines_for(server.listener()):
        begin, end, more = server.post()
        assert end - begin <= MAX_BODY_BYTES
        texts += more
    assert texts == [f"{number:0200}" for number in range(3000)]


def test_one_tick_is_sent_whole_whatever_its_size() -> None:
    server = Server(URL)
    for number in range(3000):
        server.stream.write(ConsoleChat(f"{number:0200}"))
    server.pass_tick()
    assert len(server.post()[2]) == 3000


def test_a_map_that_waits_for_its_receiver_takes_little_memory() -> None:
    server = Server(URL)
    server.say(*(f"{number:0100}" for number in range(20 * BATCH_LINES)))
    assert len(server.stream._texts) <= BATCH_LINES + 1
    assert server.stream._kept.held_bytes < 200_000


def test_lost_ticks_leave_a_gap_in_the_offsets() -> None:
    lost = iter([False, False, True, True, False])
    server = Server(URL, is_losing=lambda: next(lost))
    server.say("one", "two", "three", "four", "five")
    first = server.post()
    second = server.post()
    assert first[2] == ["one", "two"]
    assert second[2] == ["five"]
    lost_lines = 2 * len('07/17/2026 - 18:14:24.000 - "Console<0>" say ""\n') + len("threefour")
    assert second[0] - first[1] == lost_lines
    assert server.request() is None


def test_a_reader_of_the_posts_notices_the_lost_bytes() -> None:
    lost = iter([False, True, False])
    server = Server(URL, is_losing=lambda: next(lost))
    server.say("one", "two", "three")
    cursor = LogCursor()
    notices: list[Notice] = []
    lines: list[bytes] = []
    while (request := server.request()) is not None:
        taken = cursor.take(read_post(dict(request.headers), request.body, received_ms=0))
        notices += taken.notices
        lines += taken.lines
        server.stream.answered(server.stream._listeners[0], 200)
    assert [type(notice) for notice in notices] == [Gap]
    assert [line.split()[-1] for line in lines] == [b'"one"', b'"three"']


def test_lines_lost_last_are_nothing_to_send() -> None:
    server = Server(URL, is_losing=lambda: True)
    server.say("one")
    assert not server.stream.has_lines_for(server.listener())
    assert server.request() is None


def test_a_secret_adds_a_token_of_16_digits() -> None:
    agenda = Agenda(START_MS)

    def describe() -> GameHeaders:
        return GameHeaders(map_name="m", server_address="a:1", steam_id="", instance_token="t", token_secret="s")

    stream = LogStream(agenda, describe=describe)
    stream.is_on = True
    stream.add(URL)
    stream.write(ConsoleChat("one"))
    agenda.run_until(START_MS + TICK_MS)
    request = stream.next_request(stream.idle_listeners[0])
    assert request is not None
    token = dict(request.headers)["X-Server-Unique-Token"]
    assert len(token) == 16
    assert int(token, 16) >= 0


@pytest.mark.parametrize("url", [OTHER_URL, "http://name:secret@127.0.0.1:9091", "http://127.0.0.1:9091?/@"])
def test_host_is_that_of_the_address(url: str) -> None:
    server = Server(url)
    server.say("one")
    request = server.request(url)
    assert request is not None
    assert dict(request.headers)["Host"] == "127.0.0.1:9091"


def test_a_name_cannot_break_a_header_into_two() -> None:
    agenda = Agenda(START_MS)

    def describe() -> GameHeaders:
        return GameHeaders(
            map_name="m\nX-Evil: 1",
            team_ct="a\r\nX-Evil: 2",
            team_t="ü\ud800",
            server_address="a:1",
            steam_id="",
            instance_token="t",
        )

    stream = LogStream(agenda, describe=describe)
    stream.is_on = True
    stream.add(URL)
    stream.write(ConsoleChat("one"))
    agenda.run_until(START_MS + TICK_MS)
    request = stream.next_request(stream.idle_listeners[0])
    assert request is not None
    headers = dict(request.headers)
    assert "X-Evil" not in headers
    assert (headers["X-Game-TeamCT"], headers["X-Game-TeamT"]) == ("a  X-Evil: 2", "ü?")


def test_text_that_utf8_cannot_write_is_sent_all_the_same() -> None:
    server = Server(URL)
    server.say("\ud800 ü")
    request = server.request()
    assert request is not None
    assert request.body.endswith('say "? ü"\n'.encode())


class Flaky:
    """A server with two receivers that take, refuse and lose posts; what each of them heard, and what it should have.

    Between a post and its answer anything may happen.
    """

    def __init__(self) -> None:
        self.is_losing = False
        self.maps = 1
        self.agenda = Agenda(START_MS)
        self.stream = LogStream(self.agenda, describe=self._describe, is_losing=lambda: self.is_losing)
        self.stream.is_on = True
        self.listeners: list[Listener] = []
        for url in (URL, OTHER_URL):
            self.stream.add(url)
            self.listeners = list(self.stream.idle_listeners)
        self.cursors = [LogCursor(), LogCursor()]
        self.heard: list[list[str]] = [[], []]
        self.under_way = [False, False]
        self.said: list[list[str]] = [[]]
        self.gaps = 0
        self.numbers = 0

    def say(self, lines: int) -> None:
        for _ in range(lines):
            self.numbers += 1
            text = f"{self.maps} {self.numbers}"
            self.stream.write(ConsoleChat(text))
            if self.stream.is_on and not self.is_losing:
                self.said[-1].append(text)
            self._pass_tick()

    def lose(self, is_losing: int) -> None:
        if self.said[-1]:  # where the very start of a load is missing a reader cannot know that it is one
            self.is_losing = bool(is_losing)

    def switch(self, is_on: int) -> None:
        self.stream.is_on = bool(is_on)

    def load_map(self, _value: int) -> None:
        self.maps += 1
        self.is_losing = False
        self.said.append([])
        self.stream.begin_map()
        self._pass_tick()

    def post(self, who: int) -> None:
        """Make a post that arrives."""
        request = self._request(who)
        if request is not None:
            taken = self.cursors[who].take(read_post(dict(request.headers), request.body, received_ms=0))
            self.gaps += sum(isinstance(notice, Gap) for notice in taken.notices)
            self.heard[who] += texts_in(b"".join(line + b"\n" for line in taken.lines))

    def lose_post(self, who: int) -> None:
        """Make a post that never arrives."""
        if self._request(who) is not None:
            self.answer(who, 599)

    def answer(self, who: int, status: int) -> None:
        if self.under_way[who]:
            self.under_way[who] = False
            self.stream.answered(self.listeners[who], None if status == 599 else status)

    def finish(self) -> None:
        self.stream.is_on = True
        self.say(0)
        for who in (0, 1):
            self.answer(who, 500)
            while self.stream.has_lines_for(self.listeners[who]):
                self.post(who)
                self.answer(who, 200)

    def _request(self, who: int) -> LogRequest | None:
        request = self.stream.next_request(self.listeners[who])
        if request is not None:
            assert not self.under_way[who]
            assert len(request.body) <= MAX_BODY_BYTES
            self.under_way[who] = True
        return request

    def _pass_tick(self) -> None:
        self.agenda.run_until(self.agenda.now_ms + 2 * TICK_MS)

    def _describe(self) -> GameHeaders:
        return GameHeaders(map_name=f"de_{self.maps}", server_address="a:1", steam_id="", instance_token="t")


receivers = st.sampled_from([0, 1])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 4)),
        st.tuples(st.just("post"), receivers),
        st.tuples(st.just("post"), receivers),
        st.tuples(st.just("lose_post"), receivers),
        st.tuples(st.just("answer"), receivers, st.sampled_from([200, 200, 200, 201, 204, 205, 302, 500, 599])),
        st.tuples(st.just("load_map"), st.just(0)),
        st.tuples(st.just("switch"), st.sampled_from([0, 1, 1])),
        st.tuples(st.just("lose"), st.sampled_from([0, 0, 1])),
    ),
    min_size=20,
    max_size=80,
)


@examples(300)
@given(steps)
def test_a_reader_gets_each_line_once_whatever_it_answers(steps: list[tuple[object, ...]]) -> None:
    server = Flaky()
    for name, *values in steps:
        getattr(server, str(name))(*values)
    server.finish()
    has_losses = any(name == "lose" for name, *_ in steps)
    assert has_losses or server.gaps == 0
    for heard in server.heard:
        for number, said in enumerate(server.said, start=1):
            of_map = [text for text in heard if text.startswith(f"{number} ")]
            assert of_map == said[: len(of_map)]  # the end of a map may be lost with it
        assert of_map == said  # of the last map everything was fetched
        assert heard == sorted(heard, key=lambda text: int(text.split()[1]))
