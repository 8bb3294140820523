"""Play matches with outages: the service is down for a while, or posts are lost."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from cs2_protocol.log_batches import read_post
from cs2_simulator.scenarios import Scenario
from matchpod.core.model import GameSettings
from matchpod.cs2.match_reader import MatchReader
from tests.lost_posts import tick_until
from tests.unit.simulator.played_match import START_MS, PlayedMatch

UNAVAILABLE = 503
"""Response during an outage: the server keeps the lines until it loads another map."""

SILENCE_MS = 3_600_000
"""After this time without events, every deadline that ends a match has expired."""


class InterruptedMatch(PlayedMatch):
    """A match whose service can go down and come back. Meanwhile the match goes on, even to the next map."""

    def __init__(self, settings: GameSettings, *, seed: int, scenario: Scenario = Scenario.FULL_MATCH) -> None:
        super().__init__(settings, seed=seed, scenario=scenario)
        self.is_down = False
        self.received: list[tuple[int, Mapping[str, str] | None, bytes]] = []
        """Received log posts and plugin reports in order: time, headers of a post or None for a report, body."""

    def go_down_until(self, is_restored: Callable[[], bool]) -> None:
        """Receive nothing until `is_restored` returns True, then go on with every presence in doubt."""
        self.is_down = True
        self.run_until(is_restored, hours=1)
        self.is_down = False
        self.reader.match.presence.mark_doubtful(self.now_ms)

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        if not self.is_down:
            self.received.append((self.now_ms, None, body))
            super().send_report(url, headers, body)

    def receive_posts(self) -> None:
        if self.is_down:
            stream = self.machine.stream
            for listener in tuple(stream.idle_listeners):
                if stream.next_request(listener) is not None:
                    stream.handle_response(listener, UNAVAILABLE)
            return
        before = len(self.posts)
        super().receive_posts()
        self.received += self.posts[before:]

    def step(self) -> None:
        if not self.is_down:
            super().step()
            return
        if not self.machine.agenda.run_next():
            self.machine.agenda.run_until(self.now_ms + 1000)
        self.receive_posts()


def read_without(
    settings: GameSettings, received: Sequence[tuple[int, Mapping[str, str] | None, bytes]], lost: Container[int]
) -> MatchReader:
    """Read all of `received` except the entries at the indexes in `lost`, then let SILENCE_MS pass."""
    reader = MatchReader.create(settings, START_MS)
    for number, (at_ms, headers, body) in enumerate(received):
        tick_until(reader, at_ms)
        if number in lost:
            continue
        if headers is None:
            reader.read_report(body, at_ms)
        else:
            reader.read_post(read_post(headers, body, received_ms=at_ms))
    reader.read_held(None)
    tick_until(reader, received[-1][0] + SILENCE_MS)
    return reader
