"""End streams whose key, session or overlay token is no longer valid, even if they are idle.

All open streams are checked together, so thousands of credentials need only a few queries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from matchpod.core.errors import UnavailableError
from matchpod.web.endpoint import EventStream, StillValid

MAX_CHECKED: Final = 512
"""Maximum number of credentials to check with one query."""

_log = logging.getLogger(__name__)


class WatchedStream:
    """An open stream. `is_ended` is True if it was closed because its credential is no longer valid."""

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        self.is_ended = False

    def end(self) -> None:
        self.is_ended = True
        self.stream.frames.close()


class StreamAccess:
    """Checks the credentials of all open streams of a process, every `check_s` seconds."""

    def __init__(self, check_s: float) -> None:
        self._check_s = check_s
        self._open: set[WatchedStream] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, stream: EventStream) -> Iterator[WatchedStream]:
        """Check the credential of a stream until the `with` block ends."""
        watched = WatchedStream(stream)
        self._open.add(watched)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="stream access")
        try:
            yield watched
        finally:
            self._open.discard(watched)
            if not self._open and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._check_s)
            try:
                await self._check()
            except UnavailableError:
                pass  # without the database, streams have no new data to send either
            except Exception:  # noqa: BLE001 - the loop must survive
                _log.exception("streams not checked")

    async def _check(self) -> None:
        kinds: dict[StillValid, dict[str, list[WatchedStream]]] = {}
        for watched in self._open:
            credential = watched.stream.credential
            kinds.setdefault(credential.still_valid, {}).setdefault(credential.id, []).append(watched)
        for still_valid, streams in kinds.items():
            ids = list(streams)
            for start in range(0, len(ids), MAX_CHECKED):
                part = ids[start : start + MAX_CHECKED]
                for ended in set(part) - await still_valid(part):
                    for watched in streams[ended]:
                        watched.end()
