"""Matches of which a part is never told: a service that is away for a while, and posts that are lost on their way."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from matchpod.core.model import GameSettings
from matchpod.cs2.log_batches import read_post
from matchpod.cs2.match_reader import MatchReader

from .played_match import START_MS, PlayedMatch

NOT_TAKEN = 503
"""The answer of nobody: the server keeps the lines, until it loads another map."""

SILENCE_MS = 3_600_000
"""After this long every alarm has fired that ends a match in which nothing happens."""


class InterruptedMatch(PlayedMatch):
    """A match whose service can go away and come back; its people start the next map themselves meanwhile."""

    def __init__(self, settings: GameSettings, *, seed: int) -> None:
        super().__init__(settings, seed=seed)
        self.is_away = False
        self.told: list[tuple[int, Mapping[str, str] | None, bytes]] = []
        """What was told, in order: when, the headers of a log post or None for a report, and the body."""

    def leave_until(self, is_back: Callable[[], bool]) -> None:
        """Nobody listens until this is so; then somebody takes the match over."""
        self.is_away = True
        self.run_until(is_back, hours=1)
        self.is_away = False
        self.reader.match.presence.doubt(self.now_ms)

    def send_report(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        if not self.is_away:
            self.told.append((self.now_ms, None, body))
            super().send_report(url, headers, body)

    def take_posts(self) -> None:
        if self.is_away:
            stream = self.machine.stream
            for listener in tuple(stream.idle_listeners):
                if stream.next_request(listener) is not None:
                    stream.answered(listener, NOT_TAKEN)
            return
        before = len(self.posts)
        super().take_posts()
        self.told += self.posts[before:]

    def step(self) -> None:
        if not self.is_away:
            super().step()
            return
        if not self.machine.agenda.run_next():
            self.machine.agenda.run_until(self.now_ms + 1000)
        self.take_posts()


def read_without(
    settings: GameSettings, told: Sequence[tuple[int, Mapping[str, str] | None, bytes]], lost: Container[int]
) -> MatchReader:
    """Read what a server told without the posts of these numbers, and wait until nothing more can happen."""
    reader = MatchReader.create(settings, START_MS)
    for number, (at_ms, headers, body) in enumerate(told):
        _let_pass(reader, at_ms)
        if number in lost:
            continue
        if headers is None:
            reader.read_report(body, at_ms)
        else:
            reader.read_post(read_post(headers, body, received_ms=at_ms))
    _let_pass(reader, told[-1][0] + SILENCE_MS)
    return reader


def _let_pass(reader: MatchReader, now_ms: int) -> None:
    for _ in range(100):
        due_ms = reader.next_deadline_ms()
        if due_ms is None or due_ms > now_ms:
            return
        reader.tick(due_ms)
